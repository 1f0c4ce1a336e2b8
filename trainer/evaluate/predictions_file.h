#ifndef ELASTOR_TRAINER_EVALUATE_PREDICTIONS_FILE_H_
#define ELASTOR_TRAINER_EVALUATE_PREDICTIONS_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace elastor {

// predictions.csv, a RowsFile: its first line, and those of rows that begin at first_row.
inline constexpr char kPredictionsHeader[] = "index,label,probability\n";
std::string PredictionLines(int64_t first_row, const std::vector<float>& labels,
                            const std::vector<float>& logits);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_PREDICTIONS_FILE_H_
