#ifndef ELASTOR_TRAINER_PREPARE_ROWS_ROW_BUILDER_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_ROW_BUILDER_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "trainer/prepare/rows/history_columns.h"
#include "trainer/prepare/rows/parsed_chunk.h"

namespace elastor {

inline constexpr size_t kDefaultMaxLength = 64;  // ids of a bag, when the schema gives none

// Whether an encoding makes keys of 64 bits, for a table whose rows come and go.
inline bool MakesKeys(Field::Encoding encoding) {
  return encoding == Field::HASHED_KEY || encoding == Field::IDENTITY_KEY;
}
// Whether an encoding takes any text.
inline bool TakesText(Field::Encoding encoding) {
  return encoding != Field::IDENTITY && encoding != Field::IDENTITY_KEY;
}

// A field of the schema, as the parser needs it.
struct FieldPlan {
  explicit FieldPlan(const Field& field, int64_t column);

  std::string name;
  Field::Type type;
  Field::Transform transform;
  Field::Encoding encoding;
  uint64_t buckets;
  int64_t offset;
  size_t max_length;
  char separator;
  Field::List list;
  Field::TimeFormat time_format;
  std::vector<double> boundaries;
  bool label_of_number;  // a LABEL with at_least
  double at_least;
  std::vector<std::string> positive;
  std::vector<std::string> negative;
  bool any_value;
  bool keep_missing;
  // From 0; the label of LIBSVM is column 0; -1: pairs tell the field; -2, -3, ...: cells of side
  // tables, then histories.
  int64_t column;
};

inline bool TakesLog2(const FieldPlan& field) {
  return field.transform == Field::LOG2_STANDARDIZE || field.transform == Field::LOG2;
}
// Whether a number is one of the label's; a label of texts has none.
bool IsLabel(const FieldPlan& field, double number);
// Returns the label. REQUIRES: IsLabel, or NaN, which stays.
float LabelOf(const FieldPlan& field, double number);
// Returns the id of a text. REQUIRES: a field of encoding HASH or HASHED_KEY.
uint64_t HashedId(const FieldPlan& field, std::string_view text);

// Appends rows to a chunk, value by value, or takes one back. Each Add returns false after noting
// what is wrong; the row then needs nothing but End.
class RowBuilder {
 public:
  // `chunk` holds no rows yet. optional_labels: a row's only label may be missing, too.
  RowBuilder(const std::vector<FieldPlan>& fields, bool optional_labels, ParsedChunk* chunk);

  std::string_view text() const { return chunk_->text; }
  std::string_view Text(uint32_t begin, uint32_t end) const {
    return {chunk_->text.data() + begin, end - begin};
  }

  // Adds the value of a whole column of DELIMITED. REQUIRES: `text` lies in the chunk's, or lives
  // as long as the chunk.
  bool Add(const FieldPlan& field, std::string_view text);
  // Adds the items of a table's list, sized texts. REQUIRES: as Add.
  bool AddList(const FieldPlan& field, std::string_view texts);
  // Adds one value of each of several rows. REQUIRES: `texts` lives as long as the chunk.
  bool AddHistory(const FieldPlan& field, std::string_view texts, const HistoryPlace& from);
  // Adds what a history depends on. REQUIRES: as Add.
  void AddEvent(std::string_view text);

  bool AddLibsvmLabel(std::string_view text);  // of a schema without a field for it
  void AddKnownLabel(float label) { chunk_->labels.push_back(label); }
  bool AddNumber(const FieldPlan& field, std::string_view text);  // not missing
  // Adds a number of a NUMERIC field or a LABEL. NaN: missing.
  bool AddNumber(const FieldPlan& field, double value);
  bool AddText(const FieldPlan& field, std::string_view text) {
    return Encode(field, text, &chunk_->ids);
  }
  bool AddToBag(const FieldPlan& field, std::string_view text);
  void EndBag(const FieldPlan& field);
  void AddSplitHash(uint64_t hash) { chunk_->split_hashes.push_back(hash); }

  bool Fail(int64_t column, const std::string& name, std::string_view found,
            const std::string& expected);
  bool Fail(std::string what);
  // Adds to what the line's Fail has noted.
  void Hint(const std::string& hint);
  bool at_first_line() const { return chunk_->lines == 0; }

  // Passes over a line that is no row. REQUIRES: nothing was added since End.
  void SkipLine() { ++chunk_->lines; }
  // Ends the row of a record of `lines` lines: keeps it, or takes back what was added of it.
  void End(int64_t lines);
  // Begins a negative with this item, a further row of the record that ended last. What is wrong
  // with it is told of the record's first line. EndNegative is its End.
  void BeginNegative(std::string_view item);
  void EndNegative();

 private:
  bool AddLabel(const FieldPlan& field, std::string_view text);
  bool AddBag(const FieldPlan& field, std::string_view text);
  bool AddMade(const FieldPlan& field, std::string_view text);
  bool AddWeight(const FieldPlan& field, std::string_view text);
  bool AddTime(const FieldPlan& field, std::string_view text);
  bool Make(const FieldPlan& field, std::string_view text, int64_t* value);
  bool RowTime(const FieldPlan& field, int64_t* time);
  bool Encode(const FieldPlan& field, std::string_view text, std::vector<uint64_t>* ids);
  // Returns where a value stands: in the chunk's text, in a column outside of it or, made here,
  // behind the text.
  uint64_t PlaceOf(std::string_view text);
  bool EncodeInteger(const FieldPlan& field, int64_t value, std::string_view text, uint64_t* id);
  // The columns of tables have no number.
  bool FailField(const FieldPlan& field, std::string_view found, const std::string& expected) {
    const int64_t column = chunk_->table.rows > 0 ? 0 : std::max<int64_t>(field.column + 1, 0);
    return Fail(column, field.name, found, expected);
  }
  bool FailNumber(const FieldPlan& field, std::string_view found);
  bool FailTime(const FieldPlan& field, std::string_view found);
  // Keeps the row at hand, or takes it back.
  void EndRow();
  // Of the record at hand.
  int64_t FirstLine() const { return in_negative_ ? last_record_line_ : chunk_->lines; }
  size_t BagBegin() const { return chunk_->bag_ends.empty() ? 0 : chunk_->bag_ends.back(); }

  ParsedChunk* const chunk_;
  const bool optional_labels_;
  size_t labels_ = 0;
  size_t numeric_ = 0;  // fields of a row
  size_t single_ = 0;
  size_t multi_ = 0;
  std::vector<int64_t> row_cuts_;   // of the row at hand, by bag
  std::vector<std::string> items_;  // of a list in brackets
  std::string_view column_;         // that Add adds
  size_t row_events_ = 0;           // of the row at hand
  bool failed_ = false;
  bool in_negative_ = false;
  std::string_view negative_item_;
  int64_t last_record_line_ = 0;
  size_t bags_before_ = 0;  // the row at hand
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_ROW_BUILDER_H_
