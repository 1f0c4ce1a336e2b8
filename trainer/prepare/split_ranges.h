#ifndef ELASTOR_TRAINER_PREPARE_SPLIT_RANGES_H_
#define ELASTOR_TRAINER_PREPARE_SPLIT_RANGES_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "configs/proto/schema.pb.h"
#include "core/base/leaves.h"

namespace elastor {

// The rows of each Split when `rows` rows in file order are shared out by `plan`: the training
// split ends at round(rows * train), the validation split at round(rows * (train + validation)).
// All shares zero: everything is training data.
inline std::array<Range, 3> SplitRanges(const SplitPlan& plan, int64_t rows) {
  const auto end_at = [rows](double share) {
    return std::min<int64_t>(std::llround(share * static_cast<double>(rows)), rows);
  };
  const bool shared = plan.train() + plan.validation() + plan.test() > 0;
  const int64_t train = shared ? end_at(plan.train()) : rows;
  // Without a test share nothing may be left over by rounding.
  const bool to_the_end = !shared || plan.test() == 0;
  const int64_t validation = to_the_end ? rows : end_at(plan.train() + plan.validation());
  return {Range{0, train}, Range{train, validation}, Range{validation, rows}};
}

// The Split (0, 1 or 2) of a row whose split hash is `hash`: the shares of [0, 1) it falls into.
inline int SplitOfHash(const SplitPlan& plan, uint64_t hash) {
  const double place = static_cast<double>(hash >> 11) * 0x1p-53;
  if (place < plan.train()) return 0;
  return plan.test() == 0 || place < plan.train() + plan.validation() ? 1 : 2;
}

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_SPLIT_RANGES_H_
