#ifndef ELASTOR_CORE_KERNELS_ROW_SUMS_H_
#define ELASTOR_CORE_KERNELS_ROW_SUMS_H_

#include <cstdint>

namespace elastor {

// Consecutive steps of Adam (core/optimizer/adam.h), of which a row without a gradient takes the
// last ones: Element with g = 0 w.
template <typename T>
struct AdamSteps {
  struct Step {
    T step_size, inverse_root_bias;
  };
  T beta1, beta2, epsilon;
  const Step* end;  // behind the last step
  // So many of the last steps are sure to change a weight by less than the step before them does.
  int64_t falling;
};

// Kernels on lists of rows of `width` elements, each row anywhere in memory.
template <typename T>
struct RowSumKernels {
  // total = rows[0] + rows[1] + ... + rows[count - 1], in this order. The sums stay in registers
  // while the list is read. ahead[i]: a row that is fetched into the cache while rows[i] is added.
  // REQUIRES: count >= 1, and total overlaps no row.
  void (*sum)(const T* const* rows, int64_t count, const T* const* ahead, int64_t width, T* total);
  // sums[i] = SumOfSquares(rows[i], width) (core/optimizer/sum_of_squares.h).
  void (*squares)(const T* const* rows, int64_t count, int64_t width, double* sums);
  // Row i takes the last owed[i] >= 1 of the steps. It has its weights, then m, then v.
  void (*take_steps)(const AdamSteps<T>& steps, T* const* rows, const int64_t* owed, int64_t count,
                     int64_t width);
};

// Returns those of the instruction set in use (core/kernels/cpu/isa.h).
template <typename T>
const RowSumKernels<T>& RowSums();

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_ROW_SUMS_H_
