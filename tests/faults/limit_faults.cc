#include "tests/faults/limit_faults.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "core/base/log.h"
#include "tests/faults/memory_group.h"
#include "tests/faults/moments.h"

namespace elastor {
namespace {

namespace fs = std::filesystem;

// The rank's size in memory's addresses, in bytes.
int64_t AddressBytes(pid_t process) {
  return std::atoll(Contents("/proc/" + std::to_string(process) + "/statm").c_str()) *
         sysconf(_SC_PAGESIZE);
}

}  // namespace

void LimitMemory(Random& random, DisturbedJob* attempt) {
  AtSomeMoment(random, attempt);
  const int rank = SomeRank(random, *attempt);
  const auto room = static_cast<rlim_t>(Share(random) * Share(random) * (16 << 20));
  attempt->what =
      "rank " + std::to_string(rank) + " gets " + std::to_string(room) + " bytes more memory";
  OnRank(rank, attempt, [room](pid_t process) -> std::optional<double> {
    const rlim_t limit = AddressBytes(process) + room;
    const rlimit bounds = {.rlim_cur = limit, .rlim_max = limit};
    prlimit(process, RLIMIT_AS, &bounds, nullptr);
    return std::nullopt;
  });
  // 1: Open MPI's own end, in MPI_Init; 127: libraries are not even loaded.
  attempt->codes_once = {1, 3, 127};
}

void LimitFiles(Random& random, DisturbedJob* attempt) {
  AtSomeMoment(random, attempt);
  const int rank = SomeRank(random, *attempt);
  const size_t room = Below(random, 4);
  attempt->what =
      "rank " + std::to_string(rank) + " may open " + std::to_string(room) + " files more";
  OnRank(rank, attempt, [room](pid_t process) -> std::optional<double> {
    rlim_t limit = room;
    std::error_code ignored;
    for (const auto& entry :
         fs::directory_iterator("/proc/" + std::to_string(process) + "/fd", ignored)) {
      limit = std::max<rlim_t>(limit, room + 1 + std::atoi(entry.path().filename().c_str()));
    }
    const rlimit bounds = {.rlim_cur = limit, .rlim_max = limit};
    prlimit(process, RLIMIT_NOFILE, &bounds, nullptr);
    return std::nullopt;
  });
  attempt->codes_once = {1, 3};  // 1: as above
}

// The ranks and mpirun, but not their supervisor, are in a control group, whose memory another
// process in it takes, until the kernel has killed one of them; then they get it back.
void EndMemory(Random& random, DisturbedJob* attempt) {
  constexpr int64_t kTaken = 128 << 20;
  AtSomeMoment(random, attempt);
  const auto group = std::make_shared<const MemoryGroup>();
  CHECK(!group->path().empty()) << "no control groups of memory";
  const auto room = static_cast<int64_t>(Share(random) * (4 << 20));
  const std::string enter = attempt->work + "/in_group";
  const std::string taken = "/dev/shm/elastor_faults.taken." + std::to_string(getpid());
  std::ofstream(enter) << "#!/bin/sh\necho $$ >" + group->processes() + " && exec \"$@\"\n";
  fs::permissions(enter, fs::perms::owner_all);
  attempt->before = {enter};
  attempt->what = "a control group with " + std::to_string(room) + " bytes more memory";
  attempt->strike.act = [=, limited = false](const Processes&,
                                             bool* struck) mutable -> std::optional<double> {
    if (group->Kills() > 0) {
      group->Limit(-1);
      return std::nullopt;
    }
    if (limited) return kAgainSeconds;
    limited = *struck = group->Limit(group->Used() + room);
    if (!limited) return kAgainSeconds;
    const std::string take = enter + " dd if=/dev/zero of=" + taken +
                             " bs=64K count=" + std::to_string(kTaken >> 16) + " 2>/dev/null &";
    CHECK_EQ(std::system(take.c_str()), 0);
    return kAgainSeconds;
  };
  attempt->restore = [=](int) {
    fs::remove(taken);
    group->Remove();
  };
  attempt->codes_once = {137, 1, 3};  // 1: as above
}

}  // namespace elastor
