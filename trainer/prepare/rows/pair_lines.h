#ifndef ELASTOR_TRAINER_PREPARE_ROWS_PAIR_LINES_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_PAIR_LINES_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "trainer/prepare/rows/row_builder.h"

namespace elastor {

// How the words of a line find their fields.
enum class PairForm {
  kPlaces,   // LIBSVM: the n-th pair is the n-th field's
  kIndices,  // LIBSVM of numbers alone: a pair's index tells the field; a number left out is 0
  kFields,   // LIBFFM: the first part of field:index:value tells the field
};

PairForm PairFormOf(const Schema& schema);

// Whether a line of pairs is a comment, and so no row.
bool IsPairComment(std::string_view line);

// Whether a field reads pairs. A LABEL reads the row's first word, and a GROUP reads qid:.
bool ReadsPairs(const Field& field);

// Turns lines of layouts LIBSVM and LIBFFM into rows. For one thread.
class PairLines {
 public:
  // `fields`: those of `schema`, which must outlive this.
  PairLines(const Schema& schema, const std::vector<FieldPlan>& fields, bool optional_labels);

  // Adds a line to the row that *row is at, or notes what is wrong with it. Returns false, and adds
  // nothing, if the line is a comment. REQUIRES: `line` lies in the chunk's text.
  bool Parse(std::string_view line, RowBuilder* row);

 private:
  struct Value {
    const FieldPlan* field;
    std::string_view number, index;     // of the row at hand; not begun: it has none
    std::vector<std::string_view> bag;  // of a MULTI_HOT field
  };
  void SplitWords(std::string_view line);
  bool ParseWords(std::string_view line, RowBuilder* row);
  bool TakeQuery(size_t word, bool* taken, RowBuilder* row);
  bool ParseByPlace(const std::vector<size_t>& pairs, RowBuilder* row) const;
  bool ParsePlace(size_t word, size_t place, RowBuilder* row) const;
  bool ParseByName(const std::vector<size_t>& pairs, RowBuilder* row);
  bool TakeNamed(size_t word, RowBuilder* row);
  bool TakeBagPair(size_t word, std::string_view pair, std::string_view index, double number,
                   Value* value, RowBuilder* row) const;
  bool AddValues(RowBuilder* row) const;
  bool FailWord(size_t word, const FieldPlan* field, std::string_view found,
                const std::string& expected, RowBuilder* row) const;
  bool open() const { return values_.back().field->type == Field::MULTI_HOT; }

  const PairForm form_;
  const int64_t base_;  // the number of the first field
  const bool optional_labels_;
  const bool split_by_hash_;
  const bool hash_query_;
  const FieldPlan* label_ = nullptr;
  const FieldPlan* group_ = nullptr;
  std::vector<Value> values_;            // by field that reads pairs
  std::vector<std::string_view> words_;  // of the line at hand, without a comment
  std::string_view query_;
  std::vector<size_t> pairs_;  // words that are neither label nor qid:
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_PAIR_LINES_H_
