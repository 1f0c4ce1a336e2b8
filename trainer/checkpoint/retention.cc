#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/file.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/manifest.h"

namespace elastor {
namespace {

constexpr std::string_view kStep = "step-";
constexpr std::string_view kBest = "best-";
constexpr std::string_view kOld = ".old";
constexpr std::string_view kPartial = ".partial";

std::string NameOf(std::string_view kind, int64_t step) {
  char digits[24];
  std::snprintf(digits, sizeof(digits), "%010lld", static_cast<long long>(step));
  return std::string(kind) + digits;
}

// The step of a name that NameOf(kind, step) makes.
std::optional<int64_t> StepOf(std::string_view kind, const std::string& name) {
  if (!name.starts_with(kind) || name.size() > kind.size() + 18) return std::nullopt;
  const std::string digits = name.substr(kind.size());
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) return std::nullopt;
  const int64_t step = std::stoll(digits);
  if (NameOf(kind, step) != name) return std::nullopt;
  return step;
}

// Steps of the whole folders of a kind, ascending. One that was being replaced when the run was
// killed has its old name still.
StatusOr<std::set<int64_t>> StepsOf(std::string_view kind, const std::set<std::string>& names,
                                    const std::string& directory) {
  std::set<int64_t> steps;
  for (const std::string& name : names) {
    const bool old = name.ends_with(kOld);
    const auto step = StepOf(kind, old ? name.substr(0, name.size() - kOld.size()) : name);
    if (!step) continue;
    ELASTOR_ASSIGN_OR_RETURN(const bool whole,
                             IsThere(directory + "/" + name + "/" + kManifestFile));
    if (whole) steps.insert(*step);
  }
  return steps;
}

// Takes out of the checkpoints `steps` what may go: all but the last `keep` and their bases;
// nothing while one of those cannot be read.
std::set<int64_t> TakeOld(const std::string& directory, int64_t keep, std::set<int64_t>* steps) {
  std::set<int64_t> old;
  while (static_cast<int64_t>(steps->size()) > std::max(keep, int64_t{1})) {
    old.insert(steps->extract(steps->begin()));
  }
  if (old.empty()) return old;  // spares reading manifests
  for (const int64_t step : std::set<int64_t>(*steps)) {
    const std::optional<std::string> name =
        PeekBase(DirectoryToRead(directory + "/" + CheckpointName(step)));
    if (!name) return {};  // it may need any of them
    const std::optional<int64_t> base = StepOf(kStep, *name);
    if (base && old.erase(*base) > 0) steps->insert(*base);
  }
  return old;
}

// The folder of a step, under its own name and the old one.
Status RemoveStep(const std::string& directory, std::string_view kind, int64_t step) {
  const std::string path = directory + "/" + NameOf(kind, step);
  ELASTOR_RETURN_IF_ERROR(RemoveDirectory(path + std::string(kOld)));
  return RemoveDirectory(path);
}

}  // namespace

std::string CheckpointName(int64_t step) { return NameOf(kStep, step); }
std::string BestName(int64_t step) { return NameOf(kBest, step); }

StatusOr<std::string> LastCheckpoint(const std::string& directory) {
  ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesIn(directory));
  ELASTOR_ASSIGN_OR_RETURN(const std::set<int64_t> steps, StepsOf(kStep, names, directory));
  if (steps.empty()) return std::string();
  return directory + "/" + CheckpointName(*steps.rbegin());
}

Status RemoveOldCheckpoints(const std::string& directory, int64_t keep, int64_t best_step) {
  ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesIn(directory));
  ELASTOR_ASSIGN_OR_RETURN(std::set<int64_t> steps, StepsOf(kStep, names, directory));
  const std::set<int64_t> old = TakeOld(directory, keep, &steps);
  // Deltas before their bases: whatever is left if the run is killed, can be read.
  for (auto step = old.rbegin(); step != old.rend(); ++step) {
    ELASTOR_RETURN_IF_ERROR(RemoveStep(directory, kStep, *step));
  }
  ELASTOR_ASSIGN_OR_RETURN(std::set<int64_t> unused, StepsOf(kBest, names, directory));
  unused.erase(best_step);
  for (const int64_t step : steps) {
    if (unused.empty()) break;  // spares reading manifests
    const StatusOr<CheckpointMetadata> metadata =
        ReadCheckpointMetadata(directory + "/" + CheckpointName(step));
    if (metadata.ok()) {
      unused.erase(metadata->control.best_step());
    } else {
      unused.clear();  // a damaged one may refer to any; it is no reason for the run to end
    }
  }
  for (const int64_t step : unused) ELASTOR_RETURN_IF_ERROR(RemoveStep(directory, kBest, step));
  for (const std::string& name : names) {
    const std::string path = directory + "/" + name;
    const bool replaced =
        name.ends_with(kOld) && DirectoryToRead(path.substr(0, path.size() - kOld.size())) != path;
    const bool ours = name.starts_with(kStep) || name.starts_with(kBest);
    if (ours && (replaced || name.ends_with(kPartial))) {
      ELASTOR_RETURN_IF_ERROR(RemoveDirectory(path));
    }
  }
  return OkStatus();
}

}  // namespace elastor
