#ifndef ELASTOR_TRAINER_PREPARE_VALUES_DATA_WARNINGS_H_
#define ELASTOR_TRAINER_PREPARE_VALUES_DATA_WARNINGS_H_

#include <string>
#include <vector>

#include "trainer/prepare/plan.h"
#include "trainer/prepare/values/measure.h"
#include "trainer/prepare/values/rank_values.h"

namespace elastor {

// Returns a line for each thing that the program can use but nobody is likely to mean: a label of
// one value, a field of which nothing is left, weights of 0, training rows from the future.
std::vector<std::string> DataWarnings(const PreparePlan& plan, const TextPassResult& text,
                                      const Measures& measures, const RankedValues& ranked);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_VALUES_DATA_WARNINGS_H_
