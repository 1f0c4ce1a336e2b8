#ifndef ELASTOR_TRAINER_PREPARE_GUESS_PROPOSAL_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_PROPOSAL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "trainer/prepare/guess/columns.h"
#include "trainer/prepare/guess/text_sample.h"

namespace elastor {

// What the phases before found in rows of layout DELIMITED.
struct DelimitedFindings {
  Schema schema;  // delimiter, quoted, skip_lines, header, null
  SampleColumns sample;
  std::vector<size_t> candidates;  // places that can be the label, the best first; not empty
  std::vector<bool> copies;        // by column: its value tells the label
};

// Returns the comment that a proposal begins with. `layout`: says what a row consists of.
std::string ProposalHead(const TextSample& text, int64_t rows, int64_t bad_rows,
                         std::string_view layout);

// Returns a schema as protobuf text, with what was found as comments.
std::string DelimitedProposal(const TextSample& text, const DelimitedFindings& found);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_PROPOSAL_H_
