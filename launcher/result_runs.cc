#include "launcher/result_runs.h"

#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "core/base/text.h"
#include "launcher/plan.h"
#include "launcher/plan_file.h"
#include "launcher/rename_label.h"
#include "launcher/run_folder.h"

namespace elastor {
namespace {

class Finder {
 public:
  Status Add(const std::string& folder) {
    const SweepFiles sweep = {folder};
    if (IsSweep(sweep)) return AddSweep(sweep);
    // A run lies in its sweep's folder runs.
    const std::filesystem::path path =
        std::filesystem::path(folder + "/.").lexically_normal().parent_path();
    const SweepFiles around = {(path / ".." / "..").string()};
    ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string>* trials, TrialsOf(around));
    if (trials->contains(path.filename())) {
      ++left_out_[std::filesystem::path(around.root).lexically_normal()].trials;
    } else {
      runs_.folders.push_back(folder);
      const auto name = names_[around.root].find(path.filename());
      runs_.names.push_back(name == names_[around.root].end() ? "" : name->second);
    }
    return OkStatus();
  }

  ResultRuns Take() {
    for (const auto& [sweep, counts] : left_out_) {
      const auto of = [](int count, const std::string& what) { return StrCat(count, " ", what); };
      std::string what = counts.trials > 0 ? of(counts.trials, "tuning runs") : "";
      if (counts.unfinished > 0) {
        what += (what.empty() ? "" : " and ") + of(counts.unfinished, "unfinished runs");
      }
      runs_.left_out += sweep + ": " + what + " are left out\n";
    }
    return std::move(runs_);
  }

 private:
  struct LeftOut {
    int trials = 0, unfinished = 0;
  };

  static bool IsSweep(const SweepFiles& files) {
    std::error_code none;
    return std::filesystem::exists(files.Plan(), none);
  }

  Status AddSweep(const SweepFiles& files) {
    ELASTOR_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(files));
    const size_t before = runs_.folders.size();
    LeftOut left_out;
    for (const PlannedRun& run : plan.runs) {
      if (run.stage == Stage::kTune) {
        ++left_out.trials;
      } else if (ReadResult(files, run.folder)) {
        runs_.folders.push_back(files.Run(run.folder));
        runs_.names.push_back(NameInSweep(plan, run));
      } else {
        ++left_out.unfinished;
      }
    }
    if (runs_.folders.size() == before) {
      return UserError(files.root + ": none of its final runs is finished; expected some");
    }
    if (left_out.trials + left_out.unfinished > 0) left_out_[files.root] = left_out;
    return OkStatus();
  }

  // Folders of the trials of a sweep; where there is none, none.
  StatusOr<const std::set<std::string>*> TrialsOf(const SweepFiles& files) {
    const auto [trials, is_new] = trials_.emplace(files.root, std::set<std::string>());
    if (!is_new || !IsSweep(files)) return &trials->second;
    ELASTOR_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(files));
    for (const PlannedRun& run : plan.runs) {
      if (run.stage == Stage::kTune) {
        trials->second.insert(run.folder);
      } else {
        names_[files.root][run.folder] = NameInSweep(plan, run);
      }
    }
    return &trials->second;
  }

  ResultRuns runs_;
  std::map<std::string, LeftOut> left_out_;              // by sweep
  std::map<std::string, std::set<std::string>> trials_;  // by sweep
  // Names of the final runs, by sweep and folder.
  std::map<std::string, std::map<std::string, std::string>> names_;
};

}  // namespace

StatusOr<ResultRuns> FindResultRuns(std::span<const std::string> folders) {
  Finder finder;
  for (const std::string& folder : folders) ELASTOR_RETURN_IF_ERROR(finder.Add(folder));
  ResultRuns runs = finder.Take();
  if (!runs.folders.empty() || folders.empty()) return runs;
  return UserError(folders.front() + ": was only tuned by; expected final runs");
}

}  // namespace elastor
