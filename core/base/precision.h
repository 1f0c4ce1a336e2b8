#ifndef ELASTOR_CORE_BASE_PRECISION_H_
#define ELASTOR_CORE_BASE_PRECISION_H_

namespace elastor {

// The number format in which matrix products multiply; they always add in float. TF32 exists on
// GPUs only.
enum class Precision { kFloat32, kTf32, kBFloat16 };

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_PRECISION_H_
