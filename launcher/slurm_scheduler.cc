#include "launcher/slurm_scheduler.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "launcher/attempt.h"
#include "launcher/slurm_array.h"
#include "launcher/slurm_client.h"
#include "launcher/sweep_status.h"

namespace elastor {
namespace {

// How long a submission that nobody confirmed may take to show up.
constexpr int kLooks = 3;
constexpr std::chrono::seconds kLookAfter(2);
constexpr int kSubmissions = 3;  // of one array, when Slurm does not answer
constexpr int kAssumedArraySize = 1001;
constexpr double kLeastPollSeconds = 2, kMostPollSeconds = 60;

// The exit code that stands for what Slurm says of an element that left no word itself.
constexpr int kKilledCode = 128 + SIGKILL;

// What Slurm has of a sweep, and what the folder expects of it.
struct SlurmView {
  std::vector<OpenArray> arrays;
  std::vector<SlurmJob> advance;                 // alive
  std::map<std::string, SlurmJob> last_element;  // by folder, of the last array that has the run
  std::map<int, std::string> alive_arrays;       // Slurm's id, by number
  std::set<std::string> known_ids;               // of arrays that Slurm remembers
  int alive_elements = 0;
};

SlurmView Match(std::vector<OpenArray> arrays, const std::vector<SlurmJob>& jobs,
                const SweepFiles& files) {
  SlurmView view;
  std::map<std::string, std::vector<const SlurmJob*>> of_script;
  for (const SlurmJob& job : jobs) of_script[job.script].push_back(&job);
  for (const SlurmJob* job : of_script[AdvanceScript(files)]) {
    if (job->IsAlive()) view.advance.push_back(*job);
  }
  for (OpenArray& array : arrays) {
    for (size_t i = 0; i < array.folders.size(); ++i) {
      view.last_element[array.folders[i]] = {.id = array.job, .element = static_cast<int>(i)};
    }
    for (const SlurmJob* job : of_script[ArrayScript(files, array.number)]) {
      view.known_ids.insert(job->id);
      if (job->element < 0 || job->element >= static_cast<int>(array.folders.size())) continue;
      view.last_element[array.folders[static_cast<size_t>(job->element)]] = *job;
      array.job = job->id;
      if (!job->IsAlive()) continue;
      view.alive_arrays[array.number] = job->id;
      ++view.alive_elements;
    }
  }
  view.arrays = std::move(arrays);
  return view;
}

StatusOr<SlurmView> Look(const SweepFiles& files) {
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<SlurmJob> jobs, JobsNamed(JobName(files)));
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<OpenArray> arrays, ReadOpenArrays(files));
  return Match(arrays, jobs, files);
}

// Waits for arrays that were perhaps submitted: their launcher was killed before it knew.
StatusOr<SlurmView> LookUntilSure(const SweepFiles& files) {
  for (int looks = 1;; ++looks) {
    ELASTOR_ASSIGN_OR_RETURN(SlurmView view, Look(files));
    const bool sure =
        std::ranges::none_of(view.arrays, [](const auto& array) { return array.job.empty(); });
    if (sure || looks == kLooks) return view;
    std::this_thread::sleep_for(kLookAfter);
  }
}

bool Is(const std::string& state, std::initializer_list<const char*> states) {
  return std::ranges::find(states, state) != states.end();
}

class Submission {
 public:
  Submission(const SlurmSweep& sweep, Submitter submitter)
      : sweep_(sweep), files_(sweep.files), submitter_(submitter) {}

  StatusOr<int> Run() {
    ELASTOR_ASSIGN_OR_RETURN(most_elements_, MaxArraySize());
    ELASTOR_RETURN_IF_ERROR(MakeDirectory(files_.Slurm()));
    ELASTOR_ASSIGN_OR_RETURN(view_, LookUntilSure(files_));
    ELASTOR_RETURN_IF_ERROR(NoteEnds());
    for (const OpenArray& array : view_.arrays) {
      if (view_.alive_arrays.contains(array.number)) continue;
      ELASTOR_RETURN_IF_ERROR(CloseArray(files_, array.number));
    }
    ELASTOR_RETURN_IF_ERROR(SubmitRuns());
    ELASTOR_RETURN_IF_ERROR(SubmitAdvance());
    return view_.alive_elements;
  }

 private:
  bool IsAlive(const std::string& folder) const {
    const auto found = view_.last_element.find(folder);
    return found != view_.last_element.end() && !found->second.state.empty() &&
           found->second.IsAlive();
  }

  Status NoteEnds() {
    std::vector<std::string> gone;
    for (const OpenArray& array : view_.arrays) {
      if (!view_.alive_arrays.contains(array.number) && !array.job.empty()) {
        gone.push_back(array.job);
      }
    }
    const std::map<std::string, std::string> accounted = AccountedStates(gone, JobName(files_));
    for (const PlannedRun& run : sweep_.plan.runs) {
      const std::string path = files_.Attempts(run.folder);
      if (submitter_ == Submitter::kUser && ReadAttempts(path).exit_code == kCancelled) {
        ELASTOR_RETURN_IF_ERROR(AppendForgiveness(path));
      }
      const auto last = view_.last_element.find(run.folder);
      if (last == view_.last_element.end() || last->second.id.empty()) continue;
      SlurmJob element = last->second;
      const std::string id = StrCat(element.id, "_", element.element);
      const auto state = accounted.find(id);
      if (element.state.empty() && state != accounted.end()) element.state = state->second;
      if (!element.state.empty() && element.IsAlive()) continue;
      // A waiting element leaves a trace only if its whole array is cancelled. An element that is
      // cancelled alone vanishes from Slurm's record of the array.
      const bool began = ReadAttempts(path).slurm.starts_with(id + " ");
      if (element.state.empty() && !began && view_.known_ids.contains(element.id)) {
        element.state = "CANCELLED";
      }
      ELASTOR_RETURN_IF_ERROR(NoteEnd(run, id, element.state, began));
    }
    return OkStatus();
  }

  // Notes the end of an element that no longer exists and that may have begun an attempt. `state`
  // is empty when nobody knows it.
  Status NoteEnd(const PlannedRun& run, const std::string& id, const std::string& state,
                 bool began) {
    const RunStatus status = ReadStatus(run, files_);
    if (status.state == RunState::kDone || status.state == RunState::kFailed) return OkStatus();
    const std::string path = files_.Attempts(run.folder);
    if (state == "CANCELLED") {
      return submitter_ == Submitter::kUser ? OkStatus() : AppendCancelled(path);
    }
    if (began && !status.attempts.open) return OkStatus();  // it has said all itself
    if (!began && state == "COMPLETED") return OkStatus();  // it found nothing to do
    const bool lost =
        state.empty() || Is(state, {"TIMEOUT", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL"});
    const int exit_code = lost                                ? kStoppedCode
                          : began || state == "OUT_OF_MEMORY" ? kKilledCode
                                                              : kMachineCode;
    const std::string why = state.empty() ? "and Slurm knows it no more" : "as " + state;
    return AppendEnd(path, exit_code, /*stopped_by_launcher=*/false, 0,
                     "job " + id + " ended without a word, " + why + "; see " + files_.Slurm());
  }

  Status SubmitRuns() {
    std::vector<const PlannedRun*> left;
    for (const PlannedRun& run : sweep_.plan.runs) {
      const RunState state = ReadStatus(run, files_).state;
      if (state == RunState::kDone || state == RunState::kFailed || IsAlive(run.folder)) continue;
      left.push_back(&run);
    }
    for (const auto& runs : GroupIntoArrays(left, most_elements_)) {
      const Status submitted = SubmitArray(runs);
      if (submitted.ok()) continue;
      // The site may admit only so many jobs at a time: the rest goes when these have ended.
      if (view_.alive_arrays.empty()) return submitted;
      Say("not submitted yet: " + submitted.message());
      break;
    }
    return OkStatus();
  }

  Status SubmitArray(const std::vector<const PlannedRun*>& runs) {
    for (const PlannedRun* run : runs) {
      ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(files_.Experiment(run->folder), run->experiment));
    }
    Status submitted;
    for (int tries = 0; tries < kSubmissions; ++tries) {
      ELASTOR_ASSIGN_OR_RETURN(const int number, NextArrayNumber(files_));
      ELASTOR_RETURN_IF_ERROR(WriteArray(runs, number, files_, sweep_.trainer, sweep_.slurm));
      StatusOr<std::string> id = Submit(ArrayArguments(runs, number, files_, sweep_.slurm));
      submitted = id.status();
      if (submitted.code() == StatusCode::kStopped) id = IdOf(number);
      if (id.ok()) {
        ELASTOR_RETURN_IF_ERROR(RecordJob(files_, number, *id));
        Say(StrCat("array  ", number, "  job ", *id, ", ", CountText(runs.size(), "run")));
        view_.alive_arrays[number] = *id;
        view_.alive_elements += static_cast<int>(runs.size());
        submitted_ = true;
        return OkStatus();
      }
      // Should Slurm have taken it after all, its elements will find nothing to do.
      ELASTOR_RETURN_IF_ERROR(CloseArray(files_, number));
      if (submitted.code() != StatusCode::kStopped) return submitted;
    }
    return MachineError(submitted.message());
  }

  // Finds Slurm's id for an array that was perhaps submitted.
  StatusOr<std::string> IdOf(int number) const {
    for (int looks = 0; looks < kLooks; ++looks) {
      std::this_thread::sleep_for(kLookAfter);
      ELASTOR_ASSIGN_OR_RETURN(const SlurmView view, Look(files_));
      const auto found = view.alive_arrays.find(number);
      if (found != view.alive_arrays.end()) return found->second;
    }
    return MachineError(StrCat("array ", number, " was not taken"));
  }

  Status SubmitAdvance() {
    if (view_.alive_arrays.empty()) return OkStatus();
    const char* own = std::getenv("SLURM_JOB_ID");
    std::erase_if(view_.advance,
                  [&](const SlurmJob& job) { return own != nullptr && job.id == own; });
    if (!submitted_ && !view_.advance.empty()) return OkStatus();
    ELASTOR_RETURN_IF_ERROR(WriteScript(AdvanceScript(files_), sweep_.advance, sweep_.slurm));
    std::vector<std::string> after;
    for (const auto& [number, id] : view_.alive_arrays) after.push_back(id);
    const int minutes = sweep_.plan.runs.front().minutes;
    const StatusOr<std::string> id = Submit(AdvanceArguments(after, minutes, files_, sweep_.slurm));
    if (!id.ok()) {
      Say("no job will go on with the sweep when its arrays have ended: " + id.status().message());
      return OkStatus();
    }
    for (const SlurmJob& job : view_.advance) {
      if (job.state == "PENDING") ELASTOR_RETURN_IF_ERROR(CancelJob(job.id));
    }
    return OkStatus();
  }

  const SlurmSweep& sweep_;
  const SweepFiles& files_;
  const Submitter submitter_;
  int most_elements_ = 0;
  SlurmView view_;
  bool submitted_ = false;
};

// Prints what has changed since the last look.
class Progress {
 public:
  Progress(const Plan& plan, const SweepFiles& files) : plan_(plan), files_(files) {}

  // Whether anything has.
  bool Print(const SlurmView& view) {
    bool changed = false;
    for (const PlannedRun& run : plan_.runs) {
      std::string& told = told_[run.folder];
      if (told == "done" || told == "failed") continue;
      const RunStatus status = ReadStatus(run, files_);
      std::string now;
      if (status.state == RunState::kDone) {
        now = "done";
      } else if (status.state == RunState::kFailed) {
        now = "failed";
      } else if (const auto job = view.last_element.find(run.folder);
                 job != view.last_element.end() && job->second.state == "RUNNING") {
        now = StrCat("running, attempt ", status.attempts.started);
      }
      done_ += now == "done";
      if (now == told || now.empty()) continue;
      const bool known_before = first_ && (now == "done" || now == "failed");
      told = now;
      if (known_before) continue;
      changed = true;
      if (now == "done") {
        Say(StrCat("done   ", run.folder, "  ", Metrics(*status.result), "  ",
                   Duration(status.result->wall_s), "  ", done_, "/", plan_.runs.size(), " done"));
      } else if (now == "failed") {
        Say("failed " + run.folder + "  " + CauseOfAttempt(status.attempts.exit_code) + ": " +
            status.attempts.last_line);
      } else {
        Say((status.attempts.started > 1 ? "again  " : "start  ") + run.folder + "  on " +
            view.last_element.at(run.folder).nodes);
      }
    }
    if (std::exchange(first_, false)) Announce(view);
    return changed;
  }

 private:
  void Announce(const SlurmView& view) const {
    Say(StrCat("sweep ", plan_.name, ": ", plan_.runs.size(), " runs, ", done_, " done, ",
               view.alive_elements, " in Slurm as jobs ", JobName(files_)));
  }

  const Plan& plan_;
  const SweepFiles& files_;
  std::map<std::string, std::string> told_;  // by folder, what was printed last
  int done_ = 0;
  bool first_ = true;
};

}  // namespace

StatusOr<int> SubmitWhatIsLeft(const SlurmSweep& sweep, Submitter submitter) {
  return Submission(sweep, submitter).Run();
}

StatusOr<std::string> DrySubmission(const SlurmSweep& sweep) {
  ELASTOR_ASSIGN_OR_RETURN(const int next, NextArrayNumber(sweep.files));
  const StatusOr<int> size = MaxArraySize();
  std::vector<const PlannedRun*> left;
  for (const PlannedRun& run : sweep.plan.runs) {
    const RunState state = ReadStatus(run, sweep.files).state;
    if (state == RunState::kWaiting || state == RunState::kCutOff) left.push_back(&run);
  }
  const auto arrays = GroupIntoArrays(left, size.ok() ? *size : kAssumedArraySize);
  std::string text;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const int number = next + static_cast<int>(i);
    text +=
        "sbatch " + Join(ArrayArguments(arrays[i], number, sweep.files, sweep.slurm), " ") + "\n";
  }
  return StrCat(text, left.size(), " runs to submit, job arrays: ", arrays.size(),
                size.ok() ? "" : " (Slurm was not asked: " + size.status().message() + ")", "\n");
}

Status FollowJobs(const Plan& plan, const SweepFiles& files) {
  sigset_t stops;
  sigemptyset(&stops);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&stops, signal);
  sigset_t before;
  sigprocmask(SIG_BLOCK, &stops, &before);
  Progress progress(plan, files);
  bool answered = true;
  for (Clock::time_point change = Clock::now();;) {
    const StatusOr<SlurmView> view = Look(files);
    if (view.ok()) {
      if (progress.Print(*view)) change = Clock::now();
      if (view->alive_elements == 0 && view->advance.empty()) {
        // The launcher plans and reports then, and a signal ends it at once.
        sigprocmask(SIG_SETMASK, &before, nullptr);
        return OkStatus();
      }
    } else if (answered) {
      Say("Slurm does not answer, its jobs go on: " + view.status().message());
    }
    answered = view.ok();
    // An eighth of the time since something happened.
    const double seconds =
        std::clamp(SecondsSince(change) / 8, kLeastPollSeconds, kMostPollSeconds);
    const timespec patience = {.tv_sec = static_cast<time_t>(seconds), .tv_nsec = 0};
    if (sigtimedwait(&stops, nullptr, &patience) < 0) continue;
    return StoppedBySignal(
        "the jobs go on without this launcher; --status shows them, --stop "
        "cancels them, the same command follows them again");
  }
}

StatusOr<std::map<std::string, std::string>> JobStates(const SweepFiles& files) {
  std::map<std::string, std::string> states;
  if (std::error_code none; !std::filesystem::exists(files.Slurm(), none)) return states;
  ELASTOR_ASSIGN_OR_RETURN(const SlurmView view, Look(files));
  for (const auto& [folder, job] : view.last_element) {
    if (job.state.empty() || !job.IsAlive()) continue;
    std::string& state = states[folder];
    state = job.state;
    for (char& c : state) c = static_cast<char>(std::tolower(c));
    state += job.nodes.empty() ? " (" + job.reason + ")" : " on " + job.nodes;
  }
  return states;
}

Status CancelJobs(const SweepFiles& files) {
  ELASTOR_ASSIGN_OR_RETURN(const SlurmView view, Look(files));
  ELASTOR_RETURN_IF_ERROR(CancelNamed(JobName(files)));
  Say(StrCat("cancelled: ", view.alive_elements,
             " elements of job arrays; those that run end within seconds"));
  return OkStatus();
}

}  // namespace elastor
