#ifndef ELASTOR_TRAINER_PREPARE_GUESS_LIBSVM_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_LIBSVM_H_

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "trainer/prepare/guess/read_back.h"
#include "trainer/prepare/guess/text_sample.h"

namespace elastor {

// What rows of layouts LIBSVM and LIBFFM have.
struct LibsvmFindings {
  // An entry of `fields`.
  struct Fields {
    std::string names;  // "f1", "f1..f4"
    std::string type;   // and its options, as protobuf text
    std::string doubt;  // why a person should look at it; empty: it is certain
  };
  size_t least_pairs = 0;  // of a row, and the most
  size_t most_pairs = 0;
  bool triples = false;  // layout LIBFFM
  bool zero_based = false;
  bool query = false;  // qid: stands in rows
  std::vector<Fields> fields;
};

// Whether nearly all of the first lines are a number, then words with colons, as libsvm, libFM,
// ranking data (qid:7) and libffm (field:index:value) write them.
bool IsLibsvm(const std::vector<std::string>& lines);

// Looks at all rows. User error naming the file and what it has when no schema reads such rows.
// REQUIRES: IsLibsvm of the first file.
StatusOr<LibsvmFindings> FindLibsvm(const TextSample& text);

// Return a schema of layout LIBSVM or LIBFFM, as DelimitedSchema and DelimitedProposal do.
std::string LibsvmSchema(const LibsvmFindings& found, const std::string& bad_rows);
std::string LibsvmProposal(const TextSample& text, const LibsvmFindings& found,
                           const ReadBack& read);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_LIBSVM_H_
