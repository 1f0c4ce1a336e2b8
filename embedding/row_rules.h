#ifndef ELASTOR_EMBEDDING_ROW_RULES_H_
#define ELASTOR_EMBEDDING_ROW_RULES_H_

#include <algorithm>
#include <bit>
#include <cstdint>

namespace elastor {

// The largest count of a key that has no row.
inline constexpr int64_t kMostCount = int64_t{1} << 24;

// Which rows of a keyed table stay. A row's *use* is a number of 64 bits that the steps which touch
// the row change by integer arithmetic alone, so it does not depend on ranks or threads. It is also
// the row's score, but with kL2, whose score is the bits of the sum of squared weights: rows with
// the lowest leave first, and among equals the lowest keys.
struct RowRules {
  enum class Policy {
    kNone,
    kLru,         // rows leave in the order of the last step that used them
    kLfu,         // ... of how often they occurred
    kDecayedLfu,  // ... of how often, where half_life_steps halve what was before
    kTtlSteps,    // rows unused for more than ttl_steps leave
    kL2,          // rows with a smaller sum of squared weights than min_l2 leave
    // Rows unused for more than ttl_seconds leave. The clock is the largest TIME among all rows of
    // the data that training has read so far, 0 at the start.
    kTtlEventTime,
  };
  Policy policy = Policy::kNone;
  int64_t capacity = 0;  // rows on all ranks; 0: no limit
  // Whether rows beyond the capacity leave; otherwise they end the run.
  bool evicts_when_full = false;
  int64_t evict_to = 0;           // rows that a pass leaves
  int64_t evict_every_steps = 0;  // 0: passes at a full table alone
  int64_t ttl_steps = 0;
  int64_t ttl_seconds = 0;
  int64_t half_life_steps = 0;
  double min_l2 = 0;

  // Admission (admission.h): a key gets a row at the step in which it has occurred min_count times.
  int64_t min_count = 1;
  // Lines of counters in each row of a partition's count-min sketch; 0: exact counts of keys.
  int64_t sketch_lines = 0;
  // Whether keys without a row read and train one row of their partition, in place of zeros.
  bool shares_rows = false;
  int64_t count_ttl_steps = 0;  // exact counts that are older leave; 0: none leaves

  bool admits() const { return min_count > 1; }
  bool evicts() const { return policy != Policy::kNone; }
  bool by_time() const { return policy == Policy::kTtlEventTime; }
  // What "now" is in uses, and how old they may be.
  int64_t Now(int64_t step, int64_t event_time) const { return by_time() ? event_time : step; }
  int64_t ttl() const { return by_time() ? ttl_seconds : ttl_steps; }
  // Whether a pass removes all rows beyond a limit, whatever the capacity.
  bool by_limit() const {
    return by_time() || policy == Policy::kTtlSteps || policy == Policy::kL2;
  }
  bool keeps_use() const { return evicts() && policy != Policy::kL2; }
  // Whether the occurrences of a batch's keys are needed.
  bool counts() const {
    return admits() || policy == Policy::kLfu || policy == Policy::kDecayedLfu;
  }
};

// A use of kDecayedLfu is a sum of weights, one for each occurrence: an occurrence at step s weighs
// w(s), which doubles every half_life_steps and follows a line between two multiples of them. So
// the decayed count at step t is the sum / w(t), and nothing changes while a key does not occur:
// decaying from a to b and on to c is decaying from a to c, exactly. The order of the uses is that
// of the decayed counts at any step.
//
// The sum is a floating-point number in integers: a mantissa of kMantissaBits, the highest of them
// set, below its exponent. A step that adds to it changes it by at most 2^-28 of itself more or
// less than the exact sum. Behind kMostDoublings half-lives, weights double no more.
inline constexpr int kMantissaBits = 30;
inline constexpr int kGuardBits = 32;
inline constexpr uint64_t kMostDoublings = uint64_t{1} << 33;

// Returns `use`, of kDecayedLfu, with `count` occurrences of `step` more.
inline uint64_t DecayedUse(uint64_t use, uint64_t count, int64_t step, int64_t half_life) {
  if (count == 0) return use;
  constexpr uint64_t kOne = uint64_t{1} << kMantissaBits;
  const auto line =
      static_cast<uint64_t>(static_cast<unsigned __int128>(step % half_life) * kOne / half_life);
  const uint64_t weight = std::min<uint64_t>(count, 0xffffffff) * (kOne + line);
  const uint64_t mantissa = use & (kOne - 1);
  const uint64_t above = use >> kMantissaBits;
  uint64_t exponent = std::min(static_cast<uint64_t>(step / half_life), kMostDoublings);
  uint64_t sum = weight;
  if (above <= exponent) {
    sum += exponent - above < kMantissaBits ? mantissa >> (exponent - above) : 0;
  } else if (above - exponent <= kGuardBits) {
    sum += mantissa << (above - exponent);
  } else {
    const uint64_t shift = above - exponent - kGuardBits;
    sum = (mantissa << kGuardBits) + (shift < 64 ? weight >> shift : 0);
    exponent = above - kGuardBits;
  }
  // The sum has more bits than a mantissa.
  int beyond = std::bit_width(sum) - kMantissaBits;
  sum = (sum >> (beyond - 1)) + 1;  // half up
  sum >>= 1;
  if (sum == kOne) {
    sum >>= 1;
    ++beyond;
  }
  return (exponent + static_cast<uint64_t>(beyond)) << kMantissaBits | sum;
}

// Returns the use of a row after a step in which its key occurred `count` times in the whole batch.
// now: RowRules::Now of the step.
inline uint64_t UseAfter(const RowRules& rules, uint64_t use, uint64_t count, int64_t now) {
  switch (rules.policy) {
    case RowRules::Policy::kLfu:
      return use + count;
    case RowRules::Policy::kDecayedLfu:
      return DecayedUse(use, count, now, rules.half_life_steps);
    default:
      return static_cast<uint64_t>(now);
  }
}

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_ROW_RULES_H_
