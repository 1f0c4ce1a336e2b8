#ifndef ELASTOR_TRAINER_RUN_INFERENCE_H_
#define ELASTOR_TRAINER_RUN_INFERENCE_H_

#include <string>

#include "collective/communicator.h"
#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "trainer/data/dataset.h"
#include "trainer/run/step_parts.h"

namespace elastor {

struct InferenceOptions {
  Experiment experiment;  // that of training, but for operational fields
  std::string model_dir;  // trainer/checkpoint/checkpoint.h
  std::string output_dir;
  Split split = Split::kValidation;
  bool predict = false;  // also write predictions.csv
  RunDevice device = RunDevice::kCpu;
  std::string numerics;  // the device's
  bool spectra = false;  // effective ranks of spectrum.samples rows instead of metrics
};

// Measures a trained model on a split, on any number of ranks: the metrics, or spectra, to the last
// bit, that the training run would have measured there. Every rank calls it with the same options.
Status RunInference(const InferenceOptions& options, Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_INFERENCE_H_
