#ifndef ELASTOR_TRAINER_RUN_BACKEND_H_
#define ELASTOR_TRAINER_RUN_BACKEND_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "collective/communicator.h"
#include "collective/rank_hosts.h"
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

// The compute side of a run on one rank, on the CPU or on a GPU: the embedding tables and the step
// that uses them.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual EmbeddingState<float>* embedding() = 0;
  // The same tables if they are in host memory; null if they are on a device.
  virtual ShardedEmbedding<float>* host_embedding() = 0;
  virtual Step<float>* step() = 0;
  // How readers must stage the ids of the step's batches; null: the step takes ids as they are.
  virtual IdStaging id_staging() = 0;
  // Returns the messages and bytes that the device sent, and the time. The communicator records the
  // host's own.
  virtual PhaseRecord device_record(Phase phase, Work work) = 0;
};

struct BackendOptions {
  Experiment experiment;  // resolved and valid; memory is taken by it
  // These outlive the backend.
  const DatasetInfo* data = nullptr;
  const ShardPlan* plan = nullptr;
  const Graph* graph = nullptr;
  Communicator* communicator = nullptr;
  ThreadPool* pool = nullptr;
  // Of the ranks, for parallel.by_host.
  std::optional<RankHosts> hosts = {};
  // GPU only. False computes RankElastor's per-token network by separate products, for benchmarks
  // that compare the two.
  bool fused_network = true;
};

enum class RunDevice { kCpu, kCuda };

// Returns the CPU's part of the numerics fingerprint: the properties that, besides the build,
// decide the bits of a run. User error, the same on all ranks, when the experiment's precision is
// not for CPUs or a rank's CPU lacks it. Collective; to be called before MakeCpuBackend.
StatusOr<std::string> OpenCpu(const Experiment& experiment, Communicator& communicator);

// Makes a backend with the initial weights and tables. User error, the same on all ranks, when the
// experiment asks for a feature that the device lacks.
StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(const BackendOptions& options);

// The GPU functions below are in //trainer/run:cuda_backend. A build without it links :no_cuda,
// where calling them is a user error.
//
// Opens one of the host's GPUs for this rank, chosen by the rank's number on its host. Returns the
// GPU's part of the numerics fingerprint: device and libraries, on which bits depend. Collective;
// to be called before MakeCudaBackend.
StatusOr<std::string> OpenCudaDevice(Communicator& communicator);
// Returns the memory, in bytes, of the GPU that was opened.
int64_t CudaDeviceBytes();
StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const BackendOptions& options);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_BACKEND_H_
