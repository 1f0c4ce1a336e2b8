#ifndef ELASTOR_LAUNCHER_RENAME_LABEL_H_
#define ELASTOR_LAUNCHER_RENAME_LABEL_H_

#include <string>
#include <vector>

#include "core/base/status.h"
#include "launcher/plan.h"
#include "launcher/run_folder.h"

namespace elastor {

// "OLD=NEW" in two.
struct Renaming {
  std::string from, to;
};
// Reads a flag. User error, which names the flag, unless both parts are there.
StatusOr<Renaming> ParseRenaming(const std::string& flag);

// Gives a label of a sweep's points another name: in plan.jsonl, sweep.textproto and runs.csv.
// Folders keep their names, and nothing is trained again: a run is known by the hash in its
// folder's name. User error if the sweep has no such label, or has the new one already.
Status RenameLabel(const SweepFiles& files, const Renaming& renaming);

// Returns the name of the model or setting that a run is of: by the field `name` if the points set
// it, else the labels of its points, else the fields that vary. Seeds and tuned values are left
// out. Empty: the sweep varies nothing else.
std::string NameInSweep(const Plan& plan, const PlannedRun& run);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_RENAME_LABEL_H_
