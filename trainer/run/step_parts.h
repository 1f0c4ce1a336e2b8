#ifndef ELASTOR_TRAINER_RUN_STEP_PARTS_H_
#define ELASTOR_TRAINER_RUN_STEP_PARTS_H_

#include <memory>
#include <string>

#include "collective/communicator.h"
#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "core/models/model.h"
#include "embedding/embedding_state.h"
#include "embedding/shard_plan.h"
#include "trainer/data/dataset.h"
#include "trainer/step/step.h"

namespace elastor {

// What a run computes with: the embedding tables of one rank and the step that uses them.
class StepParts {
 public:
  virtual ~StepParts() = default;
  virtual EmbeddingState<float>* embedding() = 0;
  virtual Step<float>* step() = 0;
  // Bytes sent and time of a phase, from the device where it exchanges; the host's are the
  // communicator's.
  virtual PhaseRecord device_record(Phase phase) = 0;
};

struct StepRequest {
  Experiment experiment;  // resolved and valid; that memory is taken for
  // These outlive the parts.
  const DatasetInfo* data = nullptr;
  const ShardPlan* plan = nullptr;
  Model<float>* model = nullptr;
  Communicator* communicator = nullptr;
  ThreadPool* pool = nullptr;
};

enum class RunDevice { kCpu, kCuda };

// Weights and tables are the initial ones. User error, the same on all ranks, when the experiment
// asks for what the device has not.
StatusOr<std::unique_ptr<StepParts>> MakeCpuParts(const StepRequest& request);

// The GPU's half of the program: trainer/run:cuda_parts, or trainer/run:no_cuda in a build
// without it, where both are user errors.
//
// Makes one GPU of the host this rank's, by the rank's number on its host; collective, before
// MakeCudaParts. Returns what bits depend on: device and libraries, for the numerics fingerprint.
StatusOr<std::string> OpenCudaDevice(Communicator& communicator);
StatusOr<std::unique_ptr<StepParts>> MakeCudaParts(const StepRequest& request);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_STEP_PARTS_H_
