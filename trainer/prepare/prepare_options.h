#ifndef ELASTOR_TRAINER_PREPARE_PREPARE_OPTIONS_H_
#define ELASTOR_TRAINER_PREPARE_PREPARE_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "configs/proto/schema.pb.h"

namespace elastor {

// What Prepare is at.
struct PrepareProgress {
  std::string phase;
  double share = 0;        // of the phase
  int64_t rows = 0;        // done in this phase by this process
  int64_t text_bytes = 0;  // the same, when text is read
};

struct PrepareOptions {
  Schema schema;  // as ReadSchemaFile returns it
  // In file order, kStdinPath for stdin; none for SYNTHETIC.
  std::vector<std::string> inputs;
  // Given either, the split is by files, and `inputs` is training data alone.
  std::vector<std::string> validation_inputs;
  std::vector<std::string> test_inputs;
  bool unlabelled_test = false;  // test_inputs lack the labels' columns
  // A prepared set whose vocabularies, means and deviations are used; empty: the training split's.
  std::string vocabulary_from;
  // Values that the given vocabularies lack get ids behind theirs, by the same rule.
  bool grow = false;
  std::string output_dir;
  bool restart = false;  // forget an unfinished run
  int threads = 1;       // the output does not depend on it, nor on the next two
  // Memory for all threads together, in bytes. Less memory makes more segments, whose vocabularies
  // have to be written and merged.
  int64_t memory_bytes = int64_t{3} << 30;
  // Text that a thread reads between points from which a killed run goes on.
  int64_t segment_bytes = int64_t{512} << 20;
  // Called now and then, by one thread at a time; may be empty.
  std::function<void(const PrepareProgress& progress)> progress;
  // Called once for each of the first few bad rows; may be empty.
  std::function<void(const std::string& message)> warn;
};

struct PrepareReport {
  int64_t rows[3] = {0, 0, 0};  // by Split
  int64_t ids = 0;              // table rows of all tables together
  int64_t bad_rows = 0;
  // Of every lookup, "movieId_in_movies.csv": rows whose key its file lacks.
  std::vector<std::pair<std::string, int64_t>> missing_keys;
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

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_PREPARE_OPTIONS_H_
