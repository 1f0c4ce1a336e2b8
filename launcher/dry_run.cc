#include "launcher/dry_run.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "launcher/run_command.h"
#include "launcher/run_table.h"
#include "launcher/slurm_array.h"
#include "launcher/slurm_scheduler.h"
#include "launcher/sweep_status.h"
#include "launcher/time_estimate.h"

namespace elastor {
namespace {

// What is left to do of a plan takes of this machine: "about 3.1 core-hours, 1.6 h on 2 cores".
std::string TimeText(const Plan& plan, const std::vector<bool>& done, const TimeEstimate& estimate,
                     const Machine& machine) {
  std::vector<Work> work;
  double core_seconds = 0;
  bool known = true;
  const auto add = [&](const PlannedRun& run) {
    const std::optional<double> seconds = estimate.Seconds(run);
    known = known && seconds && Misfit(run, machine).empty();
    if (!known) return;
    work.push_back({*seconds, run.cores()});
    core_seconds += *seconds * run.cores();
  };
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    if (!done[i]) add(plan.runs[i]);
  }
  for (const LaterRuns& later : plan.later) {
    for (int64_t i = 0; i < later.count; ++i) add(later.each);
  }
  if (!known) return "times are not known before --calibrate has been given once";
  const auto cores = static_cast<int>(machine.cores.size());
  constexpr double kHour = 3600;
  constexpr size_t kLine = 128;
  char line[kLine];
  std::snprintf(line, kLine, "%sabout %.3g core-hours, %s on %d cores, to do",
                plan.later.empty() ? "" : "at most ", core_seconds / kHour,
                Duration(SecondsOnCores({}, std::move(work), cores)).c_str(), cores);
  return line;
}

}  // namespace

StatusOr<std::string> DryRun(const Plan& plan, const SweepFiles& files, const Machine& machine,
                             const std::string& trainer, const Slurm* slurm) {
  const TimeEstimate estimate = EstimateFrom(plan, files, machine);
  std::vector<bool> is_done;
  size_t width = 0;
  for (const PlannedRun& run : plan.runs) width = std::max(width, run.folder.size());
  std::string text;
  double multiply_adds = 0;
  size_t done = 0;
  constexpr size_t kLine = 512;
  char line[kLine];
  for (const PlannedRun& run : plan.runs) {
    const RunStatus status = ReadStatus(run, files);
    const std::string misfit = slurm == nullptr ? Misfit(run, machine) : "";
    const char* state = !misfit.empty()                      ? "too large"
                        : status.state == RunState::kDone    ? "done"
                        : status.state == RunState::kFailed  ? "failed"
                        : status.state == RunState::kWaiting ? "new"
                                                             : "cut off";
    done += status.state == RunState::kDone;
    is_done.push_back(status.state == RunState::kDone);
    const std::optional<double> seconds = estimate.Seconds(run);
    multiply_adds += static_cast<double>(run.samples) * static_cast<double>(run.multiply_adds);
    std::snprintf(line, kLine,
                  "%-*s  %-9s  dense %9lld  embedding %11lld  multiply-adds %9lld  steps %7lld  "
                  "memory %6.2f GB  cores %d  time %7s  ",
                  static_cast<int>(width), run.folder.c_str(), state,
                  static_cast<long long>(run.dense_parameters),
                  static_cast<long long>(run.embedding_parameters),
                  static_cast<long long>(run.multiply_adds), static_cast<long long>(run.steps),
                  static_cast<double>(run.bytes_of_rank) / 1e9, run.cores(),
                  seconds ? Duration(*seconds).c_str() : "?");
    text += line;
    text += Join(slurm == nullptr ? LocalCommand(run, files, trainer)
                                  : JobCommand(run, files, trainer, *slurm),
                 " ");
    text += status.state == RunState::kCutOff ? " --resume\n" : "\n";
  }
  int64_t later_final = 0, later_trials = 0;
  for (const LaterRuns& later : plan.later) {
    (later.each.stage == Stage::kTune ? later_trials : later_final) += later.count;
    multiply_adds += static_cast<double>(later.count) * static_cast<double>(later.each.samples) *
                     static_cast<double>(later.each.multiply_adds);
  }
  if (!plan.later.empty()) {
    std::snprintf(line, kLine, "%lld final runs follow; before them at most %lld more trials\n",
                  static_cast<long long>(later_final), static_cast<long long>(later_trials));
    text += line;
  }
  std::snprintf(line, kLine, "%s%.3g multiply-adds forward in all",
                later_trials > 0 ? "at most " : "", multiply_adds);
  const std::string cost = multiply_adds > 0 ? line : "cost unknown without data.path";
  StrAppend(&text, "sweep ", plan.name, ": ", plan.runs.size(), " runs, ", done, " done; ", cost);
  if (slurm != nullptr) {
    ELASTOR_ASSIGN_OR_RETURN(const std::string arrays,
                             DrySubmission({plan, files, *slurm, trainer, {}}));
    return text + "\n" + arrays;
  }
  std::snprintf(line, kLine, "; %s; %zu cores and %.1f GB of memory here\n",
                TimeText(plan, is_done, estimate, machine).c_str(), machine.cores.size(),
                static_cast<double>(machine.memory_bytes) / 1e9);
  return text + line;
}

}  // namespace elastor
