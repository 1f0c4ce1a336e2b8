#include "trainer/modes/supervision.h"

#include <filesystem>
#include <sstream>

#include "core/base/text.h"
#include "core/process/job_process.h"
#include "gflags/gflags.h"
#include "trainer/experiment/make_options.h"
#include "trainer/modes/flags.h"
#include "trainer/supervise/supervisor.h"

namespace elastor {
namespace {

std::string DefaultRestarts() {
  return gflags::GetCommandLineFlagInfoOrDie("max_restarts").default_value;
}

}  // namespace

StatusOr<std::vector<Host>> ReadHosts() {
  if (!FLAGS_supervise) {
    const char* const flag = !FLAGS_hosts.empty()      ? "--hosts"
                             : !FLAGS_hostfile.empty() ? "--hostfile"
                             : !FLAGS_launch.empty()   ? "--launch"
                             : std::to_string(FLAGS_max_restarts) != DefaultRestarts()
                                 ? "--max_restarts"
                                 : nullptr;
    if (flag == nullptr) return std::vector<Host>();
    return UserError(std::string(flag) + ": is of a job that is supervised; expected --supervise");
  }
  if (!FLAGS_hosts.empty() && !FLAGS_hostfile.empty()) {
    return UserError("--hostfile: beside --hosts; expected one of them");
  }
  if (FLAGS_hosts.empty() && FLAGS_hostfile.empty()) return std::vector<Host>();
  StatusOr<std::vector<Host>> hosts =
      FLAGS_hosts.empty() ? ReadHostfile(FLAGS_hostfile) : ParseHosts(FLAGS_hosts);
  if (hosts.ok() && gflags::GetCommandLineFlagInfoOrDie("ranks").is_default) {
    FLAGS_ranks = RanksOf(*hosts);
  }
  return hosts;
}

Status CheckSupervision(const Experiment& experiment, const std::vector<Host>& hosts) {
  if (IsStartedByMpi()) {
    return UserError(
        "--supervise: mpirun or srun started this process; expected none around it, for it starts "
        "the ranks itself");
  }
  if (FLAGS_ranks < 1) {
    return UserError(StrCat("--ranks=", FLAGS_ranks, ": expected 1 or more"));
  }
  if (FLAGS_max_restarts < 0) {
    return UserError(StrCat("--max_restarts=", FLAGS_max_restarts, ": expected 0 or more"));
  }
  const CheckpointConfig& checkpoint = experiment.checkpoint();
  if (checkpoint.disabled()) {
    return UserError(
        "checkpoint.disabled: true; expected false with --supervise, which goes on from them");
  }
  if (checkpoint.every_steps() == 0 && checkpoint.every_minutes() == 0 &&
      !WritesDeltas(checkpoint)) {
    return UserError(
        "checkpoint.every_steps: 0, and every_minutes, delta_every_steps and delta_every_minutes: "
        "0; expected one of them with --supervise, or a lost rank would cost the whole run");
  }
  if (const int room = RanksOf(hosts); room > 0 && FLAGS_ranks > room) {
    return UserError(StrCat("--ranks=", FLAGS_ranks, ": the hosts have room for ", room));
  }
  return OkStatus();
}

StatusOr<int> SuperviseJob(const std::vector<Host>& hosts, const ParallelConfig& parallel,
                           const std::vector<std::string>& arguments) {
  SuperviseOptions options = {.trainer = {std::filesystem::read_symlink("/proc/self/exe")},
                              .output_dir = FLAGS_output_dir,
                              .ranks = FLAGS_ranks,
                              .hosts = hosts,
                              .launch = {},
                              .max_restarts = FLAGS_max_restarts,
                              .parallel = parallel};
  options.trainer.insert(options.trainer.end(), arguments.begin(), arguments.end());
  for (const char* flag : {"--nosupervise", "--ranks=1", "--hosts=", "--hostfile=", "--launch="}) {
    options.trainer.push_back(flag);
  }
  options.trainer.push_back("--max_restarts=" + DefaultRestarts());
  std::istringstream words(FLAGS_launch);
  for (std::string word; words >> word;) options.launch.push_back(word);
  if (options.launch.empty()) {
    ELASTOR_RETURN_IF_ERROR(CheckMpirun());
    options.launch = {"mpirun", "--oversubscribe", "--bind-to", "none"};
    for (const std::string& word : KeepaliveOptions()) options.launch.push_back(word);
  }
  return Supervise(options);
}

}  // namespace elastor
