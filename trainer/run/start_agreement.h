#ifndef ELASTOR_TRAINER_RUN_START_AGREEMENT_H_
#define ELASTOR_TRAINER_RUN_START_AGREEMENT_H_

#include "collective/communicator.h"
#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"

namespace elastor {

// Checks that all ranks were started alike. Ranks that were not would make different calls, or the
// same calls with different numbers. All functions are collective, and every rank returns the same
// status: a user error that names a rank, its value and rank 0's value.

// Checks that all ranks run programs of one version and commit, which may come from two compilers.
// A program whose commit does not tell its sources must be the same to the byte.
Status AgreeOnProgram(Communicator& communicator);

// Checks that all ranks have the same resolved experiment, except for fields marked `per_rank`.
Status AgreeOnExperiment(const Experiment& experiment, Communicator& communicator);

// Returns kStopped if a signal has asked any rank to stop (stop_signals.h), else ok.
Status AgreeOnGoingOn(Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_START_AGREEMENT_H_
