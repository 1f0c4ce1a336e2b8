#ifndef ELASTOR_TRAINER_RECORDS_RECORD_FIELD_H_
#define ELASTOR_TRAINER_RECORDS_RECORD_FIELD_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace elastor {

// Returns the number; none if it is not finite.
inline std::optional<double> Finite(double number) {
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

// How an optional without a value, an empty text, or a 0 is written: as it is (of an optional,
// null), as null, or not at all.
enum class IfEmpty { kAsItIs, kNull, kLeftOut };

// A picture of mode plot, NAME.svg: a curve over the steps.
struct RecordPicture {
  const char* title = nullptr;  // nullptr: there is none
  const char* y_title = nullptr;
  bool unless_zero = false;  // left out if all values are 0
};

// A row of a record's table: a field of the struct, its name in files, and where else it shows. The
// tables stand below the structs. JSON and its reader, metrics.csv, TensorBoard's scalars, the
// summary, runs.csv and the page of a run are made from them. So a new metric is a field and a row
// in one header, and the place that computes it.
template <typename Record>
struct RecordField {
  const char* name;  // in JSON, and of the column of metrics.csv
  std::variant<int64_t Record::*, uint64_t Record::*, double Record::*, bool Record::*,
               std::string Record::*, std::optional<int64_t> Record::*,
               std::optional<double> Record::*>
      value;
  IfEmpty if_empty = IfEmpty::kAsItIs;
  bool column = true;           // whether metrics.csv has it
  const char* tag = nullptr;    // TensorBoard's, behind the split's or label's; nullptr: none
  const char* title = nullptr;  // for people: "AUC"; nullptr: shown in no table and no summary
  const char* word = nullptr;   // in lines of progress: "auc"; nullptr: not there
  bool in_summary = false;      // of evaluations: in summary.json, its text, and runs.csv
  RecordPicture picture = {};

  // Returns the value as a number; none if it is missing, no finite number, or a text.
  std::optional<double> Number(const Record& record) const {
    return std::visit(
        [&](auto place) -> std::optional<double> {
          const auto& found = record.*place;
          if constexpr (requires { found.has_value(); }) {
            return found ? std::optional(static_cast<double>(*found)) : std::nullopt;
          } else if constexpr (requires { found.size(); }) {
            return std::nullopt;
          } else {
            return Finite(static_cast<double>(found));
          }
        },
        value);
  }
  // Returns whether it counts something.
  bool is_integer() const {
    return std::holds_alternative<int64_t Record::*>(value) ||
           std::holds_alternative<uint64_t Record::*>(value) ||
           std::holds_alternative<std::optional<int64_t> Record::*>(value);
  }
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RECORDS_RECORD_FIELD_H_
