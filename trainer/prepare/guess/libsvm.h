#ifndef ELASTOR_TRAINER_PREPARE_GUESS_LIBSVM_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_LIBSVM_H_

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "trainer/prepare/guess/read_back.h"
#include "trainer/prepare/guess/text_sample.h"

namespace elastor {

// How the pairs of a row are fields.
struct LibsvmFindings {
  size_t least_pairs = 0;  // of a row, and the most
  size_t most_pairs = 0;
  // NUMERIC: the indices are those of the places, 1, 2, ..., or 0, 1, ... if zero_based.
  // CATEGORICAL: no index stands at two places. MULTI_HOT: else.
  enum Fields { kNumeric, kCategorical, kBag } fields = kBag;
  bool zero_based = false;
};

// Whether nearly all of the first lines are a number, then words with colons, as libsvm, libFM,
// ranking data (qid:7) and libffm (field:index:value) write them.
bool IsLibsvm(const std::vector<std::string>& lines);

// Looks at all rows. User error naming the file and what it has when no schema reads such rows:
// libffm's triples, labels other than 0, 1 and -1, numbers whose index differs from row to row.
// REQUIRES: IsLibsvm of the first file.
StatusOr<LibsvmFindings> FindLibsvm(const TextSample& text);

// Return a schema of layout LIBSVM, as DelimitedSchema and DelimitedProposal do.
std::string LibsvmSchema(const LibsvmFindings& found, const std::string& bad_rows);
std::string LibsvmProposal(const TextSample& text, const LibsvmFindings& found,
                           const ReadBack& read);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_LIBSVM_H_
