#ifndef ELASTOR_TRAINER_RUN_INFERENCE_H_
#define ELASTOR_TRAINER_RUN_INFERENCE_H_

#include "collective/communicator.h"
#include "core/base/status.h"
#include "trainer/run/run_context.h"

namespace elastor {

// Measures a trained model on a split, on any number of ranks: the metrics, or spectra, to the last
// bit, that the training run would have measured there. Modes evaluate; predict, which also writes
// predictions.csv; spectra, the effective ranks of spectrum.samples rows instead of metrics.
// Collective.
Status RunInference(const RunOptions& options, Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_INFERENCE_H_
