#ifndef ELASTOR_TRAINER_COST_CALIBRATION_H_
#define ELASTOR_TRAINER_COST_CALIBRATION_H_

#include <cstdint>
#include <vector>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "trainer/data/dataset.h"
#include "trainer/experiment/resolved_model.h"

namespace elastor {

class Experiment;
class Machine;

// Measures the machine that this job runs on. Rank 0 measures the kernels of the model's own graph
// and the other pieces of a step on one unit, while the other ranks wait. Then it exchanges
// messages with a rank of its host, and with one of another host. Every rank returns rank 0's
// machine. User error, the same on all ranks, if the data cannot be read. Collective.
StatusOr<Machine> Calibrate(const Experiment& experiment, const ResolvedModel& model,
                            const Dataset& dataset, Communicator* communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_COST_CALIBRATION_H_
