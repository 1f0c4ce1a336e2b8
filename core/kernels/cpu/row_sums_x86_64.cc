#include "core/kernels/cpu/isa.h"
#include "core/kernels/cpu/row_sum_tables.h"

namespace elastor {

template <>
const RowSumKernels<float>& RowSums<float>() {
  static const auto& kernels = ActiveIsa() == Isa::kV4 ? v4::kFloatRowSums : v3::kFloatRowSums;
  return kernels;
}
template <>
const RowSumKernels<double>& RowSums<double>() {
  static const auto& kernels = ActiveIsa() == Isa::kV4 ? v4::kDoubleRowSums : v3::kDoubleRowSums;
  return kernels;
}

}  // namespace elastor
