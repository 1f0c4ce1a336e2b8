#ifndef ELASTOR_LAUNCHER_REHEARSAL_H_
#define ELASTOR_LAUNCHER_REHEARSAL_H_

#include <cstdint>
#include <string>

#include "launcher/plan.h"
#include "launcher/run_folder.h"
#include "trainer/records/progress_reader.h"

namespace elastor {

// --rehearse_preemption: every run is stopped once in mid-run, as by a cluster that takes its
// machine away, and goes on; it must end with the digest that it would have had.

// Returns the step at which a run is stopped, which its hash chooses from the middle eight tenths
// of its steps. 0: the run has too few steps.
int64_t RehearsalStep(const std::string& folder, int64_t steps);

// Returns whether a running run must be stopped now: it has reached its step but not its end, and
// no earlier attempt was stopped by a rehearsal. The caller then calls AppendRehearsal first and
// sends SIGUSR1.
bool RehearsalDue(const PlannedRun& run, const Attempts& attempts, const RunProgress& progress);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_REHEARSAL_H_
