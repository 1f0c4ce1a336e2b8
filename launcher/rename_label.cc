#include "launcher/rename_label.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/file.h"
#include "core/base/text.h"
#include "launcher/plan_file.h"
#include "launcher/sweep_file.h"
#include "launcher/sweep_status.h"

namespace elastor {
namespace {

constexpr char kName[] = "name", kSeed[] = "training.seed";

// Columns whose values are a user's names, and not fields or what the tuning says.
std::vector<size_t> LabelColumns(const Plan& plan) {
  std::vector<size_t> labels;
  for (size_t c = 0; c < plan.columns.size(); ++c) {
    const std::string& column = plan.columns[c];
    if (column.find('.') != column.npos || column == "stage" || column == "tuning_warning")
      continue;
    labels.push_back(c);
  }
  return labels;
}

// Whether the column is the seed, or only gives other names to the seeds.
bool NamesSeeds(const Plan& plan, size_t column) {
  const auto seed = std::ranges::find(plan.columns, kSeed) - plan.columns.begin();
  if (seed == static_cast<int64_t>(plan.columns.size())) return false;
  std::map<std::string, std::string> seed_of, name_of;
  for (const PlannedRun& run : plan.runs) {
    if (run.stage == Stage::kTune) continue;
    const std::string &name = run.columns[column], &value = run.columns[seed];
    if (seed_of.emplace(name, value).first->second != value) return false;
    if (name_of.emplace(value, name).first->second != name) return false;
  }
  return seed_of.size() > 1 || static_cast<int64_t>(column) == seed;
}

// A configuration's name has its points' labels, with spaces between.
void RenameWithin(const Renaming& renaming, std::string* name) {
  const std::string padded = " " + *name + " ", from = " " + renaming.from + " ";
  const size_t at = padded.find(from);
  if (at != padded.npos) name->replace(at, renaming.from.size(), renaming.to);
}

void RenameIn(const Renaming& renaming, Sweep* sweep) {
  const auto rename = [&](std::string* label) {
    if (*label == renaming.from) *label = renaming.to;
  };
  for (Axis& axis : *sweep->mutable_axis()) {
    for (std::string& label : *axis.mutable_label()) rename(&label);
    for (Point& point : *axis.mutable_point()) {
      rename(point.mutable_label());
      for (std::string& assignment : *point.mutable_set()) {
        if (assignment == StrCat(kName, "=", renaming.from)) {
          assignment = StrCat(kName, "=", renaming.to);
        }
      }
    }
  }
  for (GapTest& test : *sweep->mutable_gap_test()) {
    rename(test.mutable_first());
    rename(test.mutable_second());
  }
}

}  // namespace

StatusOr<Renaming> ParseRenaming(const std::string& flag) {
  const size_t equals = flag.find('=');
  if (equals == 0 || equals == flag.npos || equals + 1 == flag.size()) {
    return UserError("--rename=" + flag + ": expected OLD=NEW, two names");
  }
  return Renaming{flag.substr(0, equals), flag.substr(equals + 1)};
}

Status RenameLabel(const SweepFiles& files, const Renaming& renaming) {
  ELASTOR_ASSIGN_OR_RETURN(Plan plan, ReadPlan(files));
  ELASTOR_ASSIGN_OR_RETURN(Sweep sweep, LoadSweep(files.Sweep(), {}));
  const std::vector<size_t> columns = LabelColumns(plan);
  const std::string flag = "--rename=" + renaming.from + "=" + renaming.to + ": ";
  std::set<std::string> labels;
  bool known = false;
  for (const size_t c : columns) {
    std::set<std::string> of_column;
    for (const PlannedRun& run : plan.runs) of_column.insert(run.columns[c]);
    labels.insert(of_column.begin(), of_column.end());
    if (!of_column.contains(renaming.from)) continue;
    known = true;
    if (of_column.contains(renaming.to)) {
      return UserError(flag + "the sweep has a label '" + renaming.to +
                       "' already; expected a new name");
    }
  }
  if (!known) {
    return UserError(flag + "the sweep has no label '" + renaming.from +
                     "'; it has: " + Join({labels.begin(), labels.end()}, ", "));
  }
  for (PlannedRun& run : plan.runs) {
    for (const size_t c : columns) {
      if (run.columns[c] == renaming.from) run.columns[c] = renaming.to;
    }
  }
  for (TunedConfiguration& tuned : plan.tuned) RenameWithin(renaming, &tuned.name);
  RenameIn(renaming, &sweep);
  ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(files.Sweep(), SweepText(sweep)));
  ELASTOR_RETURN_IF_ERROR(WritePlan(plan, files));
  return WriteTable(plan, files);
}

std::string NameInSweep(const Plan& plan, const PlannedRun& run) {
  const auto name = std::ranges::find(plan.columns, kName) - plan.columns.begin();
  if (name < static_cast<int64_t>(plan.columns.size()) && !run.columns[name].empty()) {
    return run.columns[name];
  }
  std::vector<std::string> parts;
  for (const size_t c : LabelColumns(plan)) {
    if (!NamesSeeds(plan, c) && !run.columns[c].empty()) parts.push_back(run.columns[c]);
  }
  if (!parts.empty()) return Join(parts, ", ");
  const auto tuned = std::ranges::find(plan.columns, "stage") - plan.columns.begin();
  for (size_t c = 0; c < std::min<size_t>(plan.columns.size(), tuned); ++c) {
    if (NamesSeeds(plan, c) || run.columns[c].empty()) continue;
    parts.push_back(plan.columns[c].substr(plan.columns[c].rfind('.') + 1) + " " + run.columns[c]);
  }
  return Join(parts, ", ");
}

}  // namespace elastor
