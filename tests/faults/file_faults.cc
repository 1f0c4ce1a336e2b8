#include "tests/faults/file_faults.h"

#include <sys/mount.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "tests/faults/byte_damage.h"
#include "tests/faults/moments.h"

namespace elastor {
namespace {

namespace fs = std::filesystem;

void Write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::vector<fs::path> FilesIn(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Returns what was done; "" when nothing was.
std::string DamageFile(Random& random, const fs::path& file, const fs::path& other) {
  if (Below(random, 6) == 0) {
    fs::remove(file);
    return "remove " + file.string();
  }
  std::string bytes = Contents(file);
  std::string what;
  if (Below(random, 6) == 0 && fs::exists(other) && Contents(other) != bytes) {
    bytes = Contents(other);
    what = other.string() + " in the place of ";
  } else {
    what = DamageBytes(random, &bytes);
  }
  if (what.empty()) return "";
  Write(file, bytes);
  return what + file.string();
}

// A copy of the data set, for the job alone.
fs::path CopyData(DisturbedJob* attempt) {
  const fs::path copy = fs::path(attempt->work) / "data";
  fs::remove_all(copy);
  fs::copy(attempt->data, copy, fs::copy_options::recursive);
  attempt->arguments.push_back("--set=data.path=" + copy.string());
  attempt->names = {copy};
  attempt->codes = {2, 3};
  return copy;
}

// A fault of faulty_system.cc at the boundary that is the run's by its index: so that runs one
// after the other have boundaries one after the other.
void AtBoundary(const char* fault, DisturbedJob* attempt) {
  int64_t all = 0;
  for (const int64_t boundaries : attempt->undisturbed.boundaries) all += boundaries;
  int64_t boundary = static_cast<int64_t>(attempt->index) % all;
  int rank = 0;
  while (boundary >= attempt->undisturbed.boundaries[rank]) {
    boundary -= attempt->undisturbed.boundaries[rank++];
  }
  attempt->what = std::string(fault) + " at boundary " + std::to_string(boundary + 1) +
                  " of rank " + std::to_string(rank);
  attempt->environment["ELASTOR_FAULT"] = fault;
  attempt->environment["ELASTOR_FAULT_RANK"] = std::to_string(rank);
  attempt->environment["ELASTOR_FAULT_BOUNDARY"] = std::to_string(boundary + 1);
  attempt->strike.mark = attempt->work + "/mark." + fault;
  attempt->environment["ELASTOR_FAULT_MARK"] = attempt->strike.mark;
  attempt->names = {attempt->run, attempt->data};
}

}  // namespace

// ---- Files that are damaged before the job begins.

void DamageCheckpoint(Random& random, DisturbedJob* attempt) {
  const fs::path folder = fs::path(attempt->run) / "checkpoints";
  const std::vector<fs::path> files = FilesIn(folder);
  // The last training state, or the weights of the best evaluation: other states are not read.
  std::string last;
  for (const fs::path& file : files) {
    const std::string name = file.parent_path().filename();
    if (name.starts_with("step-") && name.size() == 15) last = std::max(last, name);
  }
  std::vector<fs::path> read;
  for (const fs::path& file : files) {
    const std::string name = file.parent_path().filename();
    if (name == last || name.starts_with("best-")) read.push_back(file);
  }
  attempt->strikes = !read.empty();
  if (read.empty()) return;
  const fs::path file = read[Below(random, read.size())];
  const fs::path other = files[Below(random, files.size())].parent_path() / file.filename();
  const std::string whole = Contents(file);
  attempt->what = DamageFile(random, file, other);
  attempt->strikes = !attempt->what.empty();
  attempt->names = {file.parent_path().filename()};
  attempt->restore = [=](int code) {
    if (code != 0) Write(file, whole);
  };
  AtOnce(attempt);
  attempt->codes = {2, 3};
}

// The record of a run has no hash: what shows is a line that is none, and lines that are missing.
void DamageMetrics(Random& random, DisturbedJob* attempt) {
  const fs::path file = fs::path(attempt->run) / "metrics.jsonl";
  const std::string whole = Contents(file);
  attempt->strikes = !whole.empty();
  if (whole.empty()) return;
  std::string bytes = whole;
  const size_t at = Below(random, bytes.size());
  switch (Below(random, 3)) {
    case 0:
      attempt->what = "remove ";
      fs::remove(file);
      break;
    case 1:
      attempt->what = "cut at byte " + std::to_string(at) + " of ";
      Write(file, bytes.substr(0, at));
      break;
    default:
      attempt->what = "zeros into byte " + std::to_string(at) + " of ";
      bytes.replace(at, 16, std::string(std::min<size_t>(16, bytes.size() - at), '\0'));
      Write(file, bytes);
  }
  attempt->what += file.string();
  attempt->names = {file};
  attempt->restore = [=](int code) {
    if (code != 0) Write(file, whole);
  };
  AtOnce(attempt);
  attempt->codes = {2, 3};
}

void DamageData(Random& random, DisturbedJob* attempt) {
  const std::vector<fs::path> files = FilesIn(CopyData(attempt));
  const fs::path file = files[Below(random, files.size())];
  attempt->what = DamageFile(random, file, files[Below(random, files.size())]);
  attempt->strikes = !attempt->what.empty();
  AtOnce(attempt);
}

// ---- Files that change while the job runs.

void ChangeData(Random& random, DisturbedJob* attempt) {
  const std::vector<fs::path> files = FilesIn(CopyData(attempt));
  const fs::path file = files[Below(random, files.size())];
  AtSomeMoment(random, attempt);
  const uint64_t seed = random();
  attempt->what = "change " + file.string() + " in mid-run";
  attempt->strike.act = [=](const Processes&, bool* struck) -> std::optional<double> {
    Random own(seed);
    std::string bytes = Contents(file);
    if (DamageBytes(own, &bytes).empty()) return std::nullopt;
    *struck = true;
    // In place, as cp does.
    std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
    stream << bytes;
    stream.close();
    if (bytes.size() < fs::file_size(file)) fs::resize_file(file, bytes.size());
    return std::nullopt;
  };
}

void MoveFolder(Random& random, DisturbedJob* attempt) {
  AtSomeMoment(random, attempt);
  const std::string run = attempt->run;
  attempt->what = "move " + run + " in mid-run";
  attempt->strike.act = [=](const Processes&, bool* struck) -> std::optional<double> {
    if (!fs::exists(run)) return kAgainSeconds;
    std::error_code is_mount;
    fs::rename(run, run + ".moved", is_mount);
    *struck = !is_mount;
    return std::nullopt;
  };
  attempt->restore = [=](int) {
    if (!fs::exists(run + ".moved")) return;
    // A job that had not opened it yet has begun a new one, which is as good.
    const bool anew = fs::exists(run + "/metrics.jsonl");
    fs::remove_all(anew ? run + ".moved" : run);
    if (!anew) fs::rename(run + ".moved", run);
  };
  attempt->codes = {2, 3};
  attempt->names = {run};
}

// ---- Disks.

void FillDisk(Random& random, DisturbedJob* attempt) {
  AtSomeMoment(random, attempt);
  const std::string run = attempt->run;
  const fs::path filler = run + "/filler";
  const auto room = static_cast<int64_t>(Share(random) * Share(random) * 512 * 1024);
  attempt->what = "leave " + std::to_string(room) + " bytes of " + run + "'s disk";
  attempt->strike.act = [=](const Processes&, bool* struck) -> std::optional<double> {
    // The run refuses a folder that holds something else than a run.
    if (!fs::exists(run + "/metrics.jsonl")) return kAgainSeconds;
    struct statvfs disk;
    CHECK_EQ(statvfs(run.c_str(), &disk), 0);
    const int64_t free = static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_bsize);
    *struck = true;
    Write(filler, std::string(std::max<int64_t>(0, free - room), 'x'));
    return std::nullopt;
  };
  attempt->restore = [=](int) { fs::remove(filler); };
  attempt->codes = {3};
  attempt->names = {run};
}

void FailDisk(Random& random, DisturbedJob* attempt) {
  AtSomeMoment(random, attempt);
  const std::string run = attempt->run;
  attempt->what = run + "'s disk read-only";
  attempt->strike.act = [=](const Processes&, bool* struck) -> std::optional<double> {
    if (!fs::exists(run + "/metrics.jsonl")) return kAgainSeconds;
    // The whole file system cannot be while one of its files is open for writing. So this file
    // stays as it is; all that is opened, made, renamed or removed from now on meets EROFS.
    CHECK_EQ(mount(run.c_str(), run.c_str(), nullptr, MS_BIND, nullptr), 0);
    CHECK_EQ(mount(nullptr, run.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr), 0);
    *struck = true;
    return std::nullopt;
  };
  // The tmpfs itself stays.
  attempt->restore = [=](int) {
    struct statvfs disk;
    CHECK_EQ(statvfs(run.c_str(), &disk), 0);
    if ((disk.f_flag & ST_RDONLY) != 0) CHECK_EQ(umount2(run.c_str(), MNT_DETACH), 0);
  };
  attempt->codes = {2, 3};
  attempt->names = {run};
}

void NoSpace(Random&, DisturbedJob* attempt) {
  AtBoundary("no_space", attempt);
  attempt->codes_once = {3};
}
void IoError(Random&, DisturbedJob* attempt) {
  AtBoundary("io_error", attempt);
  attempt->codes_once = {3};
}
void ShortCalls(Random&, DisturbedJob* attempt) { AtBoundary("short", attempt); }
void SlowDisk(Random&, DisturbedJob* attempt) { AtBoundary("slow", attempt); }
void TornWrite(Random&, DisturbedJob* attempt) {
  AtBoundary("torn", attempt);
  attempt->codes_once = {137};
}
void Clocks(Random&, DisturbedJob* attempt) { AtBoundary("clock", attempt); }

}  // namespace elastor
