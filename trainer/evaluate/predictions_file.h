#ifndef ELASTOR_TRAINER_EVALUATE_PREDICTIONS_FILE_H_
#define ELASTOR_TRAINER_EVALUATE_PREDICTIONS_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/task/task.h"

namespace elastor {

// Text of predictions.csv, a RowsFile with the columns index,label,probability and, by choice,
// logit. With several learned labels, or one chosen by name, each label has the columns
// NAME,NAME.probability and NAME.logit. A missing label's column is empty.
enum class LogitColumn { kLeftOut, kThere };

// Returns the first line of predictions.csv.
std::string PredictionsHeader(const Task& task, LogitColumn logit);
// Returns the lines of consecutive rows that begin at first_row. Shapes: labels
// [rows][task.labels()], logits [rows][task.outputs()].
std::string PredictionLines(const Task& task, LogitColumn logit, int64_t first_row,
                            const std::vector<float>& labels, const std::vector<float>& logits);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_PREDICTIONS_FILE_H_
