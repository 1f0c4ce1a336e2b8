#ifndef ELASTOR_CORE_BASE_EXACT_SUM_H_
#define ELASTOR_CORE_BASE_EXACT_SUM_H_

#include <array>
#include <cstdint>

namespace elastor {

// A sum of doubles in 320-bit fixed point: the result does not depend on the order of additions or
// on how addends are split over accumulators, so scalars that cross leaves, ranks or owners (loss,
// gradient norm, metrics) are reproducible. Least bit 2^-160: addends are truncated toward zero
// there, each on its own. Addends are below 2^96; 2^60 of them cannot overflow the sum.
// Thread-compatible: one accumulator a thread, then Merge.
class ExactSum {
 public:
  // A non-finite or out-of-range addend makes ok() false for good (the run has *diverged*).
  void Add(double value);
  void Merge(const ExactSum& other);
  bool ok() const { return ok_; }
  // Returns the sum rounded to the nearest double, ties to even. NaN when !ok().
  double Value() const;

  // Words for an integer all-reduce. Sum ToWords() of up to 2^20 accumulators element by element as
  // int64; FromWords of that sum is the accumulator of all addends. Eight words of 40 bits, the
  // eighth signed; the ninth counts !ok().
  static constexpr int kWords = 9;
  std::array<int64_t, kWords> ToWords() const;
  static ExactSum FromWords(const std::array<int64_t, kWords>& words);

 private:
  static constexpr int kLimbs = 5;
  static constexpr int kWordBits = 40;

  void AddAt(int bit, uint64_t magnitude, bool negative);

  std::array<uint64_t, kLimbs> limbs_{};  // two's complement, little end first
  bool ok_ = true;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_EXACT_SUM_H_
