#include "core/cuda/exact_sum.h"

#include <array>

#include "core/cuda/exact_sum_words.h"

namespace elastor::cuda {
namespace {

constexpr int kHostWordBits = 40;
constexpr int kHostWords = ExactSum::kWords - 1;  // words of the number itself
static_assert(kHostWords * kHostWordBits == kExactSumDigits * 32);

}  // namespace

ExactSum ToExactSum(const DeviceExactSum& sum) {
  uint32_t digits[kExactSumDigits];
  NormalizeExactWords(sum.words, digits);
  // The host's words lie at bits 0, 40, 80, ...: within two digits each, as 40 i mod 32 <= 24.
  std::array<int64_t, ExactSum::kWords> words{};
  for (int i = 0; i < kHostWords; ++i) {
    const int bit = i * kHostWordBits;
    const uint64_t pair = static_cast<uint64_t>(digits[bit / 32 + 1]) << 32 | digits[bit / 32];
    const uint64_t word = pair >> (bit % 32) << (64 - kHostWordBits);
    const bool is_top = i == kHostWords - 1;
    words[i] = is_top ? static_cast<int64_t>(word) >> (64 - kHostWordBits)
                      : static_cast<int64_t>(word >> (64 - kHostWordBits));
  }
  words[kHostWords] = sum.words[kBadAddends];
  return ExactSum::FromWords(words);
}

void ClearExactSums(Stream& stream, DeviceExactSum* sums, int64_t count) {
  FillZero(stream, sums, count);
}

}  // namespace elastor::cuda
