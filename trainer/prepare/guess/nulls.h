#ifndef ELASTOR_TRAINER_PREPARE_GUESS_NULLS_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_NULLS_H_

#include <string>
#include <vector>

#include "trainer/prepare/guess/columns.h"

namespace elastor {

struct Nulls {
  std::vector<std::string> texts;   // Schema.null, sorted
  std::vector<std::string> doubts;  // by column: what may be wrong about its missing values
};

// Decides which texts mean missing, in all columns alike as a schema has them. NA or None may be a
// value, and stays one unless a column of numbers or times has it, or several columns have.
// REQUIRES: the columns have been read, and not summarised.
Nulls FindNulls(const std::vector<SampleColumn>& columns);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_NULLS_H_
