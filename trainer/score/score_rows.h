#ifndef ELASTOR_TRAINER_SCORE_SCORE_ROWS_H_
#define ELASTOR_TRAINER_SCORE_SCORE_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "trainer/evaluate/predictions_file.h"

namespace elastor {

struct ScoreRowsOptions {
  std::string model_dir;
  // Files of raw rows, plain or gzip, read one after another; "-" is stdin.
  std::vector<std::string> inputs;
  std::string output_dir;  // a new directory for predictions.csv; empty: the lines go to stdout
  LogitColumn logit = LogitColumn::kLeftOut;
  int threads = 1;
  int64_t max_bad_rows = -1;  // -1: the schema's limit
};

// Scores raw rows with a trained model (docs/use/scoring.md). Writes the lines of mode predict's
// predictions.csv, one per row, in order. Memory does not grow with the input. A missing label, and
// the probability of a bad row, are empty. User error naming the line of the first bad row beyond
// max_bad_rows; then nothing is in output_dir.
Status ScoreRows(const ScoreRowsOptions& options);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SCORE_SCORE_ROWS_H_
