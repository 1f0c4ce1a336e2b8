#ifndef ELASTOR_CORE_SPECTRUM_SPECTRUM_H_
#define ELASTOR_CORE_SPECTRUM_SPECTRUM_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor/panels.h"

namespace elastor {

// Effective ranks of one matrix.
//   stable rank  = ||X||_F^2 / ||X||_2^2                       (RankElastor, eq. 1)
//   entropy rank = exp(-sum_i p_i log p_i), p_i = s_i / sum s   (Roy & Vetterli 2007)
// A zero matrix has both ranks 0.
struct EffectiveRank {
  double stable = 0;
  double entropy = 0;
};

// Singular values (descending) of X [tokens, width] from the eigenvalues of the smaller Gram
// matrix, in double; eigenvalues below eps * largest count as 0.
class Spectrum {
 public:
  Spectrum(int64_t tokens, int64_t width);
  // Row `row` of x as tokens x width.
  template <typename T>
  EffectiveRank Measure(Panels<const T> x, int64_t row);
  // The singular values behind the last Measure, min(tokens, width) of them.
  std::span<const double> singular_values() const { return singular_values_; }

 private:
  int64_t tokens_;
  int64_t width_;
  std::vector<double> matrix_;
  std::vector<double> singular_values_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_SPECTRUM_SPECTRUM_H_
