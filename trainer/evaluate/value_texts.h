#ifndef ELASTOR_TRAINER_EVALUATE_VALUE_TEXTS_H_
#define ELASTOR_TRAINER_EVALUATE_VALUE_TEXTS_H_

#include <cstdint>
#include <map>
#include <string>

#include "core/base/status.h"
#include "trainer/data/dataset.h"

namespace elastor {

// Fills in the texts of the ids that are the keys of *texts. `field` is the index of their
// categorical field. The texts come from the field's vocabulary in the prepared set at `path`, if
// it has one, with a tab, line feed, carriage return or backslash as \t, \n, \r or \\. Other
// entries, such as id 0 (missing or rare), stay as they are. Of a keyed field the texts are the
// keys as unsigned numbers. Reads the file up to the largest id. Machine error when it cannot be
// read.
Status FindValueTexts(const std::string& path, const DatasetInfo& data, int64_t field,
                      std::map<int64_t, std::string>* texts);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_VALUE_TEXTS_H_
