#ifndef ELASTOR_CORE_SPECTRUM_SPECTRUM_H_
#define ELASTOR_CORE_SPECTRUM_SPECTRUM_H_

#include <cstdint>

#include "core/spectrum/symmetric_eigenvalues.h"
#include "core/tensor/panels.h"

namespace elastor {

// Effective ranks of one matrix.
//   stable rank  = ||X||_F^2 / ||X||_2^2                       (RankElastor, eq. 1)
//   entropy rank = exp(-sum_i p_i log p_i), p_i = s_i / sum s   (Roy & Vetterli 2007)
// A zero matrix has both ranks 0; a matrix with an element that is not finite has both ranks NaN.
struct EffectiveRank {
  double stable = 0;
  double entropy = 0;
};

// Effective ranks and singular values of X [tokens, width] of kRows rows of a batch at a time, from
// the eigenvalues of the smaller Gram matrix, in double. Eigenvalues below their rounding error,
// n eps * largest for n = min(tokens, width), count as 0. A row's result does not depend on the
// other rows.
class Spectrum {
 public:
  static constexpr int64_t kRows = SymmetricEigenvalues::kMatrices;

  // unit_tokens: every token that is not zero is divided by its Euclidean norm first, so that ranks
  // tell of directions alone.
  Spectrum(int64_t tokens, int64_t width, bool unit_tokens = false);
  int64_t max_rank() const { return short_side_; }  // min(tokens, width)

  // Measures rows [first_row, first_row + kRows) of x, each as tokens x width. Results of rows
  // beyond x.rows are meaningless. REQUIRES: first_row < x.rows, a multiple of kRows.
  template <typename T>
  void Measure(Panels<const T> x, int64_t first_row);

  // Returns the ranks of row first_row + i of the last Measure.
  EffectiveRank rank(int64_t i) const { return ranks_[i]; }
  // Returns the n-th largest singular value of that row; n < max_rank().
  double singular_value(int64_t n, int64_t i) const { return singular_values_[n * kRows + i]; }

 private:
  void DivideByNorms();
  // Lanes with a trace that is not finite become zero matrices.
  void TakeTraces();
  void MakeRanks();

  const int64_t short_side_;
  const int64_t long_side_;
  // Distance in features from an element of X to the next along the short and the long side.
  const int64_t short_stride_;
  const int64_t long_stride_;
  const bool tokens_are_short_;
  const bool unit_tokens_;
  LaneArray matrix_;  // [kRows / kGramLanes][short_side][long_side][kGramLanes]
  SymmetricEigenvalues eigenvalues_;
  double traces_[kRows];       // squared Frobenius norms
  LaneArray singular_values_;  // [short_side][kRows]
  EffectiveRank ranks_[kRows];
};

}  // namespace elastor

#endif  // ELASTOR_CORE_SPECTRUM_SPECTRUM_H_
