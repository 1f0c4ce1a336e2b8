#include <bit>
#include <type_traits>

#include "core/base/leaf_stack.h"
#include "core/base/log.h"
#include "core/cuda/launch.h"
#include "core/kernels/cuda/leaf_fold.h"

namespace elastor::cuda {
namespace {

constexpr int kThreads = 256;
// Partial sums that an element can have at once: V up to 2^31.
constexpr int kMostSums = 32;
// Leaves whose vectors a thread reads at once.
constexpr int kBatch = 8;
// Leaves of the largest complete tree that is folded in registers.
constexpr int64_t kMostCompleteLeaves = 64;

struct FoldArguments {
  const FoldRun* runs;
  int64_t run_count;
  int64_t leaves;  // as listed
  Range range;
  float* nodes;
  int64_t node_stride;
};

// The element of this thread: leaf l's is data[l * stride]; null when no run covers it.
struct Element {
  const float* data = nullptr;
  int64_t stride = 0;
};

__device__ inline Element FindElement(const FoldArguments& a, int64_t element) {
  // The first run that begins behind the element.
  int64_t low = 0;
  int64_t high = a.run_count;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (a.runs[middle].begin <= element) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return {};
  const FoldRun run = a.runs[low - 1];
  const int64_t i = element - run.begin;
  if (i >= run.size) return {};
  // Almost always in 32 bits, which a device divides several times as fast.
  const bool small = ((i | run.inner) >> 32) == 0;
  const int64_t map =
      small ? static_cast<uint32_t>(i) / static_cast<uint32_t>(run.inner) : i / run.inner;
  return {run.data + (map * a.leaves - map) * run.inner + i, run.inner};
}

// A thread: an element. The leaves' vectors are added as the leaves of one complete tree.
template <int kLeaves>
__global__ void __launch_bounds__(kThreads) FoldCompleteKernel(const FoldArguments a) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= a.range.end - a.range.begin) return;
  const Element element = FindElement(a, a.range.begin + i);
  if (element.data == nullptr) {
    a.nodes[i] = 0;
    return;
  }
  float sums[kLeaves];
#pragma unroll
  for (int leaf = 0; leaf < kLeaves; ++leaf) sums[leaf] = element.data[leaf * element.stride];
#pragma unroll
  for (int width = 1; width < kLeaves; width *= 2) {
#pragma unroll
    for (int leaf = 0; leaf < kLeaves; leaf += 2 * width) sums[leaf] += sums[leaf + width];
  }
  a.nodes[i] = sums[0];
}

// A thread: an element, by the steps.
__global__ void __launch_bounds__(kThreads)
    FoldStepsKernel(const FoldArguments a, const LeafFold::Step* steps, int64_t step_count,
                    int64_t node_count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= a.range.end - a.range.begin) return;
  const Element element = FindElement(a, a.range.begin + i);
  if (element.data == nullptr || step_count == 0) {
    for (int64_t node = 0; node < node_count; ++node) a.nodes[node * a.node_stride + i] = 0;
    return;
  }
  float sums[kMostSums];
  int depth = 0;
  int64_t node = 0;
  for (int64_t first = 0; first < step_count; first += kBatch) {
    float values[kBatch];
#pragma unroll
    for (int s = 0; s < kBatch; ++s) {
      if (first + s < step_count) {
        values[s] = element.data[steps[first + s].leaf * element.stride];
      }
    }
#pragma unroll
    for (int s = 0; s < kBatch; ++s) {
      if (first + s >= step_count) break;
      const LeafFold::Step step = steps[first + s];
      float top = values[s];
      for (int merge = 0; merge < step.merges; ++merge) top = sums[--depth] + top;
      if (step.ends_node != 0) {
        a.nodes[node++ * a.node_stride + i] = top;
      } else {
        sums[depth++] = top;
      }
    }
  }
}

// Calls launch with the power of two `leaves` as a std::integral_constant.
template <int kLeaves = 1, typename LaunchLeaves>
void WithLeaves(int64_t leaves, LaunchLeaves launch) {
  if constexpr (kLeaves <= kMostCompleteLeaves) {
    if (leaves == kLeaves) return launch(std::integral_constant<int, kLeaves>{});
    WithLeaves<2 * kLeaves>(leaves, launch);
  }
}

// Whether all of `count` leaves are there and are added as a complete tree's, as those of equal
// subtrees are: after leaf i as many sums as carries when i is counted on.
bool IsCompleteTree(const std::vector<LeafFold::Step>& steps, int64_t count) {
  if (static_cast<int64_t>(steps.size()) != count || !std::has_single_bit(steps.size())) {
    return false;
  }
  for (uint32_t i = 0; i < steps.size(); ++i) {
    if (steps[i].merges != std::countr_zero(i + 1)) return false;
  }
  return true;
}

}  // namespace

LeafFold::LeafFold(Stream* stream) : stream_(stream), steps_(stream) {}

void LeafFold::SetLeaves(std::span<const int64_t> leaves, const std::vector<bool>& counted,
                         std::span<const int64_t> node_leaves) {
  CHECK_EQ(leaves.size(), counted.size());
  std::vector<Step> steps;
  LeafStack<int64_t> stack;
  size_t node = 0;
  const auto end_node = [&] {
    if (steps.empty()) return;
    while (stack.MergesAtEnd()) ++steps.back().merges;
    stack.Clear();
    steps.back().ends_node = 1;
  };
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!counted[i]) continue;
    if (node < node_leaves.size() && leaves[i] == node_leaves[node]) {
      end_node();
      ++node;
    }
    CHECK_GT(node, size_t{0}) << "leaf " << leaves[i] << " is not the first of a node";
    while (stack.MergesBefore(leaves[i])) ++steps.back().merges;
    CHECK_LT(stack.Push(leaves[i]), kMostSums);
    steps.push_back({static_cast<int32_t>(i), 0, 0});
  }
  end_node();
  CHECK_EQ(node, node_leaves.size()) << "nodes without leaves";
  const auto count = static_cast<int64_t>(leaves.size());
  leaves_ = count;
  nodes_ = std::max<int64_t>(1, static_cast<int64_t>(node));
  complete_ = nodes_ == 1 && count <= kMostCompleteLeaves && IsCompleteTree(steps, count);
  steps_.Resize(static_cast<int64_t>(steps.size()));
  Copy(*stream_, steps_.data(), steps.data(), steps_.size());
}

void LeafFold::Fold(Stream& stream, const FoldRun* runs, int64_t run_count, const Range& range,
                    float* nodes, int64_t node_stride) const {
  if (range.size() == 0) return;
  const FoldArguments arguments{runs, run_count, leaves_, range, nodes, node_stride};
  const unsigned blocks = Blocks(range.size(), kThreads);
  if (complete_) {
    WithLeaves(leaves_, [&](auto leaves) {
      Launch(stream, blocks, kThreads, FoldCompleteKernel<leaves>, arguments);
    });
  } else {
    Launch(stream, blocks, kThreads, FoldStepsKernel, arguments, steps_.data(), steps_.size(),
           nodes_);
  }
}

}  // namespace elastor::cuda
