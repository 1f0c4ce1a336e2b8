#include "launcher/kept_folders.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "core/base/file.h"
#include "trainer/records/run_files.h"

namespace elastor {

StatusOr<std::map<std::string, std::string>> FoldersByHash(const SweepFiles& files) {
  constexpr std::string_view kJsonl = ".jsonl";
  std::map<std::string, std::string> there;
  for (const std::string& directory : {files.root + "/attempts", files.Runs()}) {
    ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesIn(directory));
    for (std::string name : names) {
      if (name.ends_with(kJsonl)) name.resize(name.size() - kJsonl.size());
      if (const std::string hash = HashOfFolder(name); !hash.empty()) there[hash] = name;
    }
  }
  return there;
}

StatusOr<PlanChange> AdoptFolders(const SweepFiles& files, Plan* plan) {
  ELASTOR_ASSIGN_OR_RETURN(auto there, FoldersByHash(files));
  PlanChange change;
  for (PlannedRun& run : plan->runs) {
    const auto found = there.find(HashOfFolder(run.folder));
    if (found == there.end()) {
      ++change.fresh;
      continue;
    }
    run.folder = found->second;
    ++change.kept;
    there.erase(found);
  }
  for (const auto& [hash, folder] : there) change.left.push_back(folder);
  std::ranges::sort(change.left);
  return change;
}

Status ContinueTrials(const Plan& plan, const SweepFiles& files) {
  namespace fs = std::filesystem;
  for (const PlannedRun& run : plan.runs) {
    const fs::path from = files.Run(run.continues) + "/";
    const fs::path to = files.Run(run.folder), copy = files.Run("continued");
    std::error_code error;
    if (run.continues.empty() || fs::exists(to, error) ||
        !fs::exists(from / kCheckpointsFolder, error)) {
      continue;
    }
    // Files of checkpoints are never written to again; the trainer goes on in the others.
    fs::remove_all(copy, error);
    ELASTOR_RETURN_IF_ERROR(MakeDirectory(copy));
    fs::copy(from / kCheckpointsFolder, copy / kCheckpointsFolder,
             fs::copy_options::recursive | fs::copy_options::create_hard_links, error);
    if (error) return MachineError(copy.string() + ": link: " + error.message());
    for (const char* name : {kMetricsFile, kExperimentFile, kPlanFile}) {
      ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(from / name));
      ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(copy / name, text));
    }
    fs::rename(copy, to, error);
    if (error) return MachineError(to.string() + ": rename: " + error.message());
  }
  return OkStatus();
}

}  // namespace elastor
