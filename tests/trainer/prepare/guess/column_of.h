// Columns of a sample from their values.

#ifndef ELASTOR_TESTS_TRAINER_PREPARE_GUESS_COLUMN_OF_H_
#define ELASTOR_TESTS_TRAINER_PREPARE_GUESS_COLUMN_OF_H_

#include <string>
#include <vector>

#include "trainer/prepare/guess/columns.h"

namespace elastor {

using Texts = std::vector<std::string>;

// A column of these values, of which none is null.
inline SampleColumn ColumnOf(const std::string& name, const Texts& values) {
  SampleColumn column;
  column.name = name;
  for (const std::string& value : values) column.Add(value);
  column.Summarise({});
  return column;
}

}  // namespace elastor

#endif  // ELASTOR_TESTS_TRAINER_PREPARE_GUESS_COLUMN_OF_H_
