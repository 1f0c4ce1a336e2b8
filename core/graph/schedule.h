#ifndef ELASTOR_CORE_GRAPH_SCHEDULE_H_
#define ELASTOR_CORE_GRAPH_SCHEDULE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/ops/kernel_traits.h"

namespace elastor {

// The place of every value and every gradient of a graph, and the sums of gradients in the backward
// pass. This part of an executor is the same on every device.

// Memory of [rows, features], in use from step `first` to step `last`, both included. With n nodes,
// node i runs forward at step i and backward at step 2n - i; step n is the loss.
struct BufferLife {
  int64_t features = 0;
  int first = 0;
  int last = 0;
};

// Some features of a buffer, with the shape and layout of the value or gradient that they hold.
struct BufferView {
  int buffer = -1;  // -1: nothing
  int64_t first_feature = 0;
  Shape shape;
  TokenLayout layout = TokenLayout::kRowMajor;
  bool empty() const { return buffer < 0; }
};

// sum = a + b, or sum = a where b is empty (a copy into another layout). sum may be a or b.
struct GradientSum {
  BufferView a;
  BufferView b;
  BufferView sum;
};

struct NodeSchedule {
  BufferView output;
  BufferView doutput;
  // Values that the backward pass reads: `output` and the outputs of its inputs, or the copies
  // recomputed by nodes of its own segment. recomputed: where the node's kernel recomputes its
  // output; empty: it does not.
  BufferView recomputed;
  int recomputed_at = -1;  // step at which the node runs forward once more
  BufferView backward_output;
  std::vector<BufferView> backward_inputs;
  // By input. dinputs: empty if the kernel computes no gradient, because another rule gives it.
  // addends: the value that the kernel adds to the gradient it computes; empty: none.
  std::vector<BufferView> dinputs;
  std::vector<BufferView> addends;
  std::vector<GradientSum> sums;  // after the kernel's backward pass, in order
};

// Nodes [begin, end) of a segment, which run forward once more before the backward pass of the last
// one.
struct Segment {
  int begin = 0;
  int end = 0;
};

struct Schedule {
  std::vector<NodeSchedule> nodes;
  std::vector<Segment> segments;
  // Calls recompute(node) for the nodes of the segment that ends with `last`, if one does.
  template <typename Recompute>
  void BeforeBackward(int last, const Recompute& recompute) const {
    for (const auto& [begin, end] : segments) {
      if (end != last + 1) continue;
      for (int node = begin; node < end; ++node) recompute(node);
    }
  }
  std::vector<BufferLife> buffers;
};

// Makes the schedule of a graph. traits: the traits of its nodes' kernels on the device.
Schedule MakeSchedule(const Graph& graph, std::span<const KernelTraits> traits);

// Offsets of `buffers` of `bytes` each in one piece of memory, such that no two whose lives meet
// overlap. Multiples of `alignment`. total: the size of the piece.
struct BufferPlacement {
  std::vector<int64_t> offsets;
  int64_t total = 0;
};
BufferPlacement PlaceBuffers(std::span<const BufferLife> lives, std::span<const int64_t> bytes,
                             int64_t alignment);

}  // namespace elastor

#endif  // ELASTOR_CORE_GRAPH_SCHEDULE_H_
