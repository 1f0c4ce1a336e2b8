#ifndef ELASTOR_TRAINER_RUN_TRAINER_H_
#define ELASTOR_TRAINER_RUN_TRAINER_H_

#include <string>

#include "collective/communicator.h"
#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "trainer/data/dataset.h"
#include "trainer/run/step_parts.h"

namespace elastor {

struct TrainerOptions {
  Experiment
      experiment;  // every default filled in, every field checked (trainer/experiment/config.h)
  // "train", "evaluate", "predict", "spectra", "describe" or "verify"
  std::string mode;
  std::string output_dir;  // a new directory; unused when mode is "describe" or "verify"
  bool resume = false;     // mode "train": output_dir's run goes on from its last checkpoint
  // A model or checkpoint folder: what mode "evaluate", "predict" and "spectra" use, "verify"
  // reads.
  std::string model_dir;
  Split split = Split::kValidation;  // what is evaluated: validation or test
  RunDevice device = RunDevice::kCpu;
  std::string numerics = {};  // NumericsFingerprint of the device, alike on all ranks
  int describe_ranks = 1;     // mode "describe": the ranks the plan is made for
};

// One run, from data set to summary. Every rank calls it with the same options. A user error or a
// divergence is agreed on: all ranks return the same status, in step, so that they can leave in
// order. A machine error may be one rank's alone; the job then ends without another collective.
Status RunTrainer(const TrainerOptions& options, Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_TRAINER_H_
