#include "tests/faults/subject.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "core/base/log.h"

namespace elastor {
namespace {

std::string Between(const std::string& text, const std::string& begin, char end) {
  const size_t at = text.find(begin);
  if (at == text.npos) return "";
  return text.substr(at + begin.size(), text.find(end, at + begin.size()) - at - begin.size());
}

// Tries of a supervised job without a later checkpoint between them: faults strike once.
constexpr int kMostRestarts = 2;
// A supervised job is several, one after the other.
constexpr double kSupervisedHangs = 4;

std::string Joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

void Append(const std::vector<std::string>& more, std::vector<std::string>* words) {
  words->insert(words->end(), more.begin(), more.end());
}

}  // namespace

Record RecordOf(const std::string& run) {
  Record record;
  record.digest = Between(Contents(run + "/summary.json"), "\"state_digest\": \"", '"');
  std::istringstream metrics(Contents(run + "/metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);) {
    if (line.find("\"event\":\"checkpoint\"") != line.npos) {
      record.states[Between(line, "\"step\":", ',')] = Between(line, "\"digest\":\"", '"');
    } else {
      record.lines.insert(line.substr(0, line.find(",\"samples_per_s\"")));
    }
  }
  return record;
}

std::string Differences(const Record& found, const Record& undisturbed, bool lines_may_lack) {
  constexpr int kMost = 6;
  int count = 0;
  std::string differences;
  const auto add = [&](const std::string& what, const std::string& line) {
    if (++count <= kMost) differences += "  " + what + " " + line + "\n";
  };
  for (const auto& [step, digest] : found.states) {
    const auto same = undisturbed.states.find(step);
    if (same != undisturbed.states.end() && same->second != digest)
      add("other state at step", step);
  }
  for (const std::string& line : undisturbed.lines) {
    if (!lines_may_lack && !found.lines.contains(line)) add("lacks", line);
  }
  for (std::string line : found.lines) {
    if (undisturbed.lines.contains(line)) continue;
    // A run that lacked but its end measures its end again: that evaluation decides nothing more.
    const std::string repeated = "\"scheduled\":false";
    if (const size_t at = line.find(repeated); at != line.npos) {
      line.replace(at, repeated.size(), "\"scheduled\":true");
      if (undisturbed.lines.contains(line)) continue;
    }
    add("has", line);
  }
  return differences;
}

Subject::Subject(const std::string& name, const std::string& experiment, const std::string& data,
                 int every_steps, const std::string& work, const Programs& programs,
                 double hang_seconds)
    : name_(name),
      data_(data),
      every_steps_(every_steps),
      work_(work),
      programs_(programs),
      hang_seconds_(hang_seconds),
      arguments_{"--experiment=" + experiment, "--set=training.log_every_steps=1",
                 "--set=checkpoint.every_steps=" + std::to_string(every_steps),
                 "--set=parallel.deadline_seconds=60", "--set=parallel.start_seconds=30"} {}

std::vector<std::string> Subject::TrainerCommand(const DisturbedJob& attempt, bool resumes) const {
  std::vector<std::string> words = {programs_.trainer};
  Append(arguments_, &words);
  Append({"--set=data.path=" + data_, "--output_dir=" + attempt.run}, &words);
  if (resumes) words.push_back("--resume");
  Append(attempt.arguments, &words);
  return words;
}

std::map<std::string, std::string> Subject::Environment(const DisturbedJob& attempt) const {
  std::map<std::string, std::string> environment = attempt.environment;
  if (environment.contains("ELASTOR_FAULT")) {
    environment["LD_PRELOAD"] = programs_.layer;
    environment["ELASTOR_FAULT_UNDER"] = attempt.run + ":" + data_;
  }
  return environment;
}

JobPlan Subject::PlanJob(const DisturbedJob& attempt, bool resumes) const {
  const std::vector<std::string> trainer = TrainerCommand(attempt, resumes);
  JobPlan plan = {.command = trainer,
                  .environment = Environment(attempt),
                  .trainer = programs_.trainer,
                  .supervised = attempt.supervised,
                  .output_dir = attempt.run,
                  .log = attempt.work + "/log",
                  .hang_seconds = hang_seconds_ * (attempt.supervised ? kSupervisedHangs : 1),
                  .strikes = {}};
  if (attempt.ranks == 1) {
    plan.command = attempt.before;
    Append(trainer, &plan.command);
    return plan;
  }
  std::vector<std::string> mpirun = attempt.before;
  Append({"mpirun", "--mca", "orte_execute_quiet", "1", "--oversubscribe", "--bind-to", "none",
          "--mca", "mpi_yield_when_idle", "1"},
         &mpirun);
  Append(attempt.mpirun, &mpirun);
  // Of the ranks alone: mpirun itself is as it is.
  for (const auto& [name, value] : plan.environment) Append({"-x", name + "=" + value}, &mpirun);
  plan.environment.clear();
  std::vector<std::string>& words = plan.command;
  words = attempt.agent;
  if (attempt.supervised) {
    // The agent gives its words to a shell.
    const std::string quote = attempt.agent.empty() ? "" : "'";
    Append(trainer, &words);
    Append({"--supervise", "--ranks=" + std::to_string(attempt.ranks), "--hosts=" + attempt.hosts,
            "--max_restarts=" + std::to_string(kMostRestarts),
            "--launch=" + quote + Joined(mpirun) + quote},
           &words);
    return plan;
  }
  Append(mpirun, &words);
  if (!attempt.hosts.empty()) Append({"--host", attempt.hosts}, &words);
  const int alike = attempt.ranks - (attempt.odd_arguments.empty() ? 0 : 1);
  Append({"-np", std::to_string(alike)}, &words);
  Append(trainer, &words);
  if (alike == attempt.ranks) return plan;
  Append({":", "-np", "1"}, &words);
  Append(trainer, &words);
  Append(attempt.odd_arguments, &words);
  return plan;
}

std::vector<std::string> Subject::SupervisedArguments() const {
  return {"--set=checkpoint.delta_every_steps=" + std::to_string(every_steps_),
          "--set=checkpoint.every_steps=0"};
}

const Undisturbed& Subject::On(int ranks, bool supervised) {
  Undisturbed& found = undisturbed_[{ranks, supervised}];
  if (!found.boundaries.empty()) return found;
  DisturbedJob attempt;
  attempt.supervised = supervised;
  if (supervised) attempt.arguments = SupervisedArguments();
  attempt.run = work_ + "/undisturbed";
  attempt.work = work_;
  attempt.ranks = ranks;
  const std::string counts = work_ + "/boundaries";
  attempt.environment["ELASTOR_FAULT"] = "count";
  attempt.environment["ELASTOR_FAULT_MARK"] = counts;
  JobPlan plan = PlanJob(attempt, /*resumes=*/false);
  plan.hang_seconds *= 10;
  const ObservedEnd end = RunJob(plan);
  CHECK_EQ(end.code, 0) << name_ << " on " << ranks << " ranks: " << end.lines;
  const Record record = RecordOf(attempt.run);
  CHECK(!record.digest.empty()) << attempt.run << ": no digest in its summary";
  if (record_.digest.empty()) record_ = record;
  found.seconds = end.seconds;
  found.records = static_cast<int>(record.lines.size() + record.states.size());
  for (int rank = 0; rank < ranks; ++rank) {
    found.boundaries.push_back(std::atoll(Contents(counts + "." + std::to_string(rank)).c_str()));
  }
  std::filesystem::remove_all(attempt.run);
  const int64_t boundaries =
      std::accumulate(found.boundaries.begin(), found.boundaries.end(), int64_t{0});
  CHECK_GT(boundaries, 0) << "the faulty layer is not loaded";
  std::printf("undisturbed: %s on %d ranks%s: %.1f s, %lld boundaries\n", name_.c_str(), ranks,
              supervised ? ", supervised" : "", end.seconds, static_cast<long long>(boundaries));
  return found;
}

}  // namespace elastor
