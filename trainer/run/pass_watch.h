#ifndef ELASTOR_TRAINER_RUN_PASS_WATCH_H_
#define ELASTOR_TRAINER_RUN_PASS_WATCH_H_

#include <cstdint>
#include <string>

#include "embedding/table.h"

namespace elastor {

// Watches the passes over one keyed table, and tells of those that are mostly slips: passes of a
// full table at nearly every step, and passes that leave no row. Each once.
class PassWatch {
 public:
  // Steps that are looked at, and the passes among them that are too many.
  static constexpr int64_t kSteps = 64;
  static constexpr int64_t kMany = 48;

  // To be called after every step, with the rows that it left and those that a pass removed.
  // Returns a line to warn with, mostly none.
  std::string AfterStep(const TableSpec& table, int64_t step, int64_t rows, int64_t evicted);

 private:
  uint64_t passes_ = 0;  // a bit a step: whether it had a pass because the table was full
  bool told_of_many_ = false;
  bool told_of_nothing_ = false;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_PASS_WATCH_H_
