#ifndef ELASTOR_LAUNCHER_SWEEP_FILE_H_
#define ELASTOR_LAUNCHER_SWEEP_FILE_H_

#include <span>
#include <string>
#include <vector>

#include "configs/proto/sweep.pb.h"
#include "core/base/status.h"

namespace elastor {

// Reads a sweep and applies the overrides: "base.path.to.field=value", a field of the base
// experiment, "resources.ranks=2", "slurm.starter=SRUN", "gap_test.from_step=64" of all tests,
// "match.multiply_adds=N", and "axis.path.to.field=value,value", other values of an axis of one
// field. In the result `base` is the base experiment with all changes and without defaults,
// base_file and `set` are empty, every axis has a name and points, and the tuning, if there is one,
// is complete (CompleteTuning). User error in one line naming the file and, where it is known, the
// line, the axis or the override.
StatusOr<Sweep> LoadSweep(const std::string& path, std::span<const std::string> overrides);

// Returns a loaded sweep as the text of a file that LoadSweep can read. Paths stay as they were
// given.
std::string SweepText(const Sweep& sweep);

// One point of every axis, in the sweep's order of axes; pointers into the sweep.
struct Combination {
  std::vector<const Point*> points;
};

// Returns the product of a loaded sweep's axes, with the first axis slowest. Without axes there is
// one combination.
std::vector<Combination> Product(const Sweep& sweep);

// Returns the base experiment with the points' settings, without defaults. User error naming axis
// and assignment.
StatusOr<Experiment> MakeExperiment(const Sweep& sweep, const Combination& combination);

// Removes the flag's name from a message of ApplyOverrides, for an assignment that comes from no
// flag.
std::string WithoutFlag(const std::string& message);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_FILE_H_
