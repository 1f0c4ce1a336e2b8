#ifndef ELASTOR_EMBEDDING_ROW_RULES_H_
#define ELASTOR_EMBEDDING_ROW_RULES_H_

#include <algorithm>
#include <cstdint>

namespace elastor {

// Which rows of a keyed table stay. A row's *use* is a number of 64 bits that the steps which touch
// the row change by integer arithmetic alone, so it does not depend on ranks or threads.
struct RowRules {
  enum class Policy {
    kNone,
    kLru,         // rows leave in the order of the last step that used them
    kLfu,         // ... of how often they occurred
    kDecayedLfu,  // ... of how often, where half_life_steps halve what was before
    kTtlSteps,    // rows unused for more than ttl_steps leave
    kL2,          // rows with a smaller sum of squared weights than min_l2 leave
  };
  Policy policy = Policy::kNone;
  int64_t capacity = 0;  // rows on all ranks; 0: no limit
  // Whether rows beyond the capacity leave; otherwise they end the run.
  bool evicts_when_full = false;
  int64_t evict_to = 0;           // rows that a pass leaves
  int64_t evict_every_steps = 0;  // 0: passes at a full table alone
  int64_t ttl_steps = 0;
  int64_t half_life_steps = 0;
  double min_l2 = 0;

  bool evicts() const { return policy != Policy::kNone; }
  bool keeps_use() const { return evicts() && policy != Policy::kL2; }
  bool counts() const { return policy == Policy::kLfu || policy == Policy::kDecayedLfu; }
};

// A use of kDecayedLfu: the count when it last changed, in 256ths, above the step then.
inline constexpr int kStepBits = 32;
inline constexpr int kCountFraction = 8;

// Returns a decayed count at `step`: it is halved every half_life_steps, and falls along a line in
// between.
inline uint64_t DecayedCount(const RowRules& rules, uint64_t use, int64_t step) {
  const uint64_t count = use >> kStepBits;
  const auto then = static_cast<int64_t>(use & 0xffffffff);
  const int64_t age = std::max<int64_t>(step - then, 0);
  const int64_t halvings = age / rules.half_life_steps;
  if (halvings >= 32) return 0;
  const uint64_t halved = count >> halvings;
  const auto rest = static_cast<uint64_t>(age % rules.half_life_steps);
  return halved - halved * rest / (2 * static_cast<uint64_t>(rules.half_life_steps));
}

// Returns the use of a row after a step in which its key occurred `count` times in the whole batch.
inline uint64_t UseAfter(const RowRules& rules, uint64_t use, uint64_t count, int64_t step) {
  switch (rules.policy) {
    case RowRules::Policy::kLfu:
      return use + count;
    case RowRules::Policy::kDecayedLfu: {
      const uint64_t sum = DecayedCount(rules, use, step) + (count << kCountFraction);
      return std::min<uint64_t>(sum, 0xffffffff) << kStepBits | static_cast<uint64_t>(step);
    }
    default:
      return static_cast<uint64_t>(step);
  }
}

// Returns the score of a row at `step`: rows with the lowest leave first, and among equals the
// lowest keys. kL2 takes the bits of the sum of squared weights instead.
inline uint64_t ScoreOfUse(const RowRules& rules, uint64_t use, int64_t step) {
  return rules.policy == RowRules::Policy::kDecayedLfu ? DecayedCount(rules, use, step) : use;
}

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_ROW_RULES_H_
