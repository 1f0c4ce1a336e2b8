#ifndef ELASTOR_CORE_KERNELS_CPU_ROW_SUM_TABLES_H_
#define ELASTOR_CORE_KERNELS_CPU_ROW_SUM_TABLES_H_

#include "core/kernels/cpu/vec.h"
#include "core/kernels/row_sums.h"

namespace elastor {

namespace v3 {
extern const RowSumKernels<float> kFloatRowSums;
extern const RowSumKernels<double> kDoubleRowSums;
}  // namespace v3
namespace v4 {
extern const RowSumKernels<float> kFloatRowSums;
extern const RowSumKernels<double> kDoubleRowSums;
}  // namespace v4
namespace neon {
extern const RowSumKernels<float> kFloatRowSums;
extern const RowSumKernels<double> kDoubleRowSums;
}  // namespace neon

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_ROW_SUM_TABLES_H_
