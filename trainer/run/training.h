#ifndef ELASTOR_TRAINER_RUN_TRAINING_H_
#define ELASTOR_TRAINER_RUN_TRAINING_H_

#include "collective/communicator.h"
#include "core/base/status.h"
#include "trainer/run/run_context.h"

namespace elastor {

// Runs mode train from the data set to the model and the summary, or continues from the last
// checkpoint. Collective: all ranks return the same status, except for machine errors (main.cc). A
// stop signal ends the process at once, but for the time between the first step and the last
// checkpoint. REQUIRES: ExitOnStopSignals was called (core/process/stop_signals.h).
Status RunTraining(const RunOptions& options, Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_TRAINING_H_
