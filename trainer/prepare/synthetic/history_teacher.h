#ifndef ELASTOR_TRAINER_PREPARE_SYNTHETIC_HISTORY_TEACHER_H_
#define ELASTOR_TRAINER_PREPARE_SYNTHETIC_HISTORY_TEACHER_H_

#include <cstdint>

#include "configs/proto/schema.pb.h"
#include "trainer/data/dataset.h"

namespace elastor {

// Rows of a Synthetic plan whose teacher is HISTORY, and the logits behind their labels (formulas:
// docs/reference/planted_data.md). A row is a function of (plan, row number). Thread-safe after
// construction.
class HistoryTeacher {
 public:
  // Calibrates mean and standard deviation of the logit on the first rows.
  explicit HistoryTeacher(const Synthetic& plan);

  // Appends row `row` to *rows and returns its true logit.
  double AppendRow(int64_t row, Rows* rows) const;

 private:
  // What a user saw at a place of the stream of items that they see.
  int64_t ItemOf(int64_t user, int64_t place) const;
  int64_t HeavyTailedItem(uint32_t high, uint32_t low) const;
  void AppendFeatures(int64_t row, Rows* rows) const;
  // Score of the last row of *rows, before it is scaled.
  double RawScore(const Rows& rows) const;
  double WeightOf(int64_t item) const;

  const Synthetic plan_;
  const int64_t columns_;  // the categorical fields and the history
  double scale_ = 1;
  double shift_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_SYNTHETIC_HISTORY_TEACHER_H_
