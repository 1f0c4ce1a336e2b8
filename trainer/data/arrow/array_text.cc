#include "trainer/data/arrow/array_text.h"

#include <arrow/util/float16.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <stdexcept>

namespace elastor {
namespace {

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

void AppendOfDictionary(const arrow::Array& array, int64_t i, std::string* text) {
  const auto& dictionary = static_cast<const arrow::DictionaryArray&>(array);
  const int64_t code = dictionary.GetValueIndex(i);
  const arrow::Array& values = *dictionary.dictionary();
  if (code < 0 || code >= values.length()) throw std::runtime_error("a code of no value");
  if (!values.IsNull(code)) WriterOf (*values.type())(values, code, text);
}

}  // namespace

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

const arrow::DataType* ItemTypeOf(const arrow::DataType& type) {
  const bool list = type.id() == arrow::Type::LIST || type.id() == arrow::Type::LARGE_LIST ||
                    type.id() == arrow::Type::FIXED_SIZE_LIST;
  return list ? static_cast<const arrow::BaseListType&>(type).value_type().get() : nullptr;
}

const arrow::DataType& StorageOf(const arrow::DataType& type) {
  if (type.id() != arrow::Type::EXTENSION) return type;
  return *static_cast<const arrow::ExtensionType&>(type).storage_type();
}

}  // namespace elastor
