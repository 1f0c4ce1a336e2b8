#ifndef ELASTOR_TRAINER_RUN_BACKEND_H_
#define ELASTOR_TRAINER_RUN_BACKEND_H_

#include <cstdint>
#include <memory>
#include <string>

#include "collective/communicator.h"
#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "core/graph/graph.h"
#include "embedding/embedding_state.h"
#include "embedding/shard_plan.h"
#include "embedding/sharded_embedding.h"
#include "embedding/table.h"
#include "trainer/data/dataset.h"
#include "trainer/step/step.h"

namespace elastor {

// What a run computes with, on the CPU or on a GPU: the embedding tables of one rank and the step
// that uses them.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual EmbeddingState<float>* embedding() = 0;
  // The same tables where the host has them; null: a device has.
  virtual ShardedEmbedding<float>* host_embedding() = 0;
  virtual Step<float>* step() = 0;
  // For those who read the step's batches; null: it takes ids as they are.
  virtual IdStaging id_staging() = 0;
  // Bytes sent and time of a phase, from the device where it exchanges; the host's are the
  // communicator's.
  virtual PhaseRecord device_record(Phase phase) = 0;
};

struct BackendOptions {
  Experiment experiment;  // resolved and valid; that memory is taken for
  // These outlive the backend.
  const DatasetInfo* data = nullptr;
  const ShardPlan* plan = nullptr;
  const Graph* graph = nullptr;
  Communicator* communicator = nullptr;
  ThreadPool* pool = nullptr;
  // On a GPU; false: RankElastor's per-token network by products, for benchmarks that compare.
  bool fused_network = true;
};

enum class RunDevice { kCpu, kCuda };

// What bits of a run on the CPU depend on beside the build, for the numerics fingerprint. User
// error, the same on all ranks, where the experiment's precision is not for CPUs, or a rank's CPU
// lacks it. Collective, before MakeCpuBackend.
StatusOr<std::string> OpenCpu(const Experiment& experiment, Communicator& communicator);

// Weights and tables are the initial ones. User error, the same on all ranks, when the experiment
// asks for what the device has not.
StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(const BackendOptions& options);

// The GPU's half of the program: //trainer/run:cuda_backend, or :no_cuda in a build
// without it, where making either is a user error.
//
// Makes one GPU of the host this rank's, by the rank's number on its host; collective, before
// MakeCudaBackend. Returns what bits depend on: device and libraries, for the numerics fingerprint.
StatusOr<std::string> OpenCudaDevice(Communicator& communicator);
// Memory of the GPU that was opened.
int64_t CudaDeviceBytes();
StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const BackendOptions& options);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_BACKEND_H_
