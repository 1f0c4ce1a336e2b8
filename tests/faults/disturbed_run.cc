#include "tests/faults/disturbed_run.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <utility>

namespace elastor {
namespace {

namespace fs = std::filesystem;

constexpr int kMostJobs = 12;
constexpr int kFirstRanks[] = {2, 3, 4, 5, 8};
constexpr int kLaterRanks[] = {1, 2, 3, 5, 8};

const Fault* FaultNamed(const std::string& name) {
  return &*std::find_if(Faults().begin(), Faults().end(),
                        [&](const Fault& fault) { return fault.name == name; });
}

// Whether a line of the trainer's holds one of the texts.
bool Names(const std::string& lines, const std::vector<std::string>& texts) {
  std::istringstream all(lines);
  for (std::string line; std::getline(all, line);) {
    if (!line.starts_with("trainer: ") && !line.starts_with("elastor: ")) continue;
    if (texts.empty()) return true;
    for (const std::string& text : texts) {
      if (line.find(text) != line.npos) return true;
    }
  }
  return false;
}

}  // namespace

DisturbedRun::DisturbedRun(Options options, Subject* subject, Tally* tally, Random* random)
    : options_(std::move(options)),
      subject_(*subject),
      tally_(*tally),
      random_(*random),
      faults_(options_.faults),
      history_(subject->name()) {}

std::string DisturbedRun::ToItsEnd() {
  ++tally_.runs;
  while (jobs_ < kMostJobs) {
    Job job = Plan();
    if (!job.attempt.strikes) continue;
    Run(&job);
    Count(job);
    if (const std::string wrong = CheckEnd(job); !wrong.empty()) {
      return wrong + ": " + history_ + "\n" + job.end.lines;
    }
    if (job.end.code == 0) return CheckRecord();
  }
  ++tally_.wrong_ends;
  return "does not come to its end: " + history_ + "\n";
}

bool DisturbedRun::HasCheckpoint() const {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(options_.run + "/checkpoints", none)) {
    if (entry.path().filename().string().starts_with("step-") &&
        fs::exists(entry.path() / "manifest.json")) {
      return true;
    }
  }
  return false;
}

const Fault* DisturbedRun::NextFault() {
  if (faults_.empty()) return nullptr;
  // A fault of a run that has begun: something has to stop it first.
  if ((faults_.front()->needs & kBegunRun) != 0 && !HasCheckpoint()) return FaultNamed("kill_all");
  const Fault* const fault = faults_.front();
  faults_.pop_front();
  return fault;
}

DisturbedRun::Job DisturbedRun::Plan() {
  Job job;
  Attempt& attempt = job.attempt;
  attempt.run = options_.run;
  attempt.data = subject_.data();
  attempt.work = options_.work;
  attempt.index = options_.index;
  attempt.ranks = jobs_ > 0 ? kLaterRanks[random_() % 5] : kFirstRanks[random_() % 5];
  if (jobs_ == 0 && options_.first_ranks > 0) attempt.ranks = options_.first_ranks;
  job.fault = NextFault();
  const bool several = job.fault != nullptr && (job.fault->needs & kRanks) != 0;
  if (several || options_.supervised) attempt.ranks = std::max(attempt.ranks, 2);
  if (options_.supervised) {
    attempt.supervised = true;
    attempt.arguments = {
        "--set=checkpoint.delta_every_steps=" + std::to_string(subject_.every_steps()),
        "--set=checkpoint.every_steps=0"};
  }
  if (job.fault != nullptr) {
    attempt.undisturbed = subject_.On(attempt.ranks);
    job.fault->plan(random_, &attempt);
    // A supervisor starts all its ranks alike.
    if (!attempt.odd_arguments.empty()) attempt.supervised = false;
  }
  return job;
}

void DisturbedRun::Run(Job* job) {
  if (!job->attempt.mark.empty()) fs::remove(job->attempt.mark);
  job->end = RunJob(subject_.PlanJob(job->attempt, /*resumes=*/jobs_ > 0));
  if (job->attempt.restore) job->attempt.restore(job->end.code);
  ++jobs_;
  job->struck = job->fault != nullptr && job->end.notice_seconds.has_value();
  lines_may_lack_ |=
      job->end.lines.find("warning: " + options_.run + "/metrics.jsonl") != std::string::npos;
  history_ += "; " + std::to_string(job->attempt.ranks) + " ranks" +
              (job->attempt.supervised ? " supervised, " : ", ") +
              (job->struck ? job->attempt.what : "undisturbed") + ": " +
              std::to_string(job->end.code);
  if (!options_.verbose) return;
  std::printf("%llu: %s, %.1f s\n%s", static_cast<unsigned long long>(options_.index),
              history_.c_str(), job->end.seconds, job->end.code == 0 ? "" : job->end.lines.c_str());
}

void DisturbedRun::Count(const Job& job) {
  ++tally_.jobs;
  tally_.supervised += job.attempt.supervised;
  tally_.restarted += job.end.restarted;
  if (job.end.restart_seconds) tally_.restart_seconds.push_back(*job.end.restart_seconds);
  if (jobs_ > 1 && job.end.first_step_seconds) {
    ++tally_.resumed;
    if (before_ != nullptr) before_->first_step_seconds.push_back(*job.end.first_step_seconds);
  }
  before_ = nullptr;
  if (!job.struck) return;
  before_ = &tally_.faults[job.fault->name];
  ++before_->struck;
  before_->restarted += job.end.restarted;
  if (!job.end.restarted) before_->notice_seconds.push_back(*job.end.notice_seconds);
  before_->harmless += job.end.code == 0 && !job.end.restarted;
  const bool refused = job.end.code == 2 || job.end.code == 3;
  before_->refused += refused;
  tally_.refused += refused;
}

std::string DisturbedRun::CheckEnd(const Job& job) {
  if (job.end.hung) {
    ++tally_.hangs;
    return "a job hung";
  }
  if (job.end.launcher_hung) {  // mpirun's own (docs/operations.md, "Signals in the first second")
    ++tally_.launcher_hangs;
    return "";
  }
  if (job.end.code == 0) return "";
  if (!job.struck || !job.attempt.codes.contains(job.end.code)) {
    ++tally_.wrong_ends;
    return "an exit code that the fault does not explain";
  }
  const bool refused = job.end.code == 2 || job.end.code == 3;
  if (!refused || Names(job.end.lines, job.attempt.names)) return "";
  ++tally_.wrong_ends;
  return "no line names what is wrong";
}

std::string DisturbedRun::CheckRecord() {
  const Record found = RecordOf(options_.run);
  const Record& undisturbed = subject_.record();
  if (found.digest != undisturbed.digest) {
    ++tally_.digest_mismatches;
    return "digest " + found.digest + ", expected " + undisturbed.digest + ": " + history_ + "\n";
  }
  const std::string differences = Differences(found, undisturbed, lines_may_lack_);
  if (differences.empty()) return "";
  ++tally_.silent_differences;
  return "other records: " + history_ + "\n" + differences;
}

}  // namespace elastor
