#include "core/spectrum/spectrum.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/canonical_math.h"
#include "core/spectrum/lanes.h"
#include "glog/logging.h"

namespace elastor {

Spectrum::Spectrum(int64_t tokens, int64_t width)
    : short_side_(std::min(tokens, width)),
      long_side_(std::max(tokens, width)),
      short_stride_(tokens <= width ? width : 1),
      long_stride_(tokens <= width ? 1 : width),
      matrix_(tokens * width * kRows),
      eigenvalues_(short_side_),
      singular_values_(short_side_ * kRows) {
  CHECK_GE(tokens, 1);
  CHECK_GE(width, 1);
}

template <typename T>
void Spectrum::Measure(Panels<const T> x, int64_t first_row) {
  static_assert(kPanelRows % kRows == 0);
  CHECK_EQ(x.features, short_side_ * long_side_);
  CHECK_LT(first_row, x.rows);
  CHECK_EQ(first_row % kRows, 0);
  double* to = matrix_.data();
  for (int64_t i = 0; i < short_side_; ++i) {
    for (int64_t k = 0; k < long_side_; ++k, to += kRows) {
      const T* const from = &x.At(first_row, i * short_stride_ + k * long_stride_);
      for (int64_t lane = 0; lane < kRows; ++lane) to[lane] = from[lane];
    }
  }
  MakeGram();
  TakeTraces();
  eigenvalues_.Compute();
  MakeRanks();
}

// Every element is one chain of FMAs over ascending k. Blocks of 2 x 2 are computed together, which
// halves the loads; a block on the diagonal computes one element twice.
void Spectrum::MakeGram() {
  const auto row = [&](int64_t i) {
    return matrix_.data() + std::min(i, short_side_ - 1) * long_side_ * kRows;
  };
  for (int64_t i = 0; i < short_side_; i += 2) {
    for (int64_t j = 0; j <= i; j += 2) {
      const double* const a[] = {row(i), row(i + 1)};
      const double* const b[] = {row(j), row(j + 1)};
      Lanes sums[2][2] = {{Splat(0), Splat(0)}, {Splat(0), Splat(0)}};
      for (int64_t k = 0; k < long_side_ * kRows; k += kRows) {
        const Lanes a0 = LoadLanes(a[0] + k);
        const Lanes a1 = LoadLanes(a[1] + k);
        const Lanes b0 = LoadLanes(b[0] + k);
        const Lanes b1 = LoadLanes(b[1] + k);
        sums[0][0] = Fma(a0, b0, sums[0][0]);
        sums[0][1] = Fma(a0, b1, sums[0][1]);
        sums[1][0] = Fma(a1, b0, sums[1][0]);
        sums[1][1] = Fma(a1, b1, sums[1][1]);
      }
      for (int64_t di = 0; di < std::min<int64_t>(2, short_side_ - i); ++di) {
        for (int64_t dj = 0; dj < 2 && j + dj <= i + di; ++dj) {
          SaveLanes(eigenvalues_.Element(i + di, j + dj), sums[di][dj]);
        }
      }
    }
  }
}

void Spectrum::TakeTraces() {
  Lanes trace = Splat(0);
  for (int64_t i = 0; i < short_side_; ++i) trace = trace + LoadLanes(eigenvalues_.Element(i, i));
  SaveLanes(traces_, trace);
  for (int64_t lane = 0; lane < kRows; ++lane) {
    if (std::isfinite(traces_[lane])) continue;
    for (int64_t i = 0; i < short_side_; ++i) {
      for (int64_t j = 0; j <= i; ++j) eigenvalues_.Element(i, j)[lane] = 0;
    }
  }
}

// Loops over lanes are written so that they become vectors.
void Spectrum::MakeRanks() {
  const double rounding = static_cast<double>(short_side_) * std::numeric_limits<double>::epsilon();
  const double* const largest = eigenvalues_.Value(0);
  double sums[kRows] = {};
  for (int64_t n = 0; n < short_side_; ++n) {
    const double* const values = eigenvalues_.Value(n);
    double* const s = &singular_values_[n * kRows];
    for (int64_t i = 0; i < kRows; ++i) {
      const double root = std::sqrt(std::max(values[i], 0.0));
      s[i] = values[i] > rounding * largest[i] ? root : 0;
      sums[i] += s[i];
    }
  }
  double entropies[kRows] = {};
  for (int64_t n = 0; n < short_side_; ++n) {
    const double* const s = &singular_values_[n * kRows];
    for (int64_t i = 0; i < kRows; ++i) {
      const double p = s[i] > 0 ? s[i] / sums[i] : 1;  // p log p -> 0 with p
      entropies[i] -= p * CanonicalLog(p);
    }
  }
  for (int64_t i = 0; i < kRows; ++i) {
    ranks_[i] = largest[i] > 0 ? EffectiveRank{traces_[i] / largest[i], CanonicalExp(entropies[i])}
                               : EffectiveRank{};
    if (std::isfinite(traces_[i])) continue;
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    ranks_[i] = {kNan, kNan};
    for (int64_t n = 0; n < short_side_; ++n) singular_values_[n * kRows + i] = kNan;
  }
}

template void Spectrum::Measure(Panels<const float> x, int64_t first_row);
template void Spectrum::Measure(Panels<const double> x, int64_t first_row);

}  // namespace elastor
