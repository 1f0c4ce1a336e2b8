#ifndef ELASTOR_TRAINER_RUN_PROGRESS_H_
#define ELASTOR_TRAINER_RUN_PROGRESS_H_

#include <cstdint>
#include <string>

#include "trainer/run/run_records.h"

namespace elastor {

// How far a run is. elapsed_seconds: for the steps done by this process, `steps_done` of them, from
// which the time left is told.
struct ProgressState {
  int64_t total_steps = 0;  // 0: unknown, then neither bar nor time left
  int64_t steps_done = 0;
  double elapsed_seconds = 0;
};

// "[=====>    ]  50%  loss 0.4512  1234 samples/s  1 min 05 s left"
std::string ProgressBar(const TrainRecord& record, const ProgressState& state);
// "step 100/200  epoch 1  loss 0.4512  1234 samples/s  1 min 05 s left"
std::string ProgressLine(const TrainRecord& record, const ProgressState& state);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_PROGRESS_H_
