#ifndef ELASTOR_CORE_BASE_SIZES_H_
#define ELASTOR_CORE_BASE_SIZES_H_

#include <cstdint>
#include <initializer_list>

namespace elastor {

// Sizes that may be too large for any machine: amounts of memory and numbers of elements as an
// experiment and a schema ask for them. Larger ones are taken for kMostSize, which no memory has.
inline constexpr int64_t kMostSize = int64_t{1} << 62;

// Rounds a number of bytes up to a multiple of 8.
inline int64_t RoundUpTo8(int64_t bytes) { return (bytes + 7) & ~int64_t{7}; }

// Multiplies numbers that are at least 0. Returns kMostSize where the product is larger.
inline int64_t SizeProduct(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (factor == 0) return 0;
    if (__builtin_mul_overflow(product, factor, &product) || product > kMostSize) {
      product = kMostSize;
    }
  }
  return product;
}

// Adds a number that is at least 0 to `sum`, which becomes kMostSize at most.
inline void AddSize(int64_t addend, int64_t* sum) {
  if (__builtin_add_overflow(*sum, addend, sum) || *sum > kMostSize) *sum = kMostSize;
}

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_SIZES_H_
