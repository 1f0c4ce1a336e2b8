#ifndef ELASTOR_TRAINER_PREPARE_VALUES_VALUE_TALLY_H_
#define ELASTOR_TRAINER_PREPARE_VALUES_VALUE_TALLY_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/exact_sum.h"

namespace elastor {

using SplitCounts = std::array<int64_t, 3>;  // by Split

struct TopValue {
  std::string value;
  SplitCounts counts;
};

// The values of a categorical column.
struct ValueTally {
  SplitCounts values = {0, 0, 0};                // occurrences; missing ones too
  SplitCounts missing = {0, 0, 0};               // the empty text
  SplitCounts unknown = {0, 0, 0};               // not missing, and id 0 of a vocabulary
  SplitCounts distinct = {0, 0, 0};              // not missing
  std::array<double, 3> divergence = {0, 0, 0};  // Jensen-Shannon, from the training split
  std::vector<TopValue> top;  // of the training split, by count descending, then value
};

// Makes a ValueTally of values that come one by one. What it is does not depend on how values are
// split over builders.
class ValueTallyBuilder {
 public:
  explicit ValueTallyBuilder(const SplitCounts& values) { tally_.values = values; }

  enum class Kind { kMissing, kUnknown, kKnown };
  // A value and how often it occurs; values of one builder come in ascending order.
  void Add(std::string_view value, Kind kind, const SplitCounts& counts);
  // Takes in `other`, whose values all come after these.
  void Append(const ValueTallyBuilder& other);
  ValueTally Finish();

 private:
  double Share(int64_t count, int split) const {
    return static_cast<double>(count) / static_cast<double>(tally_.values[split]);
  }

  ValueTally tally_;
  // Twice the divergence of a split from the training split is, over values in both, the sum of
  // shared_, and the shares of values that are in one of them alone.
  std::array<ExactSum, 3> shared_;
  SplitCounts only_here_ = {0, 0, 0};
  SplitCounts only_in_train_ = {0, 0, 0};
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_VALUES_VALUE_TALLY_H_
