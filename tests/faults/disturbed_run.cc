#include "tests/faults/disturbed_run.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <set>
#include <sstream>
#include <utility>

namespace elastor {
namespace {

namespace fs = std::filesystem;

constexpr int kMostJobs = 12;
constexpr double kForEver = 1e9;
constexpr int kFirstRanks[] = {2, 3, 4, 5, 8};
constexpr int kLaterRanks[] = {1, 2, 3, 5, 8};

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

// An end that is mpirun's, whatever the ranks did: SIGPIPE, seen without a line of theirs when they
// were struck in their first moments (or it is told of a rank that was not the trainer yet, which
// ignores it); a fall when it frees, behind the end of all ranks, what is gone.
bool IsMpirunsOwn(const ObservedEnd& end) {
  if (end.code == 128 + SIGPIPE) return !Names(end.lines, {});
  return end.code == 128 + SIGSEGV && end.lines.find("(PMIx_server_finalize") != std::string::npos;
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
    const auto strikes = [](const Disturbance& one) { return one.attempt.strikes; };
    if (!std::all_of(job.disturbances.begin(), job.disturbances.end(), strikes)) continue;
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

JobFaults DisturbedRun::NextFaults() {
  if (faults_.empty()) return {};
  // A fault of a run that has begun: something has to stop it first.
  const bool begun = (faults_.front().front()->needs & kBegunRun) != 0;
  if (begun && !HasCheckpoint()) return {&FaultNamed("kill_all")};
  const JobFaults faults = faults_.front();
  faults_.pop_front();
  return faults;
}

DisturbedRun::Job DisturbedRun::Plan() {
  Job job;
  DisturbedJob& attempt = job.attempt;
  attempt.run = options_.run;
  attempt.data = subject_.data();
  attempt.work = options_.work;
  attempt.index = options_.index;
  attempt.ranks = jobs_ > 0 ? kLaterRanks[random_() % 5] : kFirstRanks[random_() % 5];
  if (jobs_ == 0 && options_.first_ranks > 0) attempt.ranks = options_.first_ranks;
  const JobFaults faults = NextFaults();
  bool several = options_.supervised;
  for (const Fault* fault : faults) several |= (fault->needs & kRanks) != 0;
  if (several) attempt.ranks = std::max(attempt.ranks, 2);
  attempt.supervised = options_.supervised;
  if (options_.supervised) attempt.arguments = subject_.SupervisedArguments();
  if (!faults.empty()) attempt.undisturbed = subject_.On(attempt.ranks, attempt.supervised);
  for (const Fault* fault : faults) {
    Disturbance& own = job.disturbances.emplace_back(Disturbance{fault, attempt});
    own.attempt.arguments.clear();
    fault->plan(random_, &own.attempt);
  }
  for (const Disturbance& one : job.disturbances) Join(one.attempt, &attempt);
  // A supervisor starts all its ranks alike.
  if (!attempt.odd_arguments.empty()) attempt.supervised = false;
  return job;
}

void DisturbedRun::Run(Job* job) {
  JobPlan plan = subject_.PlanJob(job->attempt, /*resumes=*/jobs_ > 0);
  for (const Disturbance& one : job->disturbances) {
    plan.strikes.push_back(one.attempt.strike);
    fs::remove(one.attempt.strike.mark);
  }
  job->end = RunJob(plan);
  ++jobs_;
  std::string what;
  for (size_t d = 0; d < job->disturbances.size(); ++d) {
    Disturbance& one = job->disturbances[d];
    if (one.attempt.restore) one.attempt.restore(job->end.code);
    one.struck = job->end.notice_seconds[d].has_value();
    if (one.struck) what += (what.empty() ? "" : " and ") + one.attempt.what;
  }
  lines_may_lack_ |=
      job->end.lines.find("warning: " + options_.run + "/metrics.jsonl") != std::string::npos;
  history_ += "; " + std::to_string(job->attempt.ranks) + " ranks" +
              (job->attempt.supervised ? " supervised, " : ", ") +
              (what.empty() ? "undisturbed" : what) + ": " + std::to_string(job->end.code);
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
  std::set<std::string> struck;
  double notice_seconds = kForEver;  // from the last strike
  for (size_t d = 0; d < job.disturbances.size(); ++d) {
    if (!job.disturbances[d].struck) continue;
    struck.insert(job.disturbances[d].fault->name);
    notice_seconds = std::min(notice_seconds, *job.end.notice_seconds[d]);
  }
  if (struck.empty()) return;
  std::string names;
  for (const std::string& name : struck) names += (names.empty() ? "" : "+") + name;
  before_ = &tally_.faults[names];
  ++before_->struck;
  before_->restarted += job.end.restarted;
  if (!job.end.restarted) before_->notice_seconds.push_back(notice_seconds);
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
  if (job.end.launcher_hung) {  // mpirun's own (docs/use/checkpoints.md, "Signals")
    ++tally_.launcher_hangs;
    return "";
  }
  if (job.end.code == 0) return "";
  const bool refused = job.end.code == 2 || job.end.code == 3;
  const auto any_struck = [&](auto condition) {
    return std::any_of(
        job.disturbances.begin(), job.disturbances.end(),
        [&](const Disturbance& one) { return one.struck && condition(one.attempt); });
  };
  if (any_struck([](const DisturbedJob&) { return true; }) && IsMpirunsOwn(job.end)) return "";
  // Lacking memory while it starts, Open MPI ends with 1 or falls.
  const bool fell_in_start =
      job.end.code == 128 + SIGSEGV && job.end.lines.find("(PMPI_Init") != std::string::npos;
  const int code = fell_in_start ? 1 : job.end.code;
  const bool once = !job.attempt.supervised ||
                    any_struck([](const DisturbedJob& attempt) { return !attempt.codes.empty(); });
  bool allowed = false;
  for (const Disturbance& one : job.disturbances) {
    const DisturbedJob& attempt = one.attempt;
    const bool known = attempt.codes.contains(code) || (once && attempt.codes_once.contains(code));
    if (!one.struck || !known) continue;
    if (!refused || Names(job.end.lines, attempt.names)) return "";
    allowed = true;
  }
  ++tally_.wrong_ends;
  return allowed ? "no line names what is wrong" : "an exit code that the fault does not explain";
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
