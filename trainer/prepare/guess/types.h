#ifndef ELASTOR_TRAINER_PREPARE_GUESS_TYPES_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "configs/proto/schema.pb.h"
#include "trainer/prepare/guess/columns.h"
#include "trainer/prepare/guess/label.h"

namespace elastor {

// What is proposed for a column.
struct ColumnProposal {
  std::string type;    // and its options, as protobuf text; empty: a time
  std::string reason;  // why it is IGNORED, where that is certain
  std::string doubt;   // why a person should look at it; empty: it is certain
  std::optional<Field::TimeFormat> time;
};

// Returns the type and options of the label, as protobuf text.
std::string LabelType(const SampleColumn& column);

// Proposes for a column that is not the label. `named`: its name is of a header, and says
// something. `delimiter`: as of FindList. REQUIRES: the column is summarised.
ColumnProposal ProposeColumn(const SampleColumn& column, bool named, int64_t rows, Telling telling,
                             std::string_view delimiter);

// Returns `text` in quotes, as protobuf text has it.
std::string ProtoQuoted(std::string_view text);

// Returns six significant digits of `value`.
std::string NumberText(double value);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_TYPES_H_
