#include "trainer/prepare/rows/value_text.h"

#include <fast_float/fast_float.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "core/base/canonical_math.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/base/utf8.h"

namespace elastor {
namespace {

constexpr size_t kShownBytes = 40;
constexpr int64_t kDaySeconds = 86400;
// Seconds from 1970 to these years. Beyond them numbers are no seconds but, say, milliseconds.
constexpr int64_t kYear0 = -62167219200;
constexpr int64_t kYear10000 = 253402300800;

// Digits text[at, at + size) as a number; -1 when one is no digit.
int Digits(std::string_view text, size_t at, size_t size) {
  int value = 0;
  for (const char c : text.substr(at, size)) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

// floor(ln(x)^2)
double SquaredLog(double x) {
  const double log = CanonicalLog(x);
  return std::floor(log * log);
}

constexpr int kTabledCounts = 4096;

std::array<uint8_t, kTabledCounts> Log2Table() {
  std::array<uint8_t, kTabledCounts> table = {};
  for (int x = 3; x < kTabledCounts; ++x) table[x] = static_cast<uint8_t>(SquaredLog(x));
  return table;
}

bool FromCalendar(int year, int month, int day, int hour, int64_t* seconds) {
  if (year < 0 || month < 0 || day < 0 || hour < 0 || hour > 23) return false;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok()) return false;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  *seconds = days * kDaySeconds + hour * 3600;
  return true;
}

bool ParseDateAndTime(std::string_view text, int64_t* seconds) {
  constexpr size_t kDate = 10, kAll = 19;
  if (text.size() != kDate && text.size() != kAll) return false;
  if (text[4] != '-' || text[7] != '-') return false;
  int hour = 0, minute = 0, second = 0;
  if (text.size() == kAll) {
    if ((text[10] != ' ' && text[10] != 'T') || text[13] != ':' || text[16] != ':') return false;
    hour = Digits(text, 11, 2);
    minute = Digits(text, 14, 2);
    second = Digits(text, 17, 2);
  }
  if (minute < 0 || minute > 59 || second < 0 || second > 59) return false;
  if (!FromCalendar(Digits(text, 0, 4), Digits(text, 5, 2), Digits(text, 8, 2), hour, seconds)) {
    return false;
  }
  *seconds += minute * 60 + second;
  return true;
}

}  // namespace

// Short integers take the fast way.
bool ParseNumber(std::string_view text, double* value) {
  constexpr size_t kFastDigits = 15;
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const bool negative = !text.empty() && text[0] == '-';
  const std::string_view digits = text.substr(negative);
  if (!digits.empty() && digits.size() <= kFastDigits) {
    int64_t integer = 0;
    bool plain = true;
    for (const char c : digits) {
      plain &= c >= '0' && c <= '9';
      integer = integer * 10 + (c - '0');
    }
    if (plain) {
      *value = static_cast<double>(negative ? -integer : integer);
      return true;
    }
  }
  const auto [end, error] = fast_float::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() &&
         std::abs(*value) <= std::numeric_limits<float>::max();
}

bool ParseInteger(std::string_view text, int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseLabel(std::string_view text, float* label) {
  if (text == "0" || text == "1") {
    *label = static_cast<float>(text[0] - '0');
    return true;
  }
  double value;
  if (!ParseNumber(text, &value) || (value != 0 && value != 1 && value != -1)) return false;
  *label = value == 1 ? 1.0f : 0.0f;
  return true;
}

bool ParseTime(std::string_view text, Field::TimeFormat format, int64_t* seconds) {
  if (format == Field::UNIX_SECONDS) {
    return ParseInteger(text, seconds) && *seconds >= kYear0 && *seconds < kYear10000;
  }
  if (format == Field::YYYY_MM_DD_HH_MM_SS) return ParseDateAndTime(text, seconds);
  CHECK_EQ(format, Field::YYMMDDHH);
  const int year = Digits(text, 0, 2);
  return text.size() == 8 && year >= 0 &&
         FromCalendar(2000 + year, Digits(text, 2, 2), Digits(text, 4, 2), Digits(text, 6, 2),
                      seconds);
}

const char* TimeFormatText(Field::TimeFormat format) {
  if (format == Field::UNIX_SECONDS) return "seconds since 1970, of the years 0 to 9999";
  return format == Field::YYMMDDHH ? "YYMMDDHH" : "YYYY-MM-DD HH:MM:SS";
}

std::string TimeText(int64_t seconds) {
  const int64_t days = seconds / kDaySeconds - (seconds % kDaySeconds < 0);
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
  const int64_t of_day = seconds - days * kDaySeconds;
  return Format("%04d-%02u-%02u %02d:%02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(of_day / 3600), static_cast<int>(of_day / 60 % 60),
                static_cast<int>(of_day % 60));
}

int64_t HourOf(int64_t seconds) {
  return (seconds % kDaySeconds + kDaySeconds) % kDaySeconds / 3600;
}

int64_t WeekdayOf(int64_t seconds) {
  constexpr int64_t kThursday = 3;  // 1 January 1970
  const int64_t days = seconds / kDaySeconds - (seconds % kDaySeconds < 0);
  return (days % 7 + 7 + kThursday) % 7;
}

// Counts are mostly small: these come from a table.
double Log2Transform(double x) {
  static const std::array<uint8_t, kTabledCounts> kTable = Log2Table();
  if (!(x > 2)) return x;
  if (x < kTabledCounts && x == std::floor(x)) return kTable[static_cast<int>(x)];
  return SquaredLog(x);
}

std::string Shown(std::string_view text) {
  std::string shown = "'";
  for (size_t at = 0; at < text.size();) {
    if (at >= kShownBytes) return shown + "...'";
    const int bytes = Utf8Bytes(text.substr(at));
    const unsigned char byte = text[at];
    if (bytes == 0) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\x%02x", byte);
      shown += escape;
    } else {
      shown +=
          byte < 0x20 || byte == 0x7f ? "?" : WithoutControls(std::string(text.substr(at, bytes)));
    }
    at += std::max(bytes, 1);
  }
  return shown + "'";
}

bool MeansMissing(std::string_view text) {
  constexpr std::string_view kTexts[] = {"na",  "n/a", "nan", "null", "none",
                                         "nil", "\\n", "-",   "?"};
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  }
  return std::ranges::find(kTexts, lower) != std::end(kTexts);
}

}  // namespace elastor
