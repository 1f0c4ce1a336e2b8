#ifndef ELASTOR_TRAINER_PREPARE_GUESS_READ_BACK_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_READ_BACK_H_

#include <cstdint>
#include <string>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"
#include "trainer/prepare/guess/text_sample.h"

namespace elastor {

// What `prepare` reads of a sample by a schema.
struct ReadBack {
  int64_t rows = 0;
  int64_t bad_rows = 0;
  int64_t positives = 0;    // rows whose label is 1
  std::string first_fault;  // of the first bad row: column, found, expected
};

// Reads the whole sample by a schema of layout DELIMITED or LIBSVM with one label, as `prepare`
// does. User error naming the file when it refuses a header, when no row is good, or when all
// labels are equal.
StatusOr<ReadBack> ReadSampleBack(const Schema& schema, const TextSample& sample);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_READ_BACK_H_
