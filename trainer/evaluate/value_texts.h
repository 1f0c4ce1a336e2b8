#ifndef ELASTOR_TRAINER_EVALUATE_VALUE_TEXTS_H_
#define ELASTOR_TRAINER_EVALUATE_VALUE_TEXTS_H_

#include <cstdint>
#include <map>
#include <string>

#include "core/base/status.h"
#include "trainer/data/dataset.h"

namespace elastor {

// Puts the texts of ids of a categorical field (its place) in the keys of *texts, where the
// prepared set at `path` has a vocabulary of the field: as they stand there, a tab, line feed,
// carriage return or backslash as \t, \n, \r or \\. Others, id 0 (missing or rare) among them, stay
// as they are. Reads the file up to the largest id. Machine error when it cannot be read.
Status FindValueTexts(const std::string& path, const DatasetInfo& data, int64_t field,
                      std::map<int64_t, std::string>* texts);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_VALUE_TEXTS_H_
