#ifndef ELASTOR_TRAINER_PREPARE_GUESS_VALUE_KINDS_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_VALUE_KINDS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace elastor {

// Kinds of texts that people read at once and that no schema reads.

// Whether `text` is a number as people write it, which ParseNumber refuses: 12,50, 1,234.50, 12%,
// $3.20, (7.5), a number between blanks or single quotes, inf.
bool IsWrittenNumber(std::string_view text);

// Returns a number with the text around it, the number replaced by 0: "0kg" of 23.2 kg, "~0" of
// ~50. Empty: there is no such text, or it is long, or there is more than one number.
std::string UnitOf(std::string_view text);

// Whether `text` is a time in a form other than YYYY-MM-DD HH:MM:SS: 21.10.2014, 10/21/14 5:00 PM,
// 2014-10-21T05:00Z, 21 Oct 2014.
bool IsWrittenTime(std::string_view text);

// Whether `text` is pairs index:value as libsvm writes them, behind a label or not: 3:0.5, 7:nan.
bool HoldsPairs(std::string_view text);

// Returns `text` with 0 in the place of each run of digits of any script: "0-0" of 2014-334.
std::string FormOf(std::string_view text);

// Whether a form is that of names, which end in a number (u17, item_17, v1.2) or have none.
bool IsFormOfName(std::string_view form);

// Whether `text` is what programs write for a missing value: what MeansMissing says, and more.
bool LooksMissing(std::string_view text);

// Whether a text that LooksMissing is as often a value: NA is Namibia, None a kind of weather.
bool MayBeValue(std::string_view text);

// Whether the digits of an integer are a date YYMMDD.
bool IsShortDate(std::string_view digits);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_VALUE_KINDS_H_
