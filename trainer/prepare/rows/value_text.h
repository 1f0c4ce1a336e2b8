#ifndef ELASTOR_TRAINER_PREPARE_ROWS_VALUE_TEXT_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_VALUE_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace elastor {

// What the text of one column means. All of `text` must be the value: no spaces around it. On
// false, the result is unspecified.

// A finite number that a float can hold.
bool ParseNumber(std::string_view text, double* value);
bool ParseInteger(std::string_view text, int64_t* value);

// Keys of tables whose rows come and go. An empty text, a missing value, has key 0.

// XXH3-64 of the text; 1 where that is 0.
uint64_t HashedKey(std::string_view text);
// An integer from -2^63 to 2^64 - 1; a negative one becomes its two's complement.
bool ParseKey(std::string_view text, uint64_t* key);

// 1 for 1; 0 for 0 and -1.
bool ParseLabel(std::string_view text, float* label);

// x > 2: floor(ln(x)^2), else x.
double Log2Transform(double x);
// The same for `count` numbers.
void Log2Transform(const double* from, int64_t count, double* to);

// Whether `text` is what other programs write for a missing value: NA, NULL, nan, \N, ...
bool MeansMissing(std::string_view text);

// `text` in quotes, cut to a few characters; bytes that are none as \xff, control characters as ?.
std::string Shown(std::string_view text);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_VALUE_TEXT_H_
