#ifndef ELASTOR_CORE_KERNELS_CUDA_ELEMENT_LOOP_H_
#define ELASTOR_CORE_KERNELS_CUDA_ELEMENT_LOOP_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "core/base/log.h"
#include "core/cuda/launch.h"
#include "core/cuda/runtime.h"
#include "core/kernels/cuda/activations.h"
#include "core/kernels/cuda/fast_divisor.h"
#include "core/kernels/cuda/values.h"

// For kernel sources: one kernel for everything that happens element by element.

namespace elastor::cuda {

// The place at which the kCount elements of an item begin.
struct Index {
  int64_t row;
  int64_t token;
  int64_t feature;
};

template <typename A>
__device__ inline A* At(const Activations<A>& view, const Index& index) {
  return view.data + index.row * view.row_stride + index.token * view.token_stride + index.feature;
}

// The items of [rows, tokens, packs], spread over threads so that consecutive threads take
// consecutive packs, then the inner one of rows and tokens. A launch is a grid of (blocks, tiles):
// a tile is as many lines (row, token) as have fewer than 2^31 items.
class ElementLoop {
 public:
  // REQUIRES: packs in [1, 2^30], rows * tokens in [1, 2^31).
  ElementLoop(int64_t rows, int64_t tokens, int64_t packs, bool rows_inside)
      : lines_(rows * tokens),
        tile_lines_(std::min(lines_, kTileItems / packs + 1)),
        by_packs_(packs),
        by_inner_(rows_inside ? rows : tokens),
        rows_inside_(rows_inside) {
    CHECK_LE(packs, kTileItems);
    CHECK_LT(lines_, int64_t{1} << 31);
  }

  int64_t tiles() const { return (lines_ + tile_lines_ - 1) / tile_lines_; }
  int64_t tile_items() const { return tile_lines_ * by_packs_.divisor(); }

  ELASTOR_HOST_DEVICE uint32_t items(uint32_t tile) const {
    const int64_t left = lines_ - tile * tile_lines_;
    return static_cast<uint32_t>((left < tile_lines_ ? left : tile_lines_)) * by_packs_.divisor();
  }
  ELASTOR_HOST_DEVICE Index At(uint32_t tile, uint32_t item, int pack_size) const {
    const uint32_t tile_line = by_packs_.Divide(item);
    const uint32_t pack = item - tile_line * by_packs_.divisor();
    const uint32_t line = static_cast<uint32_t>(tile * tile_lines_) + tile_line;
    const uint32_t outer = by_inner_.Divide(line);
    const uint32_t inner = line - outer * by_inner_.divisor();
    const int64_t feature = static_cast<int64_t>(pack) * pack_size;
    return rows_inside_ ? Index{inner, outer, feature} : Index{outer, inner, feature};
  }

 private:
  static constexpr int64_t kTileItems = int64_t{1} << 30;

  int64_t lines_;
  int64_t tile_lines_;
  FastDivisor by_packs_;
  FastDivisor by_inner_;
  bool rows_inside_;
};

inline constexpr int kLoopThreads = 256;

// A thread takes kItems items, kLoopThreads apart, and reads all of them before it writes any, so
// that several loads are under way. Op:
//   template <int kCount> Inputs<kCount>            what it reads of an item
//   Load<kCount>(index) -> Inputs<kCount>
//   Store<kCount>(index, inputs)
template <int kCount, int kItems, typename Op>
__global__ void __launch_bounds__(kLoopThreads) ElementKernel(const ElementLoop loop, const Op op) {
  const uint32_t tile = blockIdx.y;
  const uint32_t items = loop.items(tile);
  const uint32_t first = blockIdx.x * (kLoopThreads * kItems) + threadIdx.x;
  Index indices[kItems];
  typename Op::template Inputs<kCount> inputs[kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const uint32_t item = first + i * kLoopThreads;
    if (item < items) {
      indices[i] = loop.At(tile, item, kCount);
      inputs[i] = op.template Load<kCount>(indices[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (first + i * kLoopThreads < items) op.template Store<kCount>(indices[i], inputs[i]);
  }
}

template <int kCount, int kItems, typename Op>
void LaunchElementKernel(Stream& stream, const ElementLoop& loop, const Op& op) {
  const dim3 grid(Blocks(loop.tile_items(), kLoopThreads * kItems),
                  static_cast<unsigned>(loop.tiles()));
  Launch(stream, grid, kLoopThreads, ElementKernel<kCount, kItems, Op>, loop, op);
}

// The dimensions that may be treated as one if they are contiguous in all views. Rows and tokens
// that were merged are 0 for the op: kTokens: features count through the tokens of a row; kAll: the
// op does not care where an element is.
enum class Merge { kNone, kTokens, kAll };

// The common shape of several views, and how to iterate over them.
class LoopShape {
 public:
  LoopShape(int64_t rows, int64_t tokens, int64_t features)
      : rows_(rows), tokens_(tokens), features_(features) {}

  // Adds a view. Call it for all views of a call, before Merge.
  template <typename A>
  LoopShape& With(const Activations<A>& view) {
    CHECK(view.rows == rows_ && view.tokens == tokens_ && view.features == features_)
        << "[" << view.rows << ", " << view.tokens << ", " << view.features << "] instead of ["
        << rows_ << ", " << tokens_ << ", " << features_ << "]";
    return With(view.data, sizeof(A), view.row_stride, view.token_stride);
  }
  LoopShape& With(const void* data, size_t element_bytes, int64_t row_stride,
                  int64_t token_stride) {
    CHECK_LT(views_, kMaxViews);
    view_[views_++] = {reinterpret_cast<uintptr_t>(data), static_cast<int64_t>(element_bytes),
                       row_stride, token_stride};
    return *this;
  }

  void MergeDimensions(Merge merge);

  bool empty() const { return rows_ == 0 || tokens_ == 0 || features_ == 0; }
  // Returns whether all views can be read in packs of `count` elements.
  bool HasPacks(int64_t count) const;
  ElementLoop Loop(int64_t pack_size) const {
    // Iterates in the memory order of the last view, the one that is written, since views may
    // differ.
    const View& written = view_[views_ - 1];
    return ElementLoop(rows_, tokens_, features_ / pack_size,
                       tokens_ > 1 && written.row_stride < written.token_stride);
  }

 private:
  struct View {
    uintptr_t address;
    int64_t element_bytes;
    int64_t row_stride;
    int64_t token_stride;
  };
  static constexpr int kMaxViews = 8;

  bool AllHave(int64_t View::*stride, int64_t value) const {
    return std::all_of(view_, view_ + views_, [&](const View& v) { return v.*stride == value; });
  }

  int64_t rows_;
  int64_t tokens_;
  int64_t features_;
  int views_ = 0;
  View view_[kMaxViews];
};

template <typename A>
LoopShape ShapeOf(const Activations<A>& view) {
  return LoopShape(view.rows, view.tokens, view.features);
}

inline void LoopShape::MergeDimensions(Merge merge) {
  // A merged line stays below the 2^31 packs that a line may have.
  constexpr int64_t kMostFeatures = int64_t{1} << 30;
  const auto absorb = [&](int64_t& count, int64_t View::*stride) {
    if (count == 1) return;
    if (!AllHave(stride, features_) || features_ * count > kMostFeatures) return;
    features_ *= count;
    count = 1;
  };
  if (merge == Merge::kNone) return;
  absorb(tokens_, &View::token_stride);
  if (merge == Merge::kTokens) return;
  absorb(rows_, &View::row_stride);
  absorb(tokens_, &View::token_stride);
}

inline bool LoopShape::HasPacks(int64_t count) const {
  if (features_ % count != 0) return false;
  return std::all_of(view_, view_ + views_, [&](const View& view) {
    return view.address % (count * view.element_bytes) == 0 &&
           (rows_ == 1 || view.row_stride % count == 0) &&
           (tokens_ == 1 || view.token_stride % count == 0);
  });
}

// Runs op on every element of the shape's views, in packs of kLargest elements (16 bytes) if they
// allow it, else of 2, else one by one.
template <int kLargest, typename Op>
void ForEachElement(Stream& stream, Merge merge, LoopShape shape, const Op& op) {
  if (shape.empty()) return;
  shape.MergeDimensions(merge);
  if (shape.HasPacks(kLargest)) {
    LaunchElementKernel<kLargest, 2>(stream, shape.Loop(kLargest), op);
  } else if (shape.HasPacks(2)) {
    LaunchElementKernel<2, 4>(stream, shape.Loop(2), op);
  } else {
    LaunchElementKernel<1, 4>(stream, shape.Loop(1), op);
  }
}

// The number of elements in 16 bytes. (In templates nvcc does not accept kLargestPack<float> as a
// constant.)
template <typename A>
inline constexpr int kLargestPack = 16 / sizeof(A);
inline constexpr int kLargestFloatPack = 16 / sizeof(float);

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_ELEMENT_LOOP_H_
