#include "core/kernels/cpu/row_sum_tables.h"

namespace elastor {

template <>
const RowSumKernels<float>& RowSums<float>() {
  return neon::kFloatRowSums;
}
template <>
const RowSumKernels<double>& RowSums<double>() {
  return neon::kDoubleRowSums;
}

}  // namespace elastor
