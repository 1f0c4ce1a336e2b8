#ifndef ELASTOR_LAUNCHER_REHEARSAL_H_
#define ELASTOR_LAUNCHER_REHEARSAL_H_

#include <cstdint>
#include <string>

#include "launcher/plan.h"
#include "launcher/run_folder.h"

namespace elastor {

// --rehearse_preemption: every run is stopped once in mid-run, as by a cluster that takes its
// machine away, and goes on; it must end with the digest that it would have had.

// The step at which a run is stopped: of its middle eight tenths one that its hash chooses. 0: the
// run has too few steps to be stopped between two.
int64_t RehearsalStep(const std::string& folder, int64_t steps);

// Whether a run that is at work is to be stopped now: it is at its step, not at its end, and no
// earlier attempt was stopped so. Whoever stops it calls AppendRehearsal first, then sends SIGUSR1.
bool RehearsalDue(const PlannedRun& run, const Attempts& attempts, const RunProgress& progress);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_REHEARSAL_H_
