#ifndef ELASTOR_TRAINER_PREPARE_GUESS_PROPOSAL_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_PROPOSAL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "trainer/prepare/guess/columns.h"
#include "trainer/prepare/guess/label.h"
#include "trainer/prepare/guess/read_back.h"
#include "trainer/prepare/guess/text_sample.h"

namespace elastor {

// What the phases before found in rows of layout DELIMITED.
struct DelimitedFindings {
  Schema schema;  // delimiter, quoted, skip_lines, header, null
  SampleColumns sample;
  bool is_table = false;                 // no lines that can be hashed
  std::vector<size_t> candidates;        // places that can be the label, the best first; not empty
  bool given_label = false;              // --label names it
  std::vector<Telling> telling;          // by column
  std::vector<std::string> null_doubts;  // by column, of its missing values
  std::string header_fault;              // see Header::fault
};

// Returns the comment that a proposal begins with. `layout`: says what a row consists of.
std::string ProposalHead(const TextSample& text, const ReadBack& read, std::string_view layout);

// Returns max_bad_rows for the share of bad rows that a sample has, with a comment that says why.
std::string BadRowsText(const ReadBack& read);

// Returns a schema as protobuf text without max_bad_rows, in whose place stands `bad_rows`. Above a
// field that a person should look at stands "# check COLUMN: " and why.
std::string DelimitedSchema(const DelimitedFindings& found, const std::string& bad_rows);

// Returns the same with what was found as comments.
std::string DelimitedProposal(const TextSample& text, const DelimitedFindings& found,
                              const ReadBack& read);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_PROPOSAL_H_
