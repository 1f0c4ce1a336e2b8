#include "trainer/data/arrow/arrow_part.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <arrow/util/bit_util.h>
#include <arrow/util/byte_size.h>
#include <arrow/util/float16.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/size_statistics.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/floating_point.h"
#include "trainer/data/arrow/arrow_part_hash.h"
#include "trainer/data/sized_text.h"

// Arrow reports what is wrong by statuses and by exceptions. Here both are exceptions, which no
// function of the part's interface lets out.

namespace elastor {
namespace {

constexpr size_t kMostTextBytes = size_t{1} << 31;
constexpr double kMostBytes = 1e18;  // that a group is said to take

void Check(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

template <typename T>
T Take(arrow::Result<T> result) {
  Check(result.status());
  return std::move(result).ValueUnsafe();
}

// Arrow's own pool gives memory back after every batch, and gets it anew as zeros.
arrow::MemoryPool* Memory() { return arrow::system_memory_pool(); }

std::shared_ptr<arrow::io::ReadableFile> OpenFile(const std::string& path) {
  return Take(arrow::io::ReadableFile::Open(path, Memory()));
}

// Calls `read`. Returns what is wrong in one line.
template <typename Read>
std::string WrongOf(const Read& read) {
  std::string wrong;
  try {
    read();
    return wrong;
  } catch (const std::exception& error) {
    wrong = error.what();
  }
  if (wrong.empty()) wrong = "unreadable";
  wrong.resize(std::min(wrong.find('\n'), wrong.size()));
  return wrong;
}

// --- The text of a value (docs/use/data.md has the table). ---

using AppendValue = void (*)(const arrow::Array& array, int64_t i, std::string* text);

template <typename Number>
void AppendNumber(Number value, std::string* text) {
  char digits[32];
  text->append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

// The shortest text that gives the number again. As in Python, the smallest and largest numbers
// have an exponent; unlike there, whole numbers have no ".0".
template <typename Number>
void AppendReal(Number value, std::string* text) {
  constexpr Number kLeastFixed = 1e-4, kBehindFixed = 1e16;
  if (std::isnan(value)) return;
  const Number size = std::abs(value);
  if (size == 0) return AppendNumber(0, text);
  const bool fixed = size >= kLeastFixed && size < kBehindFixed;
  char digits[32];
  const auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  text->append(digits, std::to_chars(digits, digits + sizeof digits, value, format).ptr);
}

void AppendPadded(int64_t value, int digits, std::string* text) {
  char number[20];
  const char* const end = std::to_chars(number, number + sizeof number, value).ptr;
  text->append(std::max<int64_t>(digits - (end - number), 0), '0');
  text->append(number, end - number);
}

// Of a date that no calendar here has, the number of its days.
void AppendDate(int64_t days, std::string* text) {
  constexpr int64_t kYear0 = -719528, kYear10000 = 2932897;
  if (days < kYear0 || days >= kYear10000) return AppendNumber(days, text);
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
  AppendPadded(static_cast<int>(date.year()), 4, text);
  *text += '-';
  AppendPadded(static_cast<unsigned>(date.month()), 2, text);
  *text += '-';
  AppendPadded(static_cast<unsigned>(date.day()), 2, text);
}

int64_t PerSecond(arrow::TimeUnit::type unit) {
  int64_t per_second = 1;
  for (int i = unit; i > arrow::TimeUnit::SECOND; --i) per_second *= 1000;
  return per_second;
}

// HH:MM:SS, then the fraction without zeros at its end.
void AppendTimeOfDay(int64_t units, int64_t per_second, std::string* text) {
  const int64_t seconds = units / per_second;
  AppendPadded(seconds / 3600, 2, text);
  *text += ':';
  AppendPadded(seconds / 60 % 60, 2, text);
  *text += ':';
  AppendPadded(seconds % 60, 2, text);
  int64_t fraction = units % per_second;
  if (fraction == 0) return;
  int digits = 0;
  for (int64_t left = per_second; left > 1; left /= 10) ++digits;
  for (; fraction % 10 == 0; fraction /= 10) --digits;
  *text += '.';
  AppendPadded(fraction, digits, text);
}

template <typename Array>
void AppendInteger(const arrow::Array& array, int64_t i, std::string* text) {
  AppendNumber(static_cast<const Array&>(array).Value(i), text);
}

template <typename Array>
void AppendFloating(const arrow::Array& array, int64_t i, std::string* text) {
  AppendReal(static_cast<const Array&>(array).Value(i), text);
}

void AppendHalf(const arrow::Array& array, int64_t i, std::string* text) {
  const uint16_t bits = static_cast<const arrow::HalfFloatArray&>(array).Value(i);
  AppendReal(arrow::util::Float16::FromBits(bits).ToFloat(), text);
}

void AppendBoolean(const arrow::Array& array, int64_t i, std::string* text) {
  *text += static_cast<const arrow::BooleanArray&>(array).Value(i) ? '1' : '0';
}

template <typename Array>
void AppendBytes(const arrow::Array& array, int64_t i, std::string* text) {
  *text += static_cast<const Array&>(array).GetView(i);
}

// With all digits of the scale, never with an exponent.
template <typename Array, typename Decimal>
void AppendDecimal(const arrow::Array& array, int64_t i, std::string* text) {
  const int scale = static_cast<const arrow::DecimalType&>(*array.type()).scale();
  std::string digits = Decimal(static_cast<const Array&>(array).GetValue(i)).ToIntegerString();
  const size_t first = digits.front() == '-';
  if (scale < 0 && digits != "0") digits.append(-scale, '0');
  if (scale > 0) {
    const size_t behind = scale, least = first + behind + 1;
    if (digits.size() < least) digits.insert(first, least - digits.size(), '0');
    digits.insert(digits.size() - behind, 1, '.');
  }
  *text += digits;
}

void AppendDate32(const arrow::Array& array, int64_t i, std::string* text) {
  AppendDate(static_cast<const arrow::Date32Array&>(array).Value(i), text);
}

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0); }

void AppendDate64(const arrow::Array& array, int64_t i, std::string* text) {
  constexpr int64_t kDay = 86'400'000;
  AppendDate(FloorDivide(static_cast<const arrow::Date64Array&>(array).Value(i), kDay), text);
}

void AppendTimestamp(const arrow::Array& array, int64_t i, std::string* text) {
  const auto& type = static_cast<const arrow::TimestampType&>(*array.type());
  const int64_t per_second = PerSecond(type.unit()), per_day = 86400 * per_second;
  const int64_t value = static_cast<const arrow::TimestampArray&>(array).Value(i);
  const int64_t day = FloorDivide(value, per_day);
  AppendDate(day, text);
  *text += ' ';
  AppendTimeOfDay(value - day * per_day, per_second, text);
  if (!type.timezone().empty()) *text += 'Z';
}

template <typename Array>
void AppendTime(const arrow::Array& array, int64_t i, std::string* text) {
  const auto unit = static_cast<const arrow::TimeType&>(*array.type()).unit();
  const int64_t value = static_cast<const Array&>(array).Value(i);
  const int64_t per_second = PerSecond(unit);
  if (value < 0 || value / per_second >= 86400) return AppendNumber(value, text);
  AppendTimeOfDay(value, per_second, text);
}

AppendValue WriterOf(const arrow::DataType& type);

void AppendOfDictionary(const arrow::Array& array, int64_t i, std::string* text) {
  const auto& dictionary = static_cast<const arrow::DictionaryArray&>(array);
  const int64_t code = dictionary.GetValueIndex(i);
  const arrow::Array& values = *dictionary.dictionary();
  if (code < 0 || code >= values.length()) throw std::runtime_error("a code of no value");
  if (!values.IsNull(code)) WriterOf (*values.type())(values, code, text);
}

// Returns what appends a value that is not null; null: the type has no text.
AppendValue WriterOf(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::NA:
      return [](const arrow::Array&, int64_t, std::string*) {};
    case arrow::Type::BOOL:
      return AppendBoolean;
    case arrow::Type::INT8:
      return AppendInteger<arrow::Int8Array>;
    case arrow::Type::INT16:
      return AppendInteger<arrow::Int16Array>;
    case arrow::Type::INT32:
      return AppendInteger<arrow::Int32Array>;
    case arrow::Type::INT64:
      return AppendInteger<arrow::Int64Array>;
    case arrow::Type::UINT8:
      return AppendInteger<arrow::UInt8Array>;
    case arrow::Type::UINT16:
      return AppendInteger<arrow::UInt16Array>;
    case arrow::Type::UINT32:
      return AppendInteger<arrow::UInt32Array>;
    case arrow::Type::UINT64:
      return AppendInteger<arrow::UInt64Array>;
    case arrow::Type::DURATION:
      return AppendInteger<arrow::DurationArray>;
    case arrow::Type::HALF_FLOAT:
      return AppendHalf;
    case arrow::Type::FLOAT:
      return AppendFloating<arrow::FloatArray>;
    case arrow::Type::DOUBLE:
      return AppendFloating<arrow::DoubleArray>;
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return AppendBytes<arrow::BinaryArray>;
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return AppendBytes<arrow::LargeBinaryArray>;
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
      return AppendBytes<arrow::BinaryViewArray>;
    case arrow::Type::FIXED_SIZE_BINARY:
      return AppendBytes<arrow::FixedSizeBinaryArray>;
    case arrow::Type::DECIMAL32:
      return AppendDecimal<arrow::Decimal32Array, arrow::Decimal32>;
    case arrow::Type::DECIMAL64:
      return AppendDecimal<arrow::Decimal64Array, arrow::Decimal64>;
    case arrow::Type::DECIMAL128:
      return AppendDecimal<arrow::Decimal128Array, arrow::Decimal128>;
    case arrow::Type::DECIMAL256:
      return AppendDecimal<arrow::Decimal256Array, arrow::Decimal256>;
    case arrow::Type::DATE32:
      return AppendDate32;
    case arrow::Type::DATE64:
      return AppendDate64;
    case arrow::Type::TIMESTAMP:
      return AppendTimestamp;
    case arrow::Type::TIME32:
      return AppendTime<arrow::Time32Array>;
    case arrow::Type::TIME64:
      return AppendTime<arrow::Time64Array>;
    case arrow::Type::DICTIONARY: {
      const auto& values = *static_cast<const arrow::DictionaryType&>(type).value_type();
      const bool nested = values.id() == arrow::Type::DICTIONARY;
      return nested || WriterOf(values) == nullptr ? nullptr : AppendOfDictionary;
    }
    default:
      return nullptr;
  }
}

// Returns the type of a list's items; null: it is no list.
const arrow::DataType* ItemTypeOf(const arrow::DataType& type) {
  const bool list = type.id() == arrow::Type::LIST || type.id() == arrow::Type::LARGE_LIST ||
                    type.id() == arrow::Type::FIXED_SIZE_LIST;
  return list ? static_cast<const arrow::BaseListType&>(type).value_type().get() : nullptr;
}

const arrow::DataType& StorageOf(const arrow::DataType& type) {
  if (type.id() != arrow::Type::EXTENSION) return type;
  return *static_cast<const arrow::ExtensionType&>(type).storage_type();
}

// --- Validity. ---

// The type with bytes in place of strings, so that any text is valid, as it is elsewhere.
std::shared_ptr<arrow::DataType> WithBytes(const std::shared_ptr<arrow::DataType>& type) {
  switch (type->id()) {
    case arrow::Type::STRING:
      return arrow::binary();
    case arrow::Type::LARGE_STRING:
      return arrow::large_binary();
    case arrow::Type::STRING_VIEW:
      return arrow::binary_view();
    case arrow::Type::EXTENSION:
      return WithBytes(static_cast<const arrow::ExtensionType&>(*type).storage_type());
    case arrow::Type::DICTIONARY: {
      const auto& dictionary = static_cast<const arrow::DictionaryType&>(*type);
      return arrow::dictionary(dictionary.index_type(), WithBytes(dictionary.value_type()));
    }
    case arrow::Type::LIST:
      return arrow::list(WithBytes(type->field(0)->type()));
    case arrow::Type::LARGE_LIST:
      return arrow::large_list(WithBytes(type->field(0)->type()));
    case arrow::Type::FIXED_SIZE_LIST:
      return arrow::fixed_size_list(
          WithBytes(type->field(0)->type()),
          static_cast<const arrow::FixedSizeListType&>(*type).list_size());
    case arrow::Type::MAP:
      return Take(arrow::MapType::Make(type->field(0)->WithType(WithBytes(type->field(0)->type())),
                                       static_cast<const arrow::MapType&>(*type).keys_sorted()));
    case arrow::Type::STRUCT: {
      arrow::FieldVector fields;
      for (const auto& field : type->fields()) {
        fields.push_back(field->WithType(WithBytes(field->type())));
      }
      return arrow::struct_(fields);
    }
    default:
      return type;
  }
}

std::shared_ptr<arrow::ArrayData> WithBytes(const arrow::ArrayData& data) {
  auto bytes = data.Copy();
  bytes->type = WithBytes(data.type);
  for (auto& child : bytes->child_data) child = WithBytes(*child);
  if (bytes->dictionary != nullptr) bytes->dictionary = WithBytes(*bytes->dictionary);
  return bytes;
}

void CheckBatch(const arrow::RecordBatch& batch) {
  Check(batch.Validate());
  for (int i = 0; i < batch.num_columns(); ++i) {
    Check(arrow::MakeArray(WithBytes(*batch.column_data(i)))->ValidateFull());
  }
}

// --- The number that the text of a value would give. ---

// Appends numbers; NaN: missing. Returns false if one needs its text.
template <typename Array>
bool AppendNumbers(const arrow::Array& array, int64_t begin, int64_t end,
                   std::vector<double>* numbers) {
  constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
  const auto* const values = static_cast<const Array&>(array).raw_values();
  const uint8_t* const there = array.null_bitmap_data();
  const size_t before = numbers->size();
  numbers->resize(before + end - begin);
  double* number = numbers->data() + before;
  bool within_range = true;
  for (int64_t i = begin; i < end; ++i, ++number) {
    const bool is_null = there != nullptr && !arrow::bit_util::GetBit(there, array.offset() + i);
    const auto value = static_cast<double>(values[i]);
    within_range &= is_null || !(std::abs(value) > std::numeric_limits<float>::max());
    // No text has another NaN, or the sign of -0.
    *number = is_null || std::isnan(value) ? kMissing : value == 0 ? 0 : value;
  }
  return within_range;
}

// The same for a column of any type. The shortest text of a float means another double than the
// float is, so that it has to be read.
bool AppendNumbersOf(const arrow::Array& array, int64_t begin, int64_t end,
                     std::vector<double>* numbers) {
  switch (array.type_id()) {
    case arrow::Type::INT8:
      return AppendNumbers<arrow::Int8Array>(array, begin, end, numbers);
    case arrow::Type::INT16:
      return AppendNumbers<arrow::Int16Array>(array, begin, end, numbers);
    case arrow::Type::INT32:
      return AppendNumbers<arrow::Int32Array>(array, begin, end, numbers);
    case arrow::Type::INT64:
      return AppendNumbers<arrow::Int64Array>(array, begin, end, numbers);
    case arrow::Type::UINT8:
      return AppendNumbers<arrow::UInt8Array>(array, begin, end, numbers);
    case arrow::Type::UINT16:
      return AppendNumbers<arrow::UInt16Array>(array, begin, end, numbers);
    case arrow::Type::UINT32:
      return AppendNumbers<arrow::UInt32Array>(array, begin, end, numbers);
    case arrow::Type::UINT64:
      return AppendNumbers<arrow::UInt64Array>(array, begin, end, numbers);
    case arrow::Type::DOUBLE:
      return AppendNumbers<arrow::DoubleArray>(array, begin, end, numbers);
    default:
      return false;
  }
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

// --- Columns of several pieces. ---

// A run of rows of one batch.
struct Piece {
  std::shared_ptr<arrow::RecordBatch> batch;
  int64_t begin = 0;
  int64_t end = 0;
};

// What a column gives: its values, or of a map the keys or the values of every row's entries.
enum class Part { kWhole, kKeys, kValues };

// Makes text of one column, piece by piece.
class ColumnText {
 public:
  void Begin(Part part, std::string* text, TextColumn* column) {
    part_ = part;
    text_ = text;
    column_ = column;
    column_->begins.assign(1, Place());
    column_->codes.clear();
    column_->numbers.clear();
  }

  void Append(const std::shared_ptr<arrow::Array>& array, int64_t begin, int64_t end) {
    const arrow::Array* plain = array.get();
    if (plain->type_id() == arrow::Type::EXTENSION) {
      plain = static_cast<const arrow::ExtensionArray*>(plain)->storage().get();
    }
    switch (plain->type_id()) {
      case arrow::Type::LIST:
        return AppendLists(static_cast<const arrow::ListArray&>(*plain), begin, end);
      case arrow::Type::MAP: {
        const auto& map = static_cast<const arrow::MapArray&>(*plain);
        return AppendLists(map, *(part_ == Part::kKeys ? map.keys() : map.items()), begin, end);
      }
      case arrow::Type::LARGE_LIST:
        return AppendLists(static_cast<const arrow::LargeListArray&>(*plain), begin, end);
      case arrow::Type::FIXED_SIZE_LIST:
        return AppendLists(static_cast<const arrow::FixedSizeListArray&>(*plain), begin, end);
      case arrow::Type::DICTIONARY:
        return AppendDictionary(static_cast<const arrow::DictionaryArray&>(*plain), begin, end);
      case arrow::Type::INT32:
        return AppendIntegers(static_cast<const arrow::Int32Array&>(*plain), begin, end);
      case arrow::Type::INT64:
        return AppendIntegers(static_cast<const arrow::Int64Array&>(*plain), begin, end);
      default:
        AppendValues(*plain, begin, end);
    }
  }

 private:
  uint32_t Place() const {
    if (text_->size() >= kMostTextBytes) {
      throw std::runtime_error(
          "rows that lie together give more than 2 GiB of text; expected shorter lists or texts");
    }
    return static_cast<uint32_t>(text_->size());
  }
  void EndValue() { column_->begins.push_back(Place()); }

  void AppendValues(const arrow::Array& array, int64_t begin, int64_t end) {
    const AppendValue append = WriterOf(*array.type());
    for (int64_t i = begin; i < end; ++i) {
      if (!array.IsNull(i)) append(array, i, text_);
      EndValue();
    }
  }

  // Integers are many: these take no call a value.
  template <typename Integers>
  void AppendIntegers(const Integers& array, int64_t begin, int64_t end) {
    constexpr size_t kMostDigits = 20;
    const auto* const values = array.raw_values();
    const uint8_t* const there = array.null_bitmap_data();
    size_t size = text_->size();
    text_->resize(size + kMostDigits * (end - begin));
    char* const text = text_->data();
    for (int64_t i = begin; i < end; ++i) {
      if (there == nullptr || arrow::bit_util::GetBit(there, array.offset() + i)) {
        size = std::to_chars(text + size, text + size + kMostDigits, values[i]).ptr - text;
      }
      column_->begins.push_back(static_cast<uint32_t>(size));
    }
    text_->resize(size);
    Place();
  }

  template <typename Lists>
  void AppendLists(const Lists& lists, int64_t begin, int64_t end) {
    AppendLists(lists, *lists.values(), begin, end);
  }

  template <typename Lists>
  void AppendLists(const Lists& lists, const arrow::Array& values, int64_t begin, int64_t end) {
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

  // The values that these rows have, each once. The first value is the missing one.
  void AppendDictionary(const arrow::DictionaryArray& array, int64_t begin, int64_t end) {
    if (column_->begins.size() == 1) EndValue();
    seen_.resize(std::max<size_t>(seen_.size(), array.dictionary()->length()));
    ++turn_;
    const arrow::Array& codes = *array.indices();
    switch (codes.type_id()) {
      case arrow::Type::INT8:
        return AppendCodes<arrow::Int8Array>(codes, *array.dictionary(), begin, end);
      case arrow::Type::INT16:
        return AppendCodes<arrow::Int16Array>(codes, *array.dictionary(), begin, end);
      case arrow::Type::INT32:
        return AppendCodes<arrow::Int32Array>(codes, *array.dictionary(), begin, end);
      case arrow::Type::INT64:
        return AppendCodes<arrow::Int64Array>(codes, *array.dictionary(), begin, end);
      case arrow::Type::UINT8:
        return AppendCodes<arrow::UInt8Array>(codes, *array.dictionary(), begin, end);
      case arrow::Type::UINT16:
        return AppendCodes<arrow::UInt16Array>(codes, *array.dictionary(), begin, end);
      case arrow::Type::UINT32:
        return AppendCodes<arrow::UInt32Array>(codes, *array.dictionary(), begin, end);
      default:
        return AppendCodes<arrow::UInt64Array>(codes, *array.dictionary(), begin, end);
    }
  }

  template <typename Codes>
  void AppendCodes(const arrow::Array& array, const arrow::Array& values, int64_t begin,
                   int64_t end) {
    const auto* const codes = static_cast<const Codes&>(array).raw_values();
    const auto behind = static_cast<uint64_t>(values.length());
    constexpr int64_t kPrefetchRows = 12;
    const AppendValue append = WriterOf(*values.type());
    const uint8_t* const there = array.null_bitmap_data();
    const size_t before = column_->codes.size();
    column_->codes.resize(before + end - begin);
    uint32_t* place = column_->codes.data() + before;
    for (int64_t i = begin; i < end; ++i, ++place) {
      *place = 0;
      if (i + kPrefetchRows < end) {
        const auto code = static_cast<uint64_t>(codes[i + kPrefetchRows]);
        __builtin_prefetch(seen_.data() + std::min(code, behind));
      }
      if (there != nullptr && !arrow::bit_util::GetBit(there, array.offset() + i)) continue;
      const auto code = static_cast<uint64_t>(codes[i]);
      if (code >= behind) throw std::runtime_error("a code of no value");
      Seen& seen = seen_[code];
      if (seen.turn != turn_) {
        seen = {turn_, 0};
        if (!values.IsNull(code)) {
          seen.place = static_cast<uint32_t>(column_->begins.size() - 1);
          append(values, static_cast<int64_t>(code), text_);
          EndValue();
        }
      }
      *place = seen.place;
    }
  }

  // Where the value of a code stands in the column.
  struct Seen {
    uint32_t turn = 0;  // in which it was added
    uint32_t place = 0;
  };

  Part part_ = Part::kWhole;
  std::string* text_ = nullptr;
  TextColumn* column_ = nullptr;
  std::string item_;
  std::vector<Seen> seen_;  // by code
  uint32_t turn_ = 0;
};

// --- Rows. ---

// The columns that a file gives.
struct FileColumns {
  std::vector<TableColumn> columns;
  // Where they stand: the file's column, and the part of it.
  std::vector<int> fields;
  std::vector<Part> parts;

  void Add(const arrow::Field& field, int place) {
    const arrow::DataType& type = StorageOf(*field.type());
    if (type.id() != arrow::Type::MAP) {
      const arrow::DataType* const item = ItemTypeOf(type);
      return Add(field, place, "", item == nullptr ? type : *item, Part::kWhole, item != nullptr);
    }
    const auto& map = static_cast<const arrow::MapType&>(type);
    Add(field, place, ".key", *map.key_type(), Part::kKeys, /*is_list=*/true);
    Add(field, place, ".value", *map.item_type(), Part::kValues, /*is_list=*/true);
  }

 private:
  void Add(const arrow::Field& field, int place, const char* suffix, const arrow::DataType& type,
           Part part, bool is_list) {
    const bool readable = WriterOf(type) != nullptr;
    columns.push_back({field.name() + suffix, field.type()->ToString(), is_list, readable});
    fields.push_back(place);
    parts.push_back(part);
  }
};

FileColumns ColumnsOf(const arrow::Schema& schema) {
  FileColumns columns;
  for (int i = 0; i < schema.num_fields(); ++i) columns.Add(*schema.field(i), i);
  return columns;
}

// Cuts batches into as many rows as are asked for.
class BatchRows : public TableRows {
 public:
  std::string Next(int64_t rows, std::string* text, TextTable* table) override {
    return WrongOf([&] {
      const Denormals denormals;
      std::vector<Piece> pieces;
      TakePieces(rows, &pieces);
      text->clear();
      table->rows = rows;
      table->columns.resize(places_.size());
      writers_.resize(places_.size());
      for (size_t i = 0; i < places_.size(); ++i) {
        TextColumn& column = table->columns[i];
        writers_[i].Begin(parts_[i], text, &column);
        column.is_list = lists_[i];
        if (TakeNumbers(i, pieces, &column.numbers)) continue;
        for (const Piece& piece : pieces) {
          writers_[i].Append(piece.batch->column(places_[i]), piece.begin, piece.end);
        }
      }
    });
  }

  std::string Skip(int64_t rows) override {
    return WrongOf([&] {
      std::vector<Piece> pieces;
      TakePieces(rows, &pieces);
    });
  }

 protected:
  // Returns the next batch; null at the end.
  virtual std::shared_ptr<arrow::RecordBatch> NextBatch() = 0;

  // Sets what is given, and `read` to the file's columns that it stands in, in the file's order.
  void Choose(const FileColumns& file, const std::vector<int>& wanted,
              const std::vector<bool>& as_numbers, std::vector<int>* read) {
    as_numbers_ = as_numbers;
    for (const int column : wanted) {
      parts_.push_back(file.parts[column]);
      lists_.push_back(file.columns[column].is_list);
      read->push_back(file.fields[column]);
    }
    const std::vector<int> fields = *read;
    std::sort(read->begin(), read->end());
    read->erase(std::unique(read->begin(), read->end()), read->end());
    for (const int field : fields) {
      const auto place = std::lower_bound(read->begin(), read->end(), field);
      places_.push_back(static_cast<int>(place - read->begin()));
    }
  }

 private:
  // On false there are none.
  bool TakeNumbers(size_t column, const std::vector<Piece>& pieces,
                   std::vector<double>* numbers) const {
    if (as_numbers_.empty() || !as_numbers_[column]) return false;
    for (const Piece& piece : pieces) {
      const arrow::Array& array = *piece.batch->column(places_[column]);
      if (AppendNumbersOf(array, piece.begin, piece.end, numbers)) continue;
      numbers->clear();
      return false;
    }
    return true;
  }

  void TakePieces(int64_t rows, std::vector<Piece>* pieces) {
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

  // By column to give.
  std::vector<int> places_;  // in a batch
  std::vector<Part> parts_;
  std::vector<bool> lists_;
  std::vector<bool> as_numbers_;  // empty: none
  std::vector<ColumnText> writers_;

  std::shared_ptr<arrow::RecordBatch> batch_;
  int64_t at_ = 0;  // rows of it that were given
};

// --- Parquet. ---

class ParquetFile : public TableFile {
 public:
  explicit ParquetFile(std::string path) : path_(std::move(path)) {
    const auto reader = Open(parquet::default_arrow_reader_properties());
    metadata_ = reader->parquet_reader()->metadata();
    std::shared_ptr<arrow::Schema> schema;
    Check(reader->GetSchema(&schema));
    columns_ = ColumnsOf(*schema);
    columns = columns_.columns;
    for (int i = 0; i < metadata_->num_row_groups(); ++i) {
      const auto group = metadata_->RowGroup(i);
      groups.push_back({group->num_rows(), std::max(group->total_byte_size(), ListBytes(*group))});
    }
  }

  std::unique_ptr<TableRows> Read(int group, const std::vector<int>& wanted,
                                  const std::vector<bool>& as_numbers,
                                  std::string* wrong) const override {
    std::unique_ptr<TableRows> rows;
    *wrong = WrongOf([&] { rows = std::make_unique<Rows>(*this, group, wanted, as_numbers); });
    return rows;
  }

 private:
  class Rows : public BatchRows {
   public:
    Rows(const ParquetFile& file, int group, const std::vector<int>& wanted,
         const std::vector<bool>& as_numbers) {
      std::vector<int> read, leaves;
      Choose(file.columns_, wanted, as_numbers, &read);
      const auto plain = file.Open(parquet::default_arrow_reader_properties());
      parquet::ArrowReaderProperties properties;
      const auto row_group = file.metadata_->RowGroup(group);
      for (const int field : read) {
        const parquet::arrow::SchemaField& schema = plain->manifest().schema_fields.at(field);
        AddLeaves(schema, &leaves);
        if (schema.is_leaf() && HasDictionary(*row_group->ColumnChunk(leaves.back()))) {
          properties.set_read_dictionary(leaves.back(), true);
        }
      }
      // Every batch has the whole dictionaries, so that small ones take longer.
      constexpr int64_t kBatchRows = 1 << 17, kBatchBytes = 32 << 20, kValueBytes = 8;
      const int64_t row_bytes = std::max<int64_t>(file.groups[group].bytes /
                                                      std::max<int64_t>(file.groups[group].rows, 1),
                                                  kValueBytes * std::ssize(leaves)) +
                                1;
      properties.set_batch_size(std::clamp<int64_t>(kBatchBytes / row_bytes, 1, kBatchRows));
      properties.set_pre_buffer(false);
      reader_ = file.Open(properties);
      batches_ = Take(reader_->GetRecordBatchReader({group}, leaves));
    }

   protected:
    std::shared_ptr<arrow::RecordBatch> NextBatch() override {
      std::shared_ptr<arrow::RecordBatch> batch;
      Check(batches_->ReadNext(&batch));
      return batch;
    }

   private:
    static void AddLeaves(const parquet::arrow::SchemaField& field, std::vector<int>* leaves) {
      if (field.is_leaf()) leaves->push_back(field.column_index);
      for (const auto& child : field.children) AddLeaves(child, leaves);
    }
    // Whether all values stand in the chunk's dictionary, so that reading it as one is quick.
    static bool HasDictionary(const parquet::ColumnChunkMetaData& chunk) {
      if (chunk.type() != parquet::Type::BYTE_ARRAY || !chunk.has_dictionary_page()) return false;
      return std::ranges::all_of(chunk.encoding_stats(), [](const auto& stats) {
        const bool data = stats.page_type == parquet::PageType::DATA_PAGE ||
                          stats.page_type == parquet::PageType::DATA_PAGE_V2;
        return !data || stats.encoding == parquet::Encoding::RLE_DICTIONARY ||
               stats.encoding == parquet::Encoding::PLAIN_DICTIONARY;
      });
    }

    std::unique_ptr<parquet::arrow::FileReader> reader_;
    std::unique_ptr<arrow::RecordBatchReader> batches_;
  };

  std::unique_ptr<parquet::arrow::FileReader> Open(
      parquet::ArrowReaderProperties properties) const {
    // Nanoseconds would leave out the years before 1677 and from 2263 on.
    properties.set_coerce_int96_timestamp_unit(arrow::TimeUnit::MICRO);
    parquet::ReaderProperties reading(Memory());
    // A column is read page by page, not as a whole.
    reading.enable_buffered_stream();
    constexpr int64_t kBufferBytes = 256 << 10;
    reading.set_buffer_size(kBufferBytes);
    reading.set_page_checksum_verification(true);
    parquet::arrow::FileReaderBuilder builder;
    Check(builder.Open(OpenFile(path_), reading, metadata_));
    builder.memory_pool(Memory())->properties(properties);
    return Take(builder.Build());
  }

  // What the items of lists take, as encodings may make nothing of them.
  static int64_t ListBytes(const parquet::RowGroupMetaData& group) {
    constexpr double kItemBytes = 8;
    double bytes = 0;
    for (int i = 0; i < group.num_columns(); ++i) {
      if (group.schema()->Column(i)->max_repetition_level() == 0) continue;
      const auto chunk = group.ColumnChunk(i);
      bytes += kItemBytes * static_cast<double>(std::max<int64_t>(chunk->num_values(), 0));
      const auto sizes = chunk->size_statistics();
      const int64_t text =
          sizes == nullptr ? 0 : sizes->unencoded_byte_array_data_bytes.value_or(0);
      bytes += static_cast<double>(std::max<int64_t>(text, 0));
    }
    return static_cast<int64_t>(std::min(bytes, kMostBytes));
  }

  const std::string path_;
  std::shared_ptr<parquet::FileMetaData> metadata_;
  FileColumns columns_;
};

// --- Arrow files, also known as Feather. ---

class ArrowFile : public TableFile {
 public:
  explicit ArrowFile(std::string path) : path_(std::move(path)) {
    const auto reader = Open(Options());
    columns_ = ColumnsOf(*reader->schema());
    columns = columns_.columns;
    const int64_t rows = Take(reader->CountRows());
    groups = {{rows, ListBytes(rows)}};
  }

  std::unique_ptr<TableRows> Read(int, const std::vector<int>& wanted,
                                  const std::vector<bool>& as_numbers,
                                  std::string* wrong) const override {
    std::unique_ptr<TableRows> rows;
    *wrong = WrongOf([&] { rows = std::make_unique<Rows>(*this, wanted, as_numbers); });
    return rows;
  }

 private:
  class Rows : public BatchRows {
   public:
    Rows(const ArrowFile& file, const std::vector<int>& wanted,
         const std::vector<bool>& as_numbers) {
      auto options = Options();
      Choose(file.columns_, wanted, as_numbers, &options.included_fields);
      reader_ = file.Open(options);
    }

    std::shared_ptr<arrow::RecordBatch> NextBatch() override {
      if (next_ == reader_->num_record_batches()) return nullptr;
      auto batch = Take(reader_->ReadRecordBatch(next_++));
      CheckBatch(*batch);
      return batch;
    }

   private:
    std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader_;
    int next_ = 0;
  };

  static arrow::ipc::IpcReadOptions Options() {
    auto options = arrow::ipc::IpcReadOptions::Defaults();
    options.use_threads = false;
    options.memory_pool = Memory();
    return options;
  }

  // What the lists take if all batches are as the first one. The file may be compressed.
  int64_t ListBytes(int64_t rows) const {
    std::vector<int> lists;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].is_readable && columns[i].is_list) lists.push_back(static_cast<int>(i));
    }
    if (lists.empty()) return 0;
    Rows reader(*this, lists, {});
    const auto batch = reader.NextBatch();
    if (batch == nullptr) return 0;
    constexpr int64_t kSampleRows = 256;
    const int64_t sample = std::min(batch->num_rows(), kSampleRows);
    if (sample == 0) return 0;
    std::string text;
    TextTable table;
    Rows sampled(*this, lists, {});
    if (const std::string wrong = sampled.Next(sample, &text, &table); !wrong.empty()) {
      throw std::runtime_error(wrong);
    }
    const double row_bytes =
        std::max(static_cast<double>(text.size()) / static_cast<double>(sample),
                 static_cast<double>(arrow::util::TotalBufferSize(*batch)) /
                     static_cast<double>(batch->num_rows()));
    return static_cast<int64_t>(std::min(row_bytes * static_cast<double>(rows), kMostBytes));
  }

  std::shared_ptr<arrow::ipc::RecordBatchFileReader> Open(
      const arrow::ipc::IpcReadOptions& options) const {
    return Take(arrow::ipc::RecordBatchFileReader::Open(OpenFile(path_), options));
  }

  const std::string path_;
  FileColumns columns_;
};

std::unique_ptr<TableFile> Open(const std::string& path, std::string* wrong) {
  std::unique_ptr<TableFile> file;
  *wrong = WrongOf([&] {
    const auto head = Take(OpenFile(path)->Read(4));
    const bool parquet = head->ToString() == "PAR1";
    file = parquet ? std::unique_ptr<TableFile>(std::make_unique<ParquetFile>(path))
                   : std::make_unique<ArrowFile>(path);
  });
  return file;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const ArrowPart elastor_arrow_part;
const ArrowPart elastor_arrow_part = {kArrowPartHash, ARROW_VERSION_STRING, Open};

}  // namespace elastor
