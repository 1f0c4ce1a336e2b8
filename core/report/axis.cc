#include "core/report/axis.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "core/base/canonical_math.h"
#include "core/base/text.h"

namespace elastor {
namespace {

constexpr double kLargest = 1e300;
constexpr char kMinus[] = "\u2212";
// Beyond these a number is written by its power of ten.
constexpr double kLargestPlain = 1e7;
constexpr double kSmallestPlain = 1e-4;
constexpr double kSmallestPrefixed = 1e4;

// 10^n, correctly rounded.
double PowerOfTen(int n) {
  const std::string text = StrCat("1e", n);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

double Log10(double value) { return CanonicalLog(value) / CanonicalLog(10); }

// The n with 10^n <= value < 10^(n + 1).
int ExponentOf(double value) {
  int n = static_cast<int>(std::floor(Log10(value)));
  if (PowerOfTen(n + 1) <= value) ++n;
  if (PowerOfTen(n) > value) --n;
  return n;
}

std::string PowerText(int exponent) {
  constexpr const char* kDigits[] = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                     "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
  std::string text = exponent < 0 ? "10\u207b" : "10";
  for (const char digit : std::to_string(std::abs(exponent))) text += kDigits[digit - '0'];
  return text;
}

// mantissa x 10^exponent, the mantissa with `decimals` of them.
std::string ScientificText(double value, int decimals) {
  const int exponent = ExponentOf(std::fabs(value));
  // 10^-exponent itself may be too large.
  const double mantissa = value / PowerOfTen(exponent / 2) / PowerOfTen(exponent - exponent / 2);
  return NumberText(mantissa, decimals) + "\u00b7" + PowerText(exponent);
}

}  // namespace

bool IsDrawable(double value, const ChartAxis& axis) {
  return std::fabs(value) <= kLargest && (!axis.logarithmic || value >= 1 / kLargest);
}

std::string NumberText(double value, int decimals) {
  char digits[400];
  const auto end = std::to_chars(digits, digits + sizeof(digits), std::fabs(value),
                                 std::chars_format::fixed, decimals)
                       .ptr;
  std::string text(digits, end);
  const bool zero = text.find_first_not_of("0.") == std::string::npos;
  const size_t whole = std::min(text.find('.'), text.size());
  if (whole > 4) {
    for (size_t i = whole - 3; i > 0 && i < whole; i -= std::min<size_t>(i, 3)) text.insert(i, ",");
  }
  return value < 0 && !zero ? kMinus + text : text;
}

std::string ShortNumber(double value) {
  const double size = std::fabs(value);
  if (!(size > 0)) return std::isnan(value) ? "none" : "0";
  if (!std::isfinite(value)) return value > 0 ? "infinite" : "minus infinite";
  if (size >= kLargestPlain || size < kSmallestPlain) {
    if (size < 1 / kLargest) return "0";
    return ScientificText(value, 2);
  }
  return NumberText(value, std::max(0, 2 - ExponentOf(size)));
}

std::string PrefixedNumber(double value, int digits) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T"};
  const double size = std::fabs(value);
  if (!(size >= 1)) return ShortNumber(value);
  const int exponent = ExponentOf(size);
  const int prefix = std::min(exponent / 3, 4);
  std::string text =
      NumberText(value / PowerOfTen(3 * prefix), std::max(0, digits - 1 - (exponent - 3 * prefix)));
  if (text.find('.') != text.npos) text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + kPrefixes[prefix];
}

Scale::Scale(const ChartAxis& axis, const std::vector<double>& values, int ticks, double from,
             double to)
    : logarithmic_(axis.logarithmic), prefixes_(axis.prefixes), from_(from), to_(to) {
  if (!axis.categories.empty()) {
    low_ = -0.5;
    high_ = static_cast<double>(axis.categories.size()) - 0.5;
    for (size_t i = 0; i < axis.categories.size(); ++i) {
      ticks_.push_back({At(static_cast<double>(i)), axis.categories[i]});
    }
    return;
  }
  bool any = false;
  for (const double value : values) {
    if (!IsDrawable(value, axis)) continue;
    const double place = logarithmic_ ? Log10(value) : value;
    low_ = any ? std::min(low_, place) : place;
    high_ = any ? std::max(high_, place) : place;
    any = true;
  }
  // Numbers that ticks could not tell apart are one.
  const double size = std::max(std::fabs(low_), std::fabs(high_));
  const bool one = high_ - low_ <= std::max(1e-12 * size, 1 / kLargest);
  const double margin = !one           ? (high_ - low_) * 0.04
                        : logarithmic_ ? 0.5
                                       : std::max(size * 0.1, 1e-3);
  low_ -= margin;
  high_ += margin;
  if (!logarithmic_) {
    MakeLinearTicks(low_, high_, ticks);
  } else if (high_ - low_ < 1) {
    MakeLinearTicks(low_value(), high_value(), ticks);
  } else {
    MakeLogarithmicTicks(ticks);
  }
}

double Scale::At(double value) const {
  const double place = logarithmic_ ? Log10(value) : value;
  return from_ + (to_ - from_) * ((place - low_) / (high_ - low_));
}

double Scale::low_value() const {
  return logarithmic_ ? CanonicalExp(low_ * CanonicalLog(10)) : low_;
}
double Scale::high_value() const {
  return logarithmic_ ? CanonicalExp(high_ * CanonicalLog(10)) : high_;
}

// Multiples of 1, 2 or 5 times a power of ten, the smallest step that gives no more than asked for.
void Scale::MakeLinearTicks(double low, double high, int ticks) {
  const double wanted = (high - low) / ticks;
  int exponent = ExponentOf(wanted);
  const double lead = wanted / PowerOfTen(exponent);
  int digit = lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10;
  if (digit == 10) {
    digit = 1;
    ++exponent;
  }
  const double step = digit * PowerOfTen(exponent);
  const double largest = std::max(std::fabs(low), std::fabs(high));
  const bool scientific = largest >= kLargestPlain || largest < kSmallestPlain;
  const int decimals =
      scientific ? std::clamp(ExponentOf(largest) - exponent, 0, 15) : std::max(0, -exponent);
  for (double n = std::ceil(low / step); n * step <= high; ++n) {
    const double value = exponent < 0 ? n * digit / PowerOfTen(-exponent) : n * step;
    if (prefixes_ && std::fabs(value) >= kSmallestPrefixed) {
      ticks_.push_back(
          {At(value), PrefixedNumber(value, ExponentOf(std::fabs(value)) - exponent + 1)});
      continue;
    }
    const bool power = scientific && value != 0 && std::fabs(value) >= 1 / kLargest;
    ticks_.push_back({At(value), power        ? ScientificText(value, decimals)
                                 : scientific ? "0"
                                              : NumberText(value, decimals)});
  }
}

// Powers of ten, every one of them or every second, fifth, ...; with 2 and 5 between where the
// axis holds fewer than three, without labels where these would be too many.
void Scale::MakeLogarithmicTicks(int ticks) {
  const int first = static_cast<int>(std::floor(low_));
  const int last = static_cast<int>(std::floor(high_));
  int stride = 1;
  for (const int candidate : {1, 2, 5, 10, 20, 50, 100}) {
    stride = candidate;
    if ((last - first) / candidate <= 8) break;
  }
  const bool between = high_ - low_ < 3;
  const bool labels_between = 3 * (high_ - low_) <= ticks + 2;
  for (int exponent = first; exponent <= last; ++exponent) {
    for (const int digit : {1, 2, 5}) {
      if (digit > 1 && !between) continue;
      if (stride > 1 && exponent % stride != 0) continue;
      const double place = exponent + Log10(digit);
      if (place < low_ || place > high_) continue;
      const bool plain = exponent >= -4 && exponent < 6;
      const double power = PowerOfTen(std::clamp(exponent, -300, 300));
      const bool unlabelled = digit > 1 && !labels_between;
      ticks_.push_back({from_ + (to_ - from_) * ((place - low_) / (high_ - low_)),
                        unlabelled ? ""
                        : prefixes_ && exponent >= 3 && exponent < 15
                            ? PrefixedNumber(digit * power, 1)
                        : plain      ? NumberText(digit * power, std::max(0, -exponent))
                        : digit == 1 ? PowerText(exponent)
                                     : StrCat(digit, "\u00b7", PowerText(exponent))});
    }
  }
}

}  // namespace elastor
