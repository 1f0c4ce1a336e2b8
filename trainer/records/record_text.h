#ifndef ELASTOR_TRAINER_RECORDS_RECORD_TEXT_H_
#define ELASTOR_TRAINER_RECORDS_RECORD_TEXT_H_

#include <string>

#include "trainer/records/run_records.h"

namespace elastor {

// Returns the summary for people: a few lines, each ended by a newline.
std::string ToText(const Summary& summary);
// Returns "step 100  validation  auc 0.7581  logloss 0.4811".
std::string ToText(const EvalRecord& record);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RECORDS_RECORD_TEXT_H_
