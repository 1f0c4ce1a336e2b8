#ifndef ELASTOR_TRAINER_PREPARE_ROWS_TIME_TEXT_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_TIME_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "configs/proto/schema.pb.h"

namespace elastor {

// Times as columns write them. They are seconds since 1970 in UTC; parts of a second are left out,
// downwards.

// Reads all of `text` as a time. On false, the result is unspecified. Unix times lie in the years 0
// to 9999, those in parts of a second not where they are likely in a coarser unit.
bool ParseTime(std::string_view text, Field::TimeFormat format, int64_t* seconds);

// What a text of the format looks like: "YYMMDDHH", ...
const char* TimeFormatText(Field::TimeFormat format);

// Whether a time lies in years that data of users have: 1990 to 2039, and for dates with
// punctuation 1900 to 2099, as births do. Numbers of other years are more often no times.
bool IsLikelyTime(std::string_view text, Field::TimeFormat format);

// Returns which other format likely reads a text that `format` does not, and as which time:
// "; time_format: UNIX_MILLISECONDS reads it as 2017-07-14 02:40:00". Empty: none does.
std::string OtherTimeFormat(std::string_view text, Field::TimeFormat format);

std::string TimeText(int64_t seconds);  // "2014-10-21 05:00:00"; of the years 0 to 9999
int64_t HourOf(int64_t seconds);        // 0..23
int64_t WeekdayOf(int64_t seconds);     // 0 = Monday .. 6
int64_t DayOf(int64_t seconds);         // of the month, 1..31
int64_t MonthOf(int64_t seconds);       // 1..12
// Whole years, by the calendar, and days of 86,400 s from one time to another; rounded down.
int64_t YearsBetween(int64_t from, int64_t to);
int64_t DaysBetween(int64_t from, int64_t to);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_TIME_TEXT_H_
