#ifndef ELASTOR_TRAINER_RUN_KEPT_METRICS_H_
#define ELASTOR_TRAINER_RUN_KEPT_METRICS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace elastor {

// What a run that goes on after a checkpoint keeps of its metrics.jsonl.
struct KeptMetrics {
  std::string text;                 // the lines that are records of steps up to the checkpoint's
  std::vector<int64_t> no_records;  // numbers of other lines, from 1, but of a last one cut off
  bool reaches_checkpoint = false;  // the checkpoint's own record, or one of a later step
};
// Records are appended in order, that of a checkpoint after those of its step.
KeptMetrics KeepMetrics(const std::string& text, int64_t step);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_KEPT_METRICS_H_
