#ifndef ELASTOR_TRAINER_PREPARE_GUESS_TYPES_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "configs/proto/schema.pb.h"
#include "trainer/prepare/guess/columns.h"

namespace elastor {

// Returns the format that all values of a column have, when the column is a time.
std::optional<Field::TimeFormat> TimeFormatOf(const SampleColumn& column);

// Whether a column's numbers are quantities, rather than names of things.
bool IsQuantity(const SampleColumn& column, int64_t rows);

// Returns the type and options of the label, as protobuf text.
std::string LabelType(const SampleColumn& column);

// Returns the type and options of a column that is neither the label nor a time, as protobuf text;
// "  # ..." behind it says why a column is IGNORED. `tells_label`: its value tells the label.
std::string ColumnType(const SampleColumn& column, int64_t rows, bool tells_label,
                       std::string_view delimiter);

// Returns `text` in quotes, as protobuf text has it.
std::string ProtoQuoted(std::string_view text);

// Returns six significant digits of `value`.
std::string NumberText(double value);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_TYPES_H_
