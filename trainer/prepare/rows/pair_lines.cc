#include "trainer/prepare/rows/pair_lines.h"

#include <xxhash.h>

#include <algorithm>
#include <string>

#include "core/base/text.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

constexpr std::string_view kSpaces = " \t\r";
constexpr std::string_view kQuery = "qid:";

}  // namespace

bool IsPairComment(std::string_view line) {
  const size_t first = line.find_first_not_of(kSpaces);
  return first != line.npos && line[first] == '#';
}

bool ReadsPairs(const Field& field) {
  return field.type() != Field::LABEL && field.type() != Field::GROUP;
}

PairForm PairFormOf(const Schema& schema) {
  if (schema.layout() == Schema::LIBFFM) return PairForm::kFields;
  bool numbers = false, others = false;
  for (const Field& field : schema.fields()) {
    numbers |= field.type() == Field::NUMERIC;
    others |= field.type() == Field::CATEGORICAL || field.type() == Field::IGNORED;
  }
  return numbers && !others ? PairForm::kIndices : PairForm::kPlaces;
}

PairLines::PairLines(const Schema& schema, const std::vector<FieldPlan>& fields,
                     bool optional_labels)
    : form_(PairFormOf(schema)),
      base_(schema.zero_based() ? 0 : 1),
      optional_labels_(optional_labels),
      split_by_hash_(schema.split().by() == SplitPlan::HASH),
      hash_query_(!schema.split().hash_field().empty()) {
  for (const FieldPlan& field : fields) {
    if (field.type == Field::LABEL) {
      label_ = &field;
    } else if (field.type == Field::GROUP) {
      group_ = &field;
    } else {
      values_.push_back({&field, {}, {}, {}});
    }
  }
}

void PairLines::SplitWords(std::string_view line) {
  words_.clear();
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(kSpaces), line.size()));
    if (line.empty() || line[0] == '#') return;
    words_.push_back(line.substr(0, line.find_first_of(kSpaces)));
    line.remove_prefix(words_.back().size());
  }
}

bool PairLines::FailWord(size_t word, const FieldPlan* field, std::string_view found,
                         const std::string& expected, RowBuilder* row) const {
  return row->Fail(static_cast<int64_t>(word) + 1, field == nullptr ? "" : field->name, found,
                   expected);
}

bool PairLines::Parse(std::string_view line, RowBuilder* row) {
  if (IsPairComment(line)) return false;
  SplitWords(line);
  query_ = line.substr(0, 0);
  if (ParseWords(line, row) && split_by_hash_) {
    const std::string_view hashed = hash_query_ ? query_ : line;
    row->AddSplitHash(XXH3_64bits(hashed.data(), hashed.size()));
  }
  return true;
}

bool PairLines::ParseWords(std::string_view line, RowBuilder* row) {
  // A pair in the label's place: the row has none.
  const std::string_view first = line.substr(0, line.find_first_of(kSpaces));
  if (words_.empty()) return row->Fail("found a blank line, expected a label and pairs");
  const bool unlabelled = optional_labels_ && first.find(':') != std::string_view::npos;
  const std::string_view label = unlabelled ? line.substr(0, 0) : words_[0];
  if (!(label_ == nullptr ? row->AddLibsvmLabel(label) : row->Add(*label_, label))) return false;
  // The first pair is the second word, also of a row without a label.
  if (unlabelled) words_.insert(words_.begin(), label);
  pairs_.clear();
  for (size_t word = 1; word < words_.size(); ++word) {
    bool taken = false;
    if (!TakeQuery(word, &taken, row)) return false;
    if (!taken) pairs_.push_back(word);
  }
  if (group_ != nullptr && !row->Add(*group_, query_)) return false;
  return form_ == PairForm::kPlaces ? ParseByPlace(pairs_, row) : ParseByName(pairs_, row);
}

// *taken: the word is qid:, and a GROUP reads it.
bool PairLines::TakeQuery(size_t word, bool* taken, RowBuilder* row) {
  if (group_ == nullptr || !words_[word].starts_with(kQuery)) return true;
  *taken = true;
  if (!query_.empty()) return FailWord(word, group_, words_[word], "one qid in a row", row);
  query_ = words_[word].substr(kQuery.size());
  return !query_.empty() || FailWord(word, group_, words_[word], "a text behind qid:", row);
}

bool PairLines::ParseByPlace(const std::vector<size_t>& pairs, RowBuilder* row) const {
  const size_t named = values_.size();
  for (size_t i = 0; i < pairs.size(); ++i) {
    // The last MULTI_HOT takes all remaining pairs.
    if (!ParsePlace(pairs[i], open() ? std::min(i, named - 1) : i, row)) return false;
  }
  if (pairs.size() + open() < named) {
    return row->Fail(StrCat("found ", pairs.size(), " pairs, expected ", named - open(),
                            open() ? " or more" : ""));
  }
  if (open()) row->EndBag(*values_.back().field);
  return true;
}

bool PairLines::ParsePlace(size_t word, size_t place, RowBuilder* row) const {
  const std::string_view pair = words_[word];
  if (place >= values_.size()) {
    return FailWord(word, nullptr, pair, StrCat("only ", values_.size(), " pairs"), row);
  }
  const FieldPlan& field = *values_[place].field;
  const size_t colon = pair.find(':');
  const std::string_view index = pair.substr(0, colon);
  double number;
  if (colon == std::string_view::npos || index.empty() ||
      !ParseNumber(pair.substr(colon + 1), &number)) {
    const bool libffm = std::ranges::count(pair, ':') == 2;
    return FailWord(word, &field, pair,
                    StrCat("index:number", libffm ? "; field:index:number is layout LIBFFM" : ""),
                    row);
  }
  if (field.type == Field::IGNORED) return true;
  if (pair.starts_with(kQuery)) {
    return FailWord(word, &field, pair, "index:number; a field of type GROUP reads qid", row);
  }
  if (field.type == Field::NUMERIC) {
    int64_t found;
    const int64_t expected = base_ + static_cast<int64_t>(place);
    if (!ParseInteger(index, &found) || found != expected) {
      return FailWord(
          word, &field, index,
          StrCat("index ", expected, ", the field's place beside fields that are no numbers"), row);
    }
    return row->AddNumber(field, pair.substr(colon + 1));
  }
  if (number == 0 && field.any_value) return true;
  if (number != 1 && !field.any_value) {
    return FailWord(word, &field, pair, "value 1 of a categorical field", row);
  }
  return field.type == Field::MULTI_HOT ? row->AddToBag(field, index) : row->AddText(field, index);
}

// Pairs and triples whose first part names the field.
bool PairLines::ParseByName(const std::vector<size_t>& pairs, RowBuilder* row) {
  for (Value& value : values_) {
    value.number = value.index = {};
    value.bag.clear();
  }
  for (const size_t word : pairs) {
    if (!TakeNamed(word, row)) return false;
  }
  return AddValues(row);
}

bool PairLines::TakeNamed(size_t word, RowBuilder* row) {
  const std::string_view pair = words_[word];
  const bool triple = form_ == PairForm::kFields;
  const std::string form = triple ? "field:index:number" : "index:number";
  const size_t colon = std::min(pair.find(':'), pair.size());
  const size_t last = triple ? std::min(pair.find(':', colon + 1), pair.size()) : colon;
  double number = 0;
  if (colon == 0 || last >= pair.size() || (triple && last == colon + 1) ||
      (!pair.starts_with(kQuery) && !ParseNumber(pair.substr(last + 1), &number))) {
    const bool other = std::ranges::count(pair, ':') == (triple ? 1 : 2);
    return FailWord(word, nullptr, pair,
                    form + (!other   ? ""
                            : triple ? "; pairs index:number are layout LIBSVM"
                                     : "; field:index:number is layout LIBFFM"),
                    row);
  }
  if (pair.starts_with(kQuery)) {
    return FailWord(word, nullptr, pair, form + "; a field of type GROUP reads qid", row);
  }
  const std::string_view name = pair.substr(0, colon);
  const bool bag_of_others = !triple && open();
  const auto named = static_cast<int64_t>(values_.size()) - bag_of_others;
  int64_t place = -1;
  const bool integer = ParseInteger(name, &place);
  place -= base_;
  if (!integer || place < 0 || place >= named) {
    if (bag_of_others) return TakeBagPair(word, pair, name, number, &values_.back(), row);
    const bool from_zero = integer && place == -1 && base_ == 1;
    return FailWord(
        word, nullptr, pair,
        StrCat(triple ? "a field" : "an index", " from ", base_, " to ", named - 1 + base_,
               from_zero ? "; if they begin with 0, the schema needs zero_based: true"
                         : ", as the schema has fields"),
        row);
  }
  Value& value = values_[place];
  const FieldPlan& field = *value.field;
  const std::string_view index = pair.substr(colon + 1, last - colon - 1);
  if (field.type == Field::IGNORED) return true;
  if (field.type == Field::MULTI_HOT) return TakeBagPair(word, pair, index, number, &value, row);
  if (field.type == Field::CATEGORICAL && number == 0 && field.any_value) return true;
  if (!value.number.empty()) {
    return FailWord(word, &field, pair,
                    triple ? "each field once, or type MULTI_HOT" : "each index once", row);
  }
  if (field.type == Field::CATEGORICAL && number != 1 && !field.any_value) {
    return FailWord(word, &field, pair, "value 1 of a categorical field, or any_value: true", row);
  }
  value.number = pair.substr(last + 1);
  value.index = index;
  return true;
}

bool PairLines::TakeBagPair(size_t word, std::string_view pair, std::string_view index,
                            double number, Value* value, RowBuilder* row) const {
  if (number == 0 && value->field->any_value) return true;
  if (number != 1 && !value->field->any_value) {
    return FailWord(word, value->field, pair, "value 1 of a bag, or any_value: true", row);
  }
  value->bag.push_back(index);
  return true;
}

// Adds the values that the pairs gave, in the order of the fields.
bool PairLines::AddValues(RowBuilder* row) const {
  for (const Value& value : values_) {
    const FieldPlan& field = *value.field;
    if (field.type == Field::NUMERIC) {
      if (!row->AddNumber(field, value.number.empty() ? "0" : value.number)) return false;
    } else if (field.type == Field::CATEGORICAL) {
      if (!row->AddText(field, value.number.empty() ? query_.substr(0, 0) : value.index)) {
        return false;
      }
    } else if (field.type == Field::MULTI_HOT) {
      for (const std::string_view index : value.bag) {
        if (!row->AddToBag(field, index)) return false;
      }
      row->EndBag(field);
    }
  }
  return true;
}

}  // namespace elastor
