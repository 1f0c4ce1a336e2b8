#ifndef ELASTOR_TRAINER_RUN_START_AGREEMENT_H_
#define ELASTOR_TRAINER_RUN_START_AGREEMENT_H_

#include "collective/communicator.h"
#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"

namespace elastor {

// Ranks that were started differently must not work together: they would make other calls, or the
// same ones with other numbers. All of these are collective; every rank returns the same status, a
// user error that names a rank, what it has and what rank 0 has.

// Whether all ranks run the same program, to the byte.
Status AgreeOnProgram(Communicator& communicator);

// Whether all ranks have the same resolved experiment, but for fields marked `per_rank`.
Status AgreeOnExperiment(const Experiment& experiment, Communicator& communicator);

// Whether a signal has asked any rank to stop (stop_signals.h): kStopped, else ok.
Status AgreeOnGoingOn(Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_START_AGREEMENT_H_
