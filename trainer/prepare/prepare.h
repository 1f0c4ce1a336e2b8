#ifndef ELASTOR_TRAINER_PREPARE_PREPARE_H_
#define ELASTOR_TRAINER_PREPARE_PREPARE_H_

#include <cstdint>

#include "core/base/status.h"
#include "trainer/prepare/prepare_options.h"

namespace elastor {

struct PrepareReport {
  int64_t rows[3] = {0, 0, 0};  // by Split
  int64_t ids = 0;              // table rows of all fields together
  int64_t bad_rows = 0;
  int64_t text_bytes = 0;  // of all inputs, unpacked
  double best_auc = -1;    // SYNTHETIC; < 0: unknown
  double seconds = 0;      // wall clock
  double cpu_seconds = 0;  // of all threads
};

// Makes a prepared data set (docs/data.md) of raw files, or of a synthetic plan. The text is read
// once: rows go to a working file beside the output with provisional ids; when all values are
// known, vocabularies and statistics are taken from the training rows and the final blocks written.
// Needs disk for about three times the prepared data meanwhile, and memory for the distinct values.
StatusOr<PrepareReport> Prepare(const PrepareOptions& options);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_PREPARE_H_
