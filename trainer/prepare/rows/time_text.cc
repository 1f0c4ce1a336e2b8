#include "trainer/prepare/rows/time_text.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <system_error>

#include "core/base/text.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

constexpr int64_t kDaySeconds = 86400;
// Seconds from 1970 to these years.
constexpr int64_t kYear0 = -62167219200, kYear1900 = -2208988800, kYear1990 = 631152000,
                  kYear2000 = 946684800, kYear2040 = 2208988800, kYear2100 = 4102444800,
                  kYear10000 = 253402300800;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes one part after another from the front of a text.
class TimeReader {
 public:
  explicit TimeReader(std::string_view text) : text_(text) {}

  bool done() const { return text_.empty(); }
  size_t left() const { return text_.size(); }
  bool StartsWith(char c) const { return text_.starts_with(c); }
  bool Take(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool TakeAny(std::string_view characters, char* c) {
    if (text_.empty() || characters.find(text_[0]) == characters.npos) return false;
    *c = text_[0];
    text_.remove_prefix(1);
    return true;
  }
  // Takes the digits that follow, at most `most`; false: they are fewer than `least`.
  bool TakeDigits(size_t least, size_t most, int* value) {
    size_t count = 0;
    *value = 0;
    while (count < most && count < text_.size() && IsDigit(text_[count])) {
      *value = *value * 10 + (text_[count++] - '0');
    }
    text_.remove_prefix(count);
    return count >= least;
  }
  // Takes a word without regard to case.
  bool TakeWord(std::string_view lower) {
    if (LowerCase(std::string(text_.substr(0, lower.size()))) != lower) return false;
    text_.remove_prefix(lower.size());
    return true;
  }
  // Takes a fraction of a second, if there is one; false: it has no digits.
  bool TakeFraction() {
    char point;
    if (!TakeAny(".,", &point)) return true;
    const size_t digits = std::min(text_.find_first_not_of("0123456789"), text_.size());
    text_.remove_prefix(digits);
    return digits > 0;
  }

 private:
  std::string_view text_;
};

bool FromCalendar(int year, int month, int day, int64_t* seconds) {
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok()) return false;
  *seconds = std::chrono::sys_days(date).time_since_epoch().count() * kDaySeconds;
  return true;
}

std::chrono::year_month_day DateOf(int64_t seconds) {
  const int64_t days = seconds / kDaySeconds - (seconds % kDaySeconds < 0);
  return std::chrono::year_month_day(std::chrono::sys_days(std::chrono::days(days)));
}

// Adds HH:MM[:SS[.fraction]], the hour with two digits or at least `hour_digits`.
bool AddTimeOfDay(TimeReader* text, size_t hour_digits, bool half_day, int64_t* seconds) {
  int hour, minute, second = 0;
  if (!text->TakeDigits(hour_digits, 2, &hour) || !text->Take(':')) return false;
  if (!text->TakeDigits(2, 2, &minute)) return false;
  if (text->Take(':') && (!text->TakeDigits(2, 2, &second) || !text->TakeFraction())) return false;
  if (half_day && !text->done()) {
    text->Take(' ');
    const bool after_noon = text->TakeWord("pm");
    if ((!after_noon && !text->TakeWord("am")) || hour < 1 || hour > 12) return false;
    hour = hour % 12 + (after_noon ? 12 : 0);
  }
  *seconds += hour * 3600 + minute * 60 + second;
  return hour < 24 && minute < 60 && second < 60;
}

// YYYY-MM-DD
bool TakeDate(TimeReader* text, int64_t* seconds) {
  int year, month, day;
  return text->TakeDigits(4, 4, &year) && text->Take('-') && text->TakeDigits(2, 2, &month) &&
         text->Take('-') && text->TakeDigits(2, 2, &day) && FromCalendar(year, month, day, seconds);
}

bool ParseDateAndTime(std::string_view text, int64_t* seconds) {
  TimeReader reader(text);
  char between;
  if (!TakeDate(&reader, seconds)) return false;
  if (reader.done()) return true;
  return reader.TakeAny(" T", &between) && AddTimeOfDay(&reader, 2, false, seconds) &&
         reader.done();
}

// Z, UTC, +02:00, +0200 or +02, behind a blank or not.
bool AddZone(TimeReader* text, int64_t* seconds) {
  text->Take(' ');
  if (text->TakeWord("z") || text->TakeWord("utc") || text->TakeWord("gmt")) return true;
  char sign;
  int hour, minute = 0;
  if (!text->TakeAny("+-", &sign) || !text->TakeDigits(2, 2, &hour)) return false;
  if ((text->Take(':') || !text->done()) && !text->TakeDigits(2, 2, &minute)) return false;
  const int64_t offset = hour * 3600 + minute * 60;
  *seconds -= sign == '+' ? offset : -offset;
  return hour < 24 && minute < 60;
}

bool ParseWithZone(std::string_view text, int64_t* seconds) {
  TimeReader reader(text);
  char between;
  if (!TakeDate(&reader, seconds)) return false;
  if (reader.done()) return true;
  return reader.TakeAny(" Tt", &between) && AddTimeOfDay(&reader, 2, false, seconds) &&
         AddZone(&reader, seconds) && reader.done();
}

// YYYYMMDD, and as much of HHMMSS as there is.
bool ParseDigits(std::string_view text, int64_t* seconds) {
  TimeReader reader(text);
  int year, month, day;
  if (!reader.TakeDigits(4, 4, &year) || !reader.TakeDigits(2, 2, &month) ||
      !reader.TakeDigits(2, 2, &day) || !FromCalendar(year, month, day, seconds)) {
    return false;
  }
  int parts[3] = {0, 0, 0};
  for (int& part : parts) {
    if (!reader.done() && !reader.TakeDigits(2, 2, &part)) return false;
  }
  *seconds += parts[0] * 3600 + parts[1] * 60 + parts[2];
  return reader.done() && parts[0] < 24 && parts[1] < 60 && parts[2] < 60;
}

// The year that two digits stand for, as POSIX has it.
int YearOfTwoDigits(int digits) {
  constexpr int kLast2000 = 68;
  return digits + (digits <= kLast2000 ? 2000 : 1900);
}

// Dates as people write them, with a time of day or without: 10/21/2014, 21.10.14, 2014/10/21. The
// order of their numbers, as 'Y', 'M' and 'D'.
bool ParseWrittenDate(std::string_view text, std::string_view order, int64_t* seconds) {
  TimeReader reader(text);
  int year = 0, month = 0, day = 0;
  size_t year_digits = 0;
  char between = 0;
  for (const char part : order) {
    const bool first = part == order[0];
    if (!first && (between == 0 ? !reader.TakeAny("/.-", &between) : !reader.Take(between))) {
      return false;
    }
    const size_t left = reader.left();
    const bool taken = part == 'Y' ? reader.TakeDigits(first ? 4 : 2, 4, &year)
                                   : reader.TakeDigits(1, 2, part == 'M' ? &month : &day);
    if (!taken) return false;
    if (part == 'Y') year_digits = left - reader.left();
  }
  if (year_digits == 2) year = YearOfTwoDigits(year);
  if (year < 1000) return false;
  if (!FromCalendar(year, month, day, seconds)) return false;
  if (reader.done()) return true;
  reader.Take(',');
  return reader.Take(' ') && AddTimeOfDay(&reader, 1, true, seconds) && reader.done();
}

// YYMMDDHH
bool ParseShortDigits(std::string_view text, int64_t* seconds) {
  TimeReader reader(text);
  int year, month, day, hour;
  if (!reader.TakeDigits(2, 2, &year) || !reader.TakeDigits(2, 2, &month) ||
      !reader.TakeDigits(2, 2, &day) || !reader.TakeDigits(2, 2, &hour) || !reader.done() ||
      hour > 23 || !FromCalendar(YearOfTwoDigits(year), month, day, seconds)) {
    return false;
  }
  *seconds += hour * 3600;
  return true;
}

// Units of a second; 0: the format is no number.
int64_t UnitsOf(Field::TimeFormat format) {
  switch (format) {
    case Field::UNIX_SECONDS:
      return 1;
    case Field::UNIX_MILLISECONDS:
      return 1'000;
    case Field::UNIX_MICROSECONDS:
      return 1'000'000;
    case Field::UNIX_NANOSECONDS:
      return 1'000'000'000;
    default:
      return 0;
  }
}

bool IsRecent(int64_t seconds) { return seconds >= kYear1990 && seconds < kYear2040; }

// An integer, or one with a fraction.
bool ParseUnix(std::string_view text, int64_t units, int64_t* seconds) {
  int64_t number;
  const size_t point = std::min(text.find('.'), text.size());
  const std::string_view fraction = text.substr(std::min(point + 1, text.size()));
  if (!ParseInteger(text.substr(0, point), &number)) return false;
  if (point < text.size() && (fraction.empty() || !std::ranges::all_of(fraction, IsDigit))) {
    return false;
  }
  const bool below = text[0] == '-' && fraction.find_first_not_of('0') != fraction.npos;
  for (int64_t coarser = units / 1000; coarser > 0; coarser /= 1000) {
    if (IsRecent(number / coarser)) return false;
  }
  *seconds = number / units - (number % units < 0 || (below && number % units == 0));
  return *seconds >= kYear0 && *seconds < kYear10000;
}

}  // namespace

bool ParseTime(std::string_view text, Field::TimeFormat format, int64_t* seconds) {
  switch (format) {
    case Field::YYMMDDHH:
      return ParseShortDigits(text, seconds);
    case Field::YYYY_MM_DD_HH_MM_SS:
      return ParseDateAndTime(text, seconds);
    case Field::ISO_8601:
      return ParseWithZone(text, seconds);
    case Field::YYYYMMDDHHMMSS:
      return ParseDigits(text, seconds);
    case Field::MM_DD_YYYY:
      return ParseWrittenDate(text, "MDY", seconds);
    case Field::DD_MM_YYYY:
      return ParseWrittenDate(text, "DMY", seconds);
    case Field::YYYY_MM_DD:
      return ParseWrittenDate(text, "YMD", seconds);
    default:
      return ParseUnix(text, UnitsOf(format), seconds);
  }
}

const char* TimeFormatText(Field::TimeFormat format) {
  switch (format) {
    case Field::YYMMDDHH:
      return "YYMMDDHH";
    case Field::YYYY_MM_DD_HH_MM_SS:
      return "YYYY-MM-DD HH:MM:SS";
    case Field::ISO_8601:
      return "YYYY-MM-DDTHH:MM:SS with a zone such as Z or +02:00";
    case Field::YYYYMMDDHHMMSS:
      return "YYYYMMDD, with HH, MM, SS or without";
    case Field::MM_DD_YYYY:
      return "MM/DD/YYYY, with HH:MM:SS or without";
    case Field::DD_MM_YYYY:
      return "DD.MM.YYYY, with HH:MM:SS or without";
    case Field::YYYY_MM_DD:
      return "YYYY/MM/DD, with HH:MM:SS or without";
    case Field::UNIX_MILLISECONDS:
      return "milliseconds since 1970";
    case Field::UNIX_MICROSECONDS:
      return "microseconds since 1970";
    case Field::UNIX_NANOSECONDS:
      return "nanoseconds since 1970";
    default:
      return "seconds since 1970, of the years 0 to 9999";
  }
}

bool IsLikelyTime(std::string_view text, Field::TimeFormat format) {
  int64_t seconds;
  if (!ParseTime(text, format, &seconds)) return false;
  if (UnitsOf(format) > 0) return IsRecent(seconds);
  if (format == Field::YYMMDDHH) return seconds >= kYear2000 && seconds < kYear2040;
  return seconds >= kYear1900 && seconds < kYear2100;
}

std::string OtherTimeFormat(std::string_view text, Field::TimeFormat format) {
  for (int i = 0; i < Field::TimeFormat_ARRAYSIZE; ++i) {
    const auto other = static_cast<Field::TimeFormat>(i);
    int64_t seconds;
    if (other == format || !IsLikelyTime(text, other)) continue;
    ParseTime(text, other, &seconds);
    return StrCat("; time_format: ", Field::TimeFormat_Name(other), " reads it as ",
                  TimeText(seconds));
  }
  return "";
}

std::string TimeText(int64_t seconds) {
  const std::chrono::year_month_day date = DateOf(seconds);
  const int64_t of_day = (seconds % kDaySeconds + kDaySeconds) % kDaySeconds;
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

int64_t DayOf(int64_t seconds) { return static_cast<unsigned>(DateOf(seconds).day()); }

int64_t MonthOf(int64_t seconds) { return static_cast<unsigned>(DateOf(seconds).month()); }

int64_t YearsBetween(int64_t from, int64_t to) {
  const auto year_of = [](int64_t seconds) { return static_cast<int>(DateOf(seconds).year()); };
  const auto in_year = [](int64_t seconds) {
    const int64_t of_day = (seconds % kDaySeconds + kDaySeconds) % kDaySeconds;
    return (MonthOf(seconds) * 32 + DayOf(seconds)) * kDaySeconds + of_day;
  };
  return year_of(to) - year_of(from) - (in_year(to) < in_year(from));
}

int64_t DaysBetween(int64_t from, int64_t to) {
  const int64_t seconds = to - from;
  return seconds / kDaySeconds - (seconds % kDaySeconds < 0);
}

}  // namespace elastor
