#include "trainer/data/arrow/batch_rows.h"

#include <arrow/util/bit_util.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "core/base/floating_point.h"
#include "trainer/data/arrow/array_text.h"
#include "trainer/data/arrow/arrow_errors.h"
#include "trainer/data/arrow/number_forms.h"
#include "trainer/data/sized_text.h"

namespace elastor {
namespace {

// Calls append(i, is_there) for the rows from `begin` to `end`.
template <typename Append>
void ForEachValue(const arrow::Array& array, int64_t begin, int64_t end, const Append& append) {
  const uint8_t* const there = array.null_bitmap_data();
  if (there == nullptr) {
    for (int64_t i = begin; i < end; ++i) append(i, true);
    return;
  }
  const int64_t offset = array.offset();
  for (int64_t i = begin; i < end; ++i) {
    append(i, arrow::bit_util::GetBit(there, offset + i));
  }
}

// Appends the numbers that the texts of values mean; NaN: missing. Returns false if one needs its
// text.
template <typename Array>
bool AppendNumbers(const arrow::Array& array, int64_t begin, int64_t end,
                   std::vector<double>* numbers) {
  const auto* const values = static_cast<const Array&>(array).raw_values();
  const size_t before = numbers->size();
  numbers->resize(before + end - begin);
  double* number = numbers->data() + before;
  bool within_range = true;
  ForEachValue(array, begin, end, [&](int64_t i, bool there) {
    *number++ = NumberOf(values[i], there, &within_range);
  });
  return within_range;
}

// The same for the integers themselves.
template <typename Array>
bool AppendIntegers(const arrow::Array& array, int64_t begin, int64_t end,
                    std::vector<int64_t>* integers) {
  const auto* const values = static_cast<const Array&>(array).raw_values();
  const size_t before = integers->size();
  integers->resize(before + end - begin);
  int64_t* integer = integers->data() + before;
  bool within_range = true;
  ForEachValue(array, begin, end, [&](int64_t i, bool there) {
    *integer++ = IntegerOf(values[i], there, &within_range);
  });
  return within_range;
}

// Calls append.template operator()<Array>() for an array of integers. Returns false for others.
template <typename Append>
bool IfIntegers(const arrow::Array& array, const Append& append) {
  switch (array.type_id()) {
    case arrow::Type::INT8:
      return append.template operator()<arrow::Int8Array>();
    case arrow::Type::INT16:
      return append.template operator()<arrow::Int16Array>();
    case arrow::Type::INT32:
      return append.template operator()<arrow::Int32Array>();
    case arrow::Type::INT64:
      return append.template operator()<arrow::Int64Array>();
    case arrow::Type::UINT8:
      return append.template operator()<arrow::UInt8Array>();
    case arrow::Type::UINT16:
      return append.template operator()<arrow::UInt16Array>();
    case arrow::Type::UINT32:
      return append.template operator()<arrow::UInt32Array>();
    case arrow::Type::UINT64:
      return append.template operator()<arrow::UInt64Array>();
    default:
      return false;
  }
}

// The shortest text of a float means another double than the float is, so that it has to be read.
bool AppendNumbersOf(const arrow::Array& array, int64_t begin, int64_t end,
                     std::vector<double>* numbers) {
  if (array.type_id() == arrow::Type::DOUBLE) {
    return AppendNumbers<arrow::DoubleArray>(array, begin, end, numbers);
  }
  return IfIntegers(
      array, [&]<typename Array>() { return AppendNumbers<Array>(array, begin, end, numbers); });
}

bool AppendIntegersOf(const arrow::Array& array, int64_t begin, int64_t end,
                      std::vector<int64_t>* integers) {
  return IfIntegers(
      array, [&]<typename Array>() { return AppendIntegers<Array>(array, begin, end, integers); });
}

// Whether two dictionaries have the same values. On false they may still have. Empty ones may lack
// offsets.
bool SameValues(const arrow::Array& a, const arrow::Array& b) {
  const bool texts = a.type_id() == arrow::Type::STRING || a.type_id() == arrow::Type::BINARY;
  if (!texts || !a.type()->Equals(*b.type()) || a.length() != b.length() || a.length() == 0 ||
      a.null_count() + b.null_count() + a.offset() + b.offset() > 0) {
    return a.length() == b.length() && a.Equals(b);
  }
  const auto& left = static_cast<const arrow::BinaryArray&>(a);
  const auto& right = static_cast<const arrow::BinaryArray&>(b);
  const int32_t* const begins = left.raw_value_offsets();
  const int32_t first = begins[0], bytes = begins[a.length()] - first;
  return first == right.raw_value_offsets()[0] &&
         std::equal(begins, begins + a.length() + 1, right.raw_value_offsets()) &&
         std::memcmp(left.raw_data() + first, right.raw_data() + first, bytes) == 0;
}

// Callers' threads may take denormals for 0, which is another text.
class Denormals {
 public:
  Denormals() { FloatingPoint::Set(FloatingPoint::kDefault); }
  ~Denormals() { FloatingPoint::Set(before_); }
  Denormals(const Denormals&) = delete;
  Denormals& operator=(const Denormals&) = delete;

 private:
  const uint32_t before_ = FloatingPoint::Get();
};

}  // namespace

void ColumnReader::Begin(Part part, ColumnForm form, std::string* text, TextColumn* column) {
  part_ = part;
  form_ = form;
  text_ = text;
  column_ = column;
  column_->begins.assign(1, Place());
  column_->dictionary = nullptr;
  column_->codes.clear();
  column_->numbers.clear();
  column_->integers.clear();
}

void ColumnReader::Append(const std::vector<Piece>& pieces, int place) {
  if (form_ != ColumnForm::kText) {
    if (AppendInForm(pieces, place)) return column_->begins.clear();
    column_->numbers.clear();
    column_->integers.clear();
  }
  for (const Piece& piece : pieces) {
    const std::shared_ptr<arrow::Array> array = piece.batch->column(place);
    if (array->type_id() == arrow::Type::EXTENSION) {
      const auto storage = static_cast<const arrow::ExtensionArray&>(*array).storage();
      AppendText(*storage, piece.begin, piece.end);
    } else {
      AppendText(*array, piece.begin, piece.end);
    }
  }
  if (column_->dictionary != nullptr) column_->begins.clear();
}

bool ColumnReader::AppendInForm(const std::vector<Piece>& pieces, int place) {
  return std::ranges::all_of(pieces, [&](const Piece& piece) {
    const arrow::Array& array = *piece.batch->column(place);
    return form_ == ColumnForm::kNumbers
               ? AppendNumbersOf(array, piece.begin, piece.end, &column_->numbers)
               : AppendIntegersOf(array, piece.begin, piece.end, &column_->integers);
  });
}

uint32_t ColumnReader::Place() const { return CheckedPlace(text_->size()); }

void ColumnReader::AppendText(const arrow::Array& array, int64_t begin, int64_t end) {
  switch (array.type_id()) {
    case arrow::Type::LIST: {
      const auto& lists = static_cast<const arrow::ListArray&>(array);
      return AppendLists(lists, *lists.values(), begin, end);
    }
    case arrow::Type::MAP: {
      const auto& map = static_cast<const arrow::MapArray&>(array);
      return AppendLists(map, *(part_ == Part::kKeys ? map.keys() : map.items()), begin, end);
    }
    case arrow::Type::LARGE_LIST: {
      const auto& lists = static_cast<const arrow::LargeListArray&>(array);
      return AppendLists(lists, *lists.values(), begin, end);
    }
    case arrow::Type::FIXED_SIZE_LIST: {
      const auto& lists = static_cast<const arrow::FixedSizeListArray&>(array);
      return AppendLists(lists, *lists.values(), begin, end);
    }
    case arrow::Type::DICTIONARY:
      return AppendCodes(static_cast<const arrow::DictionaryArray&>(array), begin, end);
    case arrow::Type::INT32:
      return AppendDigits(static_cast<const arrow::Int32Array&>(array), begin, end);
    case arrow::Type::INT64:
      return AppendDigits(static_cast<const arrow::Int64Array&>(array), begin, end);
    default:
      AppendValues(array, begin, end);
  }
}

void ColumnReader::AppendValues(const arrow::Array& array, int64_t begin, int64_t end) {
  const AppendValue append = WriterOf(*array.type());
  for (int64_t i = begin; i < end; ++i) {
    if (!array.IsNull(i)) append(array, i, text_);
    EndValue();
  }
}

// Integers are many: these take no call a value.
template <typename Integers>
void ColumnReader::AppendDigits(const Integers& array, int64_t begin, int64_t end) {
  constexpr size_t kMostDigits = 20;
  const auto* const values = array.raw_values();
  size_t size = text_->size();
  text_->resize(size + kMostDigits * (end - begin));
  char* const text = text_->data();
  ForEachValue(array, begin, end, [&](int64_t i, bool there) {
    if (there) size = std::to_chars(text + size, text + size + kMostDigits, values[i]).ptr - text;
    column_->begins.push_back(static_cast<uint32_t>(size));
  });
  text_->resize(size);
  Place();
}

template <typename Lists>
void ColumnReader::AppendLists(const Lists& lists, const arrow::Array& values, int64_t begin,
                               int64_t end) {
  const AppendValue append = WriterOf(*values.type());
  for (int64_t i = begin; i < end; ++i) {
    const int64_t first = lists.value_offset(i);
    const int64_t behind = lists.IsNull(i) ? first : first + lists.value_length(i);
    for (int64_t item = first; item < behind; ++item) {
      item_.clear();
      if (!values.IsNull(item)) append(values, item, &item_);
      PutText(item_, text_);
    }
    EndValue();
  }
}

// Batches of a row group have equal dictionaries, so that mostly the last one serves again. Where
// it does not within the rows at hand, the new values follow the old ones.
void ColumnReader::TakeDictionary(const std::shared_ptr<arrow::Array>& values) {
  if (values_ != nullptr && (values_ == values || SameValues(*values_, *values))) {
    return;
  }
  auto dictionary = std::make_shared<TextDictionary>();
  if (column_->codes.empty()) {
    dictionary->begins = {0, 0};
  } else {
    *dictionary = *dictionary_;
  }
  first_value_ = static_cast<uint32_t>(dictionary->size());
  const AppendValue append = WriterOf(*values->type());
  for (int64_t i = 0; i < values->length(); ++i) {
    if (!values->IsNull(i)) append(*values, i, &dictionary->text);
    dictionary->begins.push_back(CheckedPlace(dictionary->text.size()));
  }
  dictionary_ = std::move(dictionary);
  values_ = values;
}

void ColumnReader::AppendCodes(const arrow::DictionaryArray& array, int64_t begin, int64_t end) {
  TakeDictionary(array.dictionary());
  column_->dictionary = dictionary_;
  const arrow::Array& codes = *array.indices();
  IfIntegers(codes, [&]<typename Codes>() {
    AppendCodesOf<Codes>(codes, begin, end);
    return true;
  });
}

template <typename Codes>
void ColumnReader::AppendCodesOf(const arrow::Array& array, int64_t begin, int64_t end) {
  const auto* const codes = static_cast<const Codes&>(array).raw_values();
  const auto behind = static_cast<uint64_t>(values_->length());
  const size_t before = column_->codes.size();
  column_->codes.resize(before + end - begin);
  uint32_t* value = column_->codes.data() + before;
  bool within = true;
  ForEachValue(array, begin, end, [&](int64_t i, bool there) {
    const auto code = static_cast<uint64_t>(codes[i]);
    within &= !there || code < behind;
    *value++ = there ? first_value_ + static_cast<uint32_t>(code) : 0;
  });
  if (!within) throw std::runtime_error("a code of no value");
}

FileColumns::FileColumns(const arrow::Schema& schema) {
  for (int i = 0; i < schema.num_fields(); ++i) AddField(*schema.field(i), i);
}

void FileColumns::AddField(const arrow::Field& field, int place) {
  const arrow::DataType& type = StorageOf(*field.type());
  if (type.id() != arrow::Type::MAP) {
    const arrow::DataType* const item = ItemTypeOf(type);
    return Add(field, place, "", item == nullptr ? type : *item, Part::kWhole, item != nullptr);
  }
  const auto& map = static_cast<const arrow::MapType&>(type);
  Add(field, place, ".key", *map.key_type(), Part::kKeys, /*is_list=*/true);
  Add(field, place, ".value", *map.item_type(), Part::kValues, /*is_list=*/true);
}

void FileColumns::Add(const arrow::Field& field, int place, const char* suffix,
                      const arrow::DataType& type, Part part, bool is_list) {
  const bool readable = WriterOf(type) != nullptr;
  columns.push_back({field.name() + suffix, field.type()->ToString(), is_list, readable});
  fields.push_back(place);
  parts.push_back(part);
}

std::string BatchRows::Next(int64_t rows, std::string* text, TextTable* table) {
  return WrongOf([&] {
    const Denormals denormals;
    std::vector<Piece> pieces;
    if (has_batches_) TakePieces(rows, &pieces);
    text->clear();
    table->rows = rows;
    table->columns.resize(places_.size());
    readers_.resize(places_.size());
    for (size_t i = 0; i < places_.size(); ++i) {
      table->columns[i].is_list = lists_[i];
      const ColumnForm form = forms_.empty() ? ColumnForm::kText : forms_[i];
      readers_[i].Begin(parts_[i], form, text, &table->columns[i]);
      if (places_[i] == kInPages) {
        pages_[i]->Append(rows, text, &table->columns[i]);
      } else {
        readers_[i].Append(pieces, places_[i]);
      }
    }
  });
}

std::string BatchRows::Skip(int64_t rows) {
  return WrongOf([&] {
    std::vector<Piece> pieces;
    if (has_batches_) TakePieces(rows, &pieces);
    for (const auto& column : pages_) {
      if (column != nullptr) column->Skip(rows);
    }
  });
}

void BatchRows::Choose(const FileColumns& file, const std::vector<int>& wanted,
                       const std::vector<ColumnForm>& forms, std::vector<int>* read) {
  forms_ = forms;
  pages_.resize(wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    parts_.push_back(file.parts[wanted[i]]);
    lists_.push_back(file.columns[wanted[i]].is_list);
    if (pages_[i] == nullptr) read->push_back(file.fields[wanted[i]]);
  }
  std::sort(read->begin(), read->end());
  read->erase(std::unique(read->begin(), read->end()), read->end());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto place = std::lower_bound(read->begin(), read->end(), file.fields[wanted[i]]);
    places_.push_back(pages_[i] != nullptr ? kInPages : static_cast<int>(place - read->begin()));
  }
  // Without columns they tell the rows.
  has_batches_ = wanted.empty() || !read->empty();
}

void BatchRows::TakePieces(int64_t rows, std::vector<Piece>* pieces) {
  while (rows > 0) {
    if (batch_ == nullptr || at_ == batch_->num_rows()) {
      batch_ = NextBatch();
      at_ = 0;
      if (batch_ == nullptr) throw std::runtime_error("fewer rows than its footer says");
      continue;
    }
    const int64_t taken = std::min(rows, batch_->num_rows() - at_);
    pieces->push_back({batch_, at_, at_ + taken});
    at_ += taken;
    rows -= taken;
  }
}

}  // namespace elastor
