#ifndef ELASTOR_LAUNCHER_KEPT_FOLDERS_H_
#define ELASTOR_LAUNCHER_KEPT_FOLDERS_H_

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "launcher/plan.h"
#include "launcher/run_folder.h"

namespace elastor {

// Returns the folders of a sweep's runs by their hashes. A run that was refused has attempts and no
// folder.
StatusOr<std::map<std::string, std::string>> FoldersByHash(const SweepFiles& files);

// Changes between a new plan and the runs already in the sweep's folder.
struct PlanChange {
  int kept = 0;                   // runs that have a folder, under their old name
  int fresh = 0;                  // all others
  std::vector<std::string> left;  // folders of runs that are no longer in the sweep
};
// Keeps the folder names of runs that already have a folder, whatever their labels are now.
StatusOr<PlanChange> AdoptFolders(const SweepFiles& files, Plan* plan);

// Gives trials without a folder the checkpoints of the previous rung, from which they resume.
Status ContinueTrials(const Plan& plan, const SweepFiles& files);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_KEPT_FOLDERS_H_
