#ifndef ELASTOR_CORE_KERNELS_CUDA_FAST_DIVISOR_H_
#define ELASTOR_CORE_KERNELS_CUDA_FAST_DIVISOR_H_

#include <bit>
#include <cstdint>

#include "core/base/build_config.h"
#include "core/base/log.h"

namespace elastor::cuda {

// Division by a number that the host knows, for kernels: a product and a shift instead of some
// twenty instructions (Granlund and Montgomery, PLDI 1994, figure 4.1).
class FastDivisor {
 public:
  FastDivisor() = default;
  // REQUIRES: 1 <= divisor < 2^31.
  explicit FastDivisor(int64_t divisor) {
    CHECK(divisor >= 1 && divisor < int64_t{1} << 31) << divisor;
    divisor_ = static_cast<uint32_t>(divisor);
    shift_ = static_cast<uint32_t>(std::bit_width(divisor_ - 1));
    const uint64_t above = (uint64_t{1} << shift_) - divisor_;
    factor_ = static_cast<uint32_t>((above << 32) / divisor_ + 1);
  }

  // n / divisor. REQUIRES: n < 2^31.
  ELASTOR_HOST_DEVICE uint32_t Divide(uint32_t n) const {
    return (static_cast<uint32_t>((uint64_t{n} * factor_) >> 32) + n) >> shift_;
  }
  ELASTOR_HOST_DEVICE uint32_t divisor() const { return divisor_; }

 private:
  uint32_t divisor_ = 1;
  uint32_t factor_ = 1;
  uint32_t shift_ = 0;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_KERNELS_CUDA_FAST_DIVISOR_H_
