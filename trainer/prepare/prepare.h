#ifndef ELASTOR_TRAINER_PREPARE_PREPARE_H_
#define ELASTOR_TRAINER_PREPARE_PREPARE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "trainer/prepare/prepare_options.h"

namespace elastor {

struct PrepareReport {
  int64_t rows[3] = {0, 0, 0};  // by Split
  int64_t ids = 0;              // table rows of all tables together
  int64_t bad_rows = 0;
  int64_t text_bytes = 0;  // of all inputs, unpacked
  int64_t work_bytes = 0;  // of all working files, which are gone
  int64_t segments = 0;
  double best_auc = -1;    // SYNTHETIC, of the only label; < 0: unknown
  double best_gauc = -1;   // HISTORY, likewise
  double seconds = 0;      // wall clock
  double cpu_seconds = 0;  // of all threads
  std::vector<std::pair<std::string, double>> best_aucs;  // SYNTHETIC, of each of several labels
  // With vocabulary_from, of every field with a vocabulary: the share of its values that are not in
  // it.
  std::vector<std::pair<std::string, double>> unknown_shares;
};

// Makes a prepared data set (docs/use/data.md) of raw files, or of a synthetic plan, in four
// passes: text to packed rows and sorted vocabularies by segment; counts and statistics; merging
// the vocabularies, which gives ids; blocks. Working files are beside the output until it is
// complete; a run that was killed, or found no space, goes on from them when it is called again
// with the same options. User error when there is an unfinished run of other options (unless
// options.restart).
StatusOr<PrepareReport> Prepare(const PrepareOptions& options);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_PREPARE_H_
