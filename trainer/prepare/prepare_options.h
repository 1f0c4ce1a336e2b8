#ifndef ELASTOR_TRAINER_PREPARE_PREPARE_OPTIONS_H_
#define ELASTOR_TRAINER_PREPARE_PREPARE_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>
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

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_PREPARE_OPTIONS_H_
