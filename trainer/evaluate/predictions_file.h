#ifndef ELASTOR_TRAINER_EVALUATE_PREDICTIONS_FILE_H_
#define ELASTOR_TRAINER_EVALUATE_PREDICTIONS_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/task/task.h"

namespace elastor {

// predictions.csv, a RowsFile: index,label,probability. With several learned labels, or one chosen
// by name, the columns of each are NAME,NAME.probability, and that of a missing label is empty.

// Its first line.
std::string PredictionsHeader(const Task& task);
// Those of rows that begin at first_row. labels: [rows][task.labels()]; logits: [rows]
// [task.outputs()].
std::string PredictionLines(const Task& task, int64_t first_row, const std::vector<float>& labels,
                            const std::vector<float>& logits);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_PREDICTIONS_FILE_H_
