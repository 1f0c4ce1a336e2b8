#include "core/spectrum/spectrum.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/log.h"
#include "core/spectrum/spectrum_kernels.h"

namespace elastor {

Spectrum::Spectrum(int64_t tokens, int64_t width, bool unit_tokens)
    : short_side_(std::min(tokens, width)),
      long_side_(std::max(tokens, width)),
      short_stride_(tokens <= width ? width : 1),
      long_stride_(tokens <= width ? 1 : width),
      tokens_are_short_(tokens <= width),
      unit_tokens_(unit_tokens),
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
  for (int64_t first = 0; first < kRows; first += kGramLanes) {
    for (int64_t i = 0; i < short_side_; ++i) {
      for (int64_t k = 0; k < long_side_; ++k, to += kGramLanes) {
        const T* const from = &x.At(first_row + first, i * short_stride_ + k * long_stride_);
        for (int64_t lane = 0; lane < kGramLanes; ++lane) to[lane] = from[lane];
      }
    }
  }
  if (unit_tokens_) DivideByNorms();
  ActiveSpectrumKernels().gram(matrix_.data(), short_side_, long_side_, eigenvalues_.Element(0, 0));
  TakeTraces();
  eigenvalues_.Compute();
  MakeRanks();
}

void Spectrum::DivideByNorms() {
  const int64_t tokens = tokens_are_short_ ? short_side_ : long_side_;
  const int64_t width = tokens_are_short_ ? long_side_ : short_side_;
  const int64_t token_stride = (tokens_are_short_ ? long_side_ : 1) * kGramLanes;
  const int64_t feature_stride = (tokens_are_short_ ? 1 : long_side_) * kGramLanes;
  for (int64_t first = 0; first < kRows; first += kGramLanes) {
    double* const matrices = matrix_.data() + first * tokens * width;
    for (int64_t t = 0; t < tokens; ++t) {
      double* const token = matrices + t * token_stride;
      double norms[kGramLanes] = {};
      for (int64_t d = 0; d < width; ++d) {
        for (int64_t lane = 0; lane < kGramLanes; ++lane) {
          const double x = token[d * feature_stride + lane];
          norms[lane] += x * x;
        }
      }
      for (double& norm : norms) norm = norm == 0 ? 1 : std::sqrt(norm);
      for (int64_t d = 0; d < width; ++d) {
        for (int64_t lane = 0; lane < kGramLanes; ++lane) {
          token[d * feature_stride + lane] /= norms[lane];
        }
      }
    }
  }
}

void Spectrum::TakeTraces() {
  for (int64_t lane = 0; lane < kRows; ++lane) traces_[lane] = 0;
  for (int64_t i = 0; i < short_side_; ++i) {
    const double* const squares = eigenvalues_.Element(i, i);
    for (int64_t lane = 0; lane < kRows; ++lane) traces_[lane] += squares[lane];
  }
  for (int64_t lane = 0; lane < kRows; ++lane) {
    if (std::isfinite(traces_[lane])) continue;
    for (int64_t i = 0; i < short_side_; ++i) {
      for (int64_t j = 0; j <= i; ++j) eigenvalues_.Element(i, j)[lane] = 0;
    }
  }
}

void Spectrum::MakeRanks() {
  double entropy_ranks[kRows];
  const double* const largest = eigenvalues_.Value(0);
  ActiveSpectrumKernels().entropy_rank(short_side_, largest, singular_values_.data(),
                                       entropy_ranks);
  for (int64_t i = 0; i < kRows; ++i) {
    ranks_[i] =
        largest[i] > 0 ? EffectiveRank{traces_[i] / largest[i], entropy_ranks[i]} : EffectiveRank{};
    if (std::isfinite(traces_[i])) continue;
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    ranks_[i] = {kNan, kNan};
    for (int64_t n = 0; n < short_side_; ++n) singular_values_[n * kRows + i] = kNan;
  }
}

template void Spectrum::Measure(Panels<const float> x, int64_t first_row);
template void Spectrum::Measure(Panels<const double> x, int64_t first_row);

}  // namespace elastor
