#include <type_traits>

#include "core/base/log.h"
#include "core/cuda/launch.h"
#include "core/optimizer/with_rule.h"
#include "core/parameters/parameter_layout.h"
#include "trainer/step/cuda/dense_optimizer_kernels.h"
#include "trainer/step/step_options.h"

namespace elastor::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kEach = kParameterBlock / kThreads;  // elements of a thread
constexpr int kWarps = kThreads / kWarp;

// The sum over the threads of a block, on thread 0: lanes by halves, then warps in order.
__device__ double SumOfBlock(double value, double* warp_sums) {
  value = OverLanes(value, [](double a, double b) { return a + b; });
  if (threadIdx.x % kWarp == 0) warp_sums[threadIdx.x / kWarp] = value;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0) {
    for (int warp = 0; warp < kWarps; ++warp) sum += warp_sums[warp];
  }
  return sum;
}

__global__ void AddL2Kernel(OwnedBlocks blocks, float dense_lambda, float embedding_lambda,
                            const float* weights, float* gradient, double* sums) {
  __shared__ double norm_sums[kWarps];
  __shared__ double penalty_sums[kWarps];
  const int64_t block = blockIdx.x;
  const float* const w = weights + blocks.begin[block];
  float* const g = gradient + block * kParameterBlock;
  const uint8_t* const decay = blocks.decay + block * kParameterBlock;
  double norm = 0;
  double penalty = 0;
  for (int k = 0; k < kEach; ++k) {
    const int i = k * kThreads + static_cast<int>(threadIdx.x);
    const uint8_t kind = decay[i];
    if (kind == kStatisticElement) continue;
    float value = g[i];
    const float lambda = kind == static_cast<uint8_t>(Decay::kDense)       ? dense_lambda
                         : kind == static_cast<uint8_t>(Decay::kEmbedding) ? embedding_lambda
                                                                           : 0.0f;
    if (lambda != 0) {
      const float weight = w[i];
      value += lambda * weight;
      g[i] = value;
      const double wide = static_cast<double>(weight);
      penalty += 0.5 * static_cast<double>(lambda) * (wide * wide);
    }
    norm += static_cast<double>(value) * static_cast<double>(value);
  }
  norm = SumOfBlock(norm, norm_sums);
  penalty = SumOfBlock(penalty, penalty_sums);
  if (threadIdx.x == 0) {
    sums[block] = norm;
    sums[blocks.count + block] = penalty;
  }
}

// One element with its slots, a block apart. g is scaled already.
__device__ void UpdateElement(const Sgd<float>& rule, float g, float* w, float*) {
  rule.Element(g, w);
}
__device__ void UpdateElement(const Adagrad<float>& rule, float g, float* w, float* slots) {
  rule.Element(g, w, slots);
}
__device__ void UpdateElement(const Adam<float>& rule, float g, float* w, float* slots) {
  rule.Element(g, w, slots, slots + kParameterBlock);
}

template <typename Rule>
__global__ void UpdateKernel(OwnedBlocks blocks, Rule rule, int slots_of_element, float kept,
                             const UpdateGate* gate, const float* gradient, float* weights,
                             float* slots) {
  if (gate->proceed == 0) return;
  const float scale = gate->scale;
  const int64_t block = blockIdx.x;
  float* const w = weights + blocks.begin[block];
  const float* const g = gradient + block * kParameterBlock;
  const uint8_t* const decay = blocks.decay + block * kParameterBlock;
  float* const slot = slots + block * slots_of_element * kParameterBlock;
  constexpr float kMomentum = static_cast<float>(kStatisticMomentum);
  for (int k = 0; k < kEach; ++k) {
    const int i = k * kThreads + static_cast<int>(threadIdx.x);
    if (decay[i] == kStatisticElement) {
      w[i] = (1 - kMomentum) * w[i] + kMomentum * g[i];
    } else {
      if (decay[i] == static_cast<uint8_t>(Decay::kDense)) w[i] *= kept;
      UpdateElement(rule, scale * g[i], w + i, slot + i);
    }
  }
}

__global__ void SetKernel(float value, int64_t count, float* values) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) values[i] = value;
}

}  // namespace

void AddDenseL2(Stream& stream, const OwnedBlocks& blocks, float dense_lambda,
                float embedding_lambda, const float* weights, float* gradient, double* sums) {
  if (blocks.count == 0) return;
  Launch(stream, static_cast<unsigned>(blocks.count), kThreads, AddL2Kernel, blocks, dense_lambda,
         embedding_lambda, weights, gradient, sums);
}

void UpdateDense(Stream& stream, const OwnedBlocks& blocks, const OptimizerOptions& options,
                 double learning_rate, int64_t step, float kept, const UpdateGate* gate,
                 const float* gradient, float* weights, float* slots) {
  if (blocks.count == 0) return;
  const int slots_of_element =
      static_cast<int>(SlotElements(options.kind, kParameterBlock) / kParameterBlock);
  WithRule<float>(options, learning_rate, step, [&](const auto& rule) {
    using Rule = std::decay_t<decltype(rule)>;
    if constexpr (std::is_same_v<Rule, RowWiseAdagrad<float>>) {
      LOG(FATAL) << "no rule of dense parameters";
    } else {
      Launch(stream, static_cast<unsigned>(blocks.count), kThreads, UpdateKernel<Rule>, blocks,
             rule, slots_of_element, kept, gate, gradient, weights, slots);
    }
  });
}

void SetValues(Stream& stream, float value, int64_t count, float* values) {
  if (count == 0) return;
  Launch(stream, Blocks(count, kThreads), kThreads, SetKernel, value, count, values);
}

}  // namespace elastor::cuda
