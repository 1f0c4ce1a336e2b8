// The doors of matmul.h: what is checked, and what a kernel of isa/ needs beside its operands.
#include "core/kernels/matmul.h"

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include "core/base/instantiate.h"
#include "core/base/log.h"
#include "core/kernels/cpu/bfloat16.h"
#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/cpu/line_aligned.h"

namespace elastor {
namespace {

template <typename T>
PackedTiles<T> TilesOf(const PackedMatrix<T>& a) {
  const auto* begin = a.tiles().data();
  return {begin, begin + a.tiles().size(), a.data(), a.steps()};
}

// Cuts the concatenation of the segments at multiples of kReductionBlock. The result lives until
// the thread's next call.
template <typename T>
std::span<const Run<T>> CutIntoRuns(std::span<const Panels<const T>> segments) {
  thread_local std::vector<Run<T>> runs;
  runs.clear();
  int64_t done = 0;
  for (const Panels<const T>& segment : segments) {
    for (int64_t begin = 0; begin < segment.features;) {
      const int64_t left_in_block = kReductionBlock - done % kReductionBlock;
      const int64_t count = std::min(segment.features - begin, left_in_block);
      runs.push_back({segment.Slice(begin, count), done > 0 && done % kReductionBlock == 0});
      begin += count;
      done += count;
    }
  }
  return runs;
}

template <typename T>
void CheckView(Panels<const T> view, int64_t rows, int64_t features) {
  if (view.data == nullptr) return;
  CHECK_EQ(view.rows, rows);
  CHECK_EQ(view.features, features);
}

}  // namespace

template <typename T>
void MatMul(const PackedMatrix<T>& a, std::span<const Panels<const T>> x, Panels<T> y,
            const Epilogue<T>& e) {
  int64_t features = 0;
  for (const Panels<const T>& segment : x) {
    CHECK_EQ(segment.rows, y.rows);
    features += segment.features;
  }
  CHECK(!a.paired());
  CHECK_EQ(features, a.columns());
  CHECK_EQ(y.features, a.rows());
  for (const Panels<const T>& view :
       {Panels<const T>(e.derivative), Panels<const T>(e.unscaled), e.multiplier, e.residual,
        Panels<const T>(e.second_output), e.second_multiplier}) {
    CheckView(view, y.rows, y.features);
  }
  CHECK_EQ(e.second_output.data == nullptr, e.second_multiplier.data == nullptr);
  if constexpr (std::is_same_v<T, float>) {
    if (a.precision() == Precision::kBFloat16) return MatMulInBFloat16(TilesOf(a), x, y, e);
  }
  const std::span<const Run<T>> runs = CutIntoRuns(x);
  Kernels<T>().matmul(TilesOf(a), runs.data(), runs.size(), y, e);
}

template <typename T>
void GatedUpProjection(const PackedMatrix<T>& w, Panels<const T> x, const T* bias1, const T* bias2,
                       Activation activation, Panels<T> h, Panels<T> first_factor,
                       Panels<T> second_factor) {
  CHECK(w.paired());
  CHECK_EQ(x.features, w.columns());
  for (const Panels<T>& view : {h, first_factor, second_factor}) {
    CheckView<T>(view, x.rows, w.rows());
  }
  if constexpr (std::is_same_v<T, float>) {
    if (w.precision() == Precision::kBFloat16) {
      return GatedUpProjectionInBFloat16(TilesOf(w), x, bias1, bias2, activation, h, first_factor,
                                         second_factor);
    }
  }
  const std::span<const Run<T>> runs = CutIntoRuns<T>({&x, 1});
  Kernels<T>().gated_up_projection(TilesOf(w), runs.data(), runs.size(), bias1, bias2, activation,
                                   h, first_factor, second_factor);
}

template <typename T>
void WeightGradient(std::span<const LeafRows> leaves, Panels<const T> dy, Panels<const T> x, T* dw,
                    int64_t stride, Store store, Precision precision) {
  CHECK(!leaves.empty());
  CHECK_EQ(dy.rows, x.rows);
  if constexpr (std::is_same_v<T, float>) {
    if (precision == Precision::kBFloat16)
      return WeightGradientInBFloat16(leaves, dy, x, dw, stride, store);
  }
  Kernels<T>().gradient.weight(leaves.data(), static_cast<int64_t>(leaves.size()), dy, x, dw,
                               stride, store, WeightGradientScratch<T>(x.panels()));
}

template <typename T>
T* WeightGradientScratch(int64_t panels) {
  constexpr int64_t kLeast = kMaxShortPanels * kPanelRows * kShortFeatures;
  static_assert(kLeast * sizeof(T) >= kSweepBytes);
  const int64_t elements = std::max(kLeast, panels * kPanelRows * kSweepFeatures);
  thread_local std::vector<T> memory;
  return LineAligned(elements, memory);
}

template <typename T>
void BiasGradient(Panels<const T> dy, T* db, Store store) {
  Kernels<T>().gradient.bias(dy, db, store);
}

ELASTOR_INSTANTIATE(MatMul, float, double)
ELASTOR_INSTANTIATE(GatedUpProjection, float, double)
template void WeightGradient<float>(std::span<const LeafRows>, Panels<const float>,
                                    Panels<const float>, float*, int64_t, Store, Precision);
template void WeightGradient<double>(std::span<const LeafRows>, Panels<const double>,
                                     Panels<const double>, double*, int64_t, Store, Precision);
template float* WeightGradientScratch<float>(int64_t);
template double* WeightGradientScratch<double>(int64_t);
ELASTOR_INSTANTIATE(BiasGradient, float, double)

}  // namespace elastor
