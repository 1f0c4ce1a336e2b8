#include "trainer/prepare/rows/packed_column.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace elastor {
namespace {

constexpr int64_t kHeaderBytes = 10;  // kind, width, base
constexpr double kLargestIntegral = 1 << 30;

int BytesFor(uint64_t largest) { return (std::bit_width(largest) + 7) / 8; }

// The integers that a column's numbers are; kMissing for NaN. *least to *largest are those of the
// others. Returns false if a number is none that a code can stand for: a fraction, large, or -0.0.
// kStride: the stride; 0: known at run time alone. Arithmetic of integers, and no comparison, lets
// the compiler take several values at once.
constexpr int64_t kMissing = std::numeric_limits<int64_t>::min();
template <int64_t kStride>
bool ToIntegers(const double* values, int64_t count, int64_t stride, std::vector<int64_t>* integers,
                int64_t* least, int64_t* largest) {
  // Added to a small number, it leaves the integer next to it in the last bits.
  constexpr double kMagic = 0x1.8p52;
  constexpr auto kLargestBits = std::bit_cast<int64_t>(kLargestIntegral);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeastNan = 0x7ff0'0000'0000'0001;
  integers->resize(count);
  int64_t* const to = integers->data();
  int64_t low = kMost, high = kMissing, others = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = values[i * (kStride > 0 ? kStride : stride)], moved = value + kMagic;
    const int64_t integer = std::bit_cast<int64_t>(moved) - std::bit_cast<int64_t>(kMagic);
    const auto bits = std::bit_cast<int64_t>(value);
    const int64_t differs = std::bit_cast<int64_t>(moved - kMagic) ^ bits;
    // Each has all bits, or none.
    const int64_t there = ((bits & kMost) - kLeastNan) >> 63;
    const int64_t large = (kLargestBits - (bits & kMost)) >> 63;
    others |= there & (differs | large);
    const int64_t or_least = (integer & there) | (kMissing & ~there);
    to[i] = or_least;
    low = std::min(low, (integer & there) | (kMost & ~there));
    high = std::max(high, or_least);
  }
  *least = low;
  *largest = high;
  return others == 0;
}

// Writes 8 bytes at a time; the next value overwrites what is too much.
template <typename CodeOf>
void AppendCodes(int64_t count, int width, CodeOf code_of, std::string* bytes) {
  const size_t begin = bytes->size();
  bytes->resize(begin + count * width + sizeof(uint64_t));
  char* const to = bytes->data() + begin;
  if (width == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<char>(code_of(i));
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t code = code_of(i);
      std::memcpy(to + i * width, &code, sizeof(code));
    }
  }
  bytes->resize(begin + count * width);
}

}  // namespace

void PackedColumn::AppendHeader(Kind kind, int width, uint64_t base, std::string* bytes) {
  bytes->push_back(static_cast<char>(kind));
  bytes->push_back(static_cast<char>(width));
  bytes->append(reinterpret_cast<const char*>(&base), sizeof(base));
}

template <typename T>
void PackedColumn::AppendIntegers(const T* values, int64_t count, int64_t stride,
                                  std::string* bytes) {
  T least = std::numeric_limits<T>::max(), largest = 0;
  const auto extend = [&](T value) {
    least = std::min(least, value);
    largest = std::max(largest, value);
  };
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) extend(values[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) extend(values[i * stride]);
  }
  if (count == 0) least = 0;
  const uint64_t base = least;
  const int width = BytesFor(largest - base);
  AppendHeader(kInteger, width, base, bytes);
  AppendCodes(
      count, width, [=](int64_t i) { return uint64_t{values[i * stride]} - base; }, bytes);
}

template void PackedColumn::AppendIntegers(const uint64_t*, int64_t, int64_t, std::string*);
template void PackedColumn::AppendIntegers(const uint32_t*, int64_t, int64_t, std::string*);
template void PackedColumn::AppendIntegers(const uint8_t*, int64_t, int64_t, std::string*);

void PackedColumn::AppendNumeric(const double* values, int64_t count, int64_t stride,
                                 std::string* bytes) {
  std::vector<int64_t> integers;
  int64_t least, largest;
  const auto to_integers = stride == 1 ? ToIntegers<1> : ToIntegers<0>;
  if (to_integers(values, count, stride, &integers, &least, &largest)) {
    const int64_t span = largest >= least ? largest - least : 0;
    if (largest < least) least = static_cast<int64_t>(kLargestIntegral);  // all are missing
    const int width = BytesFor(static_cast<uint64_t>(span) + 1);
    AppendHeader(kIntegral, width, static_cast<uint64_t>(least), bytes);
    const auto code_of = [least, from = integers.data()](int64_t i) {
      return from[i] == kMissing ? uint64_t{0} : static_cast<uint64_t>(from[i] - least) + 1;
    };
    return AppendCodes(count, width, code_of, bytes);
  }
  bool exact = true;
  for (int64_t i = 0; i < count; ++i) {
    const double value = values[i * stride];
    exact &= std::isnan(value) || static_cast<double>(static_cast<float>(value)) == value;
  }
  if (exact) {
    AppendHeader(kFloat, 4, 0, bytes);
    const auto code_of = [=](int64_t i) {
      return uint64_t{std::bit_cast<uint32_t>(static_cast<float>(values[i * stride]))};
    };
    AppendCodes(count, 4, code_of, bytes);
  } else {
    AppendHeader(kDouble, 8, 0, bytes);
    AppendCodes(
        count, 8, [=](int64_t i) { return std::bit_cast<uint64_t>(values[i * stride]); }, bytes);
  }
}

PackedColumn::PackedColumn(const char* data, int64_t count, const char** end)
    : data_(data + kHeaderBytes), width_(data[1]), kind_(static_cast<Kind>(data[0])) {
  std::memcpy(&base_, data + 2, sizeof(base_));
  mask_ = width_ == 0 ? 0 : ~uint64_t{0} >> (64 - 8 * width_);
  *end = data_ + count * width_;
}

double PackedColumn::Numeric(int64_t i) const {
  const uint64_t code = Code(i);
  switch (kind_) {
    case kFloat:
      return std::bit_cast<float>(static_cast<uint32_t>(code));
    case kDouble:
      return std::bit_cast<double>(code);
    default:
      return code == 0 ? std::numeric_limits<double>::quiet_NaN()
                       : static_cast<double>(least() + static_cast<int64_t>(code) - 1);
  }
}

}  // namespace elastor
