#ifndef ELASTOR_TRAINER_RECORDS_KEPT_METRICS_H_
#define ELASTOR_TRAINER_RECORDS_KEPT_METRICS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace elastor {

// The part of its metrics.jsonl that a resumed run keeps, and the numbers (from 1) of lines that
// are no records. A last line that was cut off is not among these.
struct KeptMetrics {
  std::string text;                 // the lines with records of steps up to the checkpoint's
  std::vector<int64_t> no_records;  // numbers of lines that are no records
  bool reaches_checkpoint = false;  // the text has the checkpoint's own record or a later step's
};
// Selects the records up to the checkpoint at `step` from the text of metrics.jsonl. Relies on
// their order: a checkpoint's record follows the other records of its step. Records of earlier
// steps behind it were measured at the end, with the best weights put back; a run that goes on has
// none of them.
KeptMetrics KeepMetrics(const std::string& text, int64_t step);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RECORDS_KEPT_METRICS_H_
