#ifndef ELASTOR_TRAINER_DATA_ARROW_NUMBER_FORMS_H_
#define ELASTOR_TRAINER_DATA_ARROW_NUMBER_FORMS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "trainer/data/arrow/text_table.h"

namespace elastor {

// What a value of a table gives in the place of its text (ColumnForm). `there`: it is not null.
// Where it needs its text, *within becomes false.

// The number that the text means; NaN: missing. No text has another NaN, or the sign of -0.
template <typename T>
double NumberOf(T value, bool there, bool* within) {
  constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
  const auto number = static_cast<double>(value);
  *within &= !there | !(std::abs(number) > std::numeric_limits<float>::max());
  return !there || std::isnan(number) ? kMissing : number == 0 ? 0 : number;
}

// The integer.
template <typename T>
int64_t IntegerOf(T value, bool there, bool* within) {
  const auto integer = static_cast<int64_t>(value);
  *within &= !there | (std::cmp_equal(integer, value) && integer != TextColumn::kNone);
  return there ? integer : TextColumn::kNone;
}

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_ARROW_NUMBER_FORMS_H_
