#ifndef ELASTOR_TRAINER_RUN_PROGRESS_H_
#define ELASTOR_TRAINER_RUN_PROGRESS_H_

#include <cstdint>
#include <string>

namespace elastor {

// Progress of a run.
struct Progress {
  int64_t step = 0;
  int64_t first_step = 0;         // step at which this process began
  int64_t total_steps = 0;        // 0: unknown, then no time left
  int64_t epoch = 0, epochs = 0;  // counted from 0; 0: unknown
  double loss = 0;                // mean over the steps since progress was last shown
  double samples_per_s = 0;       // throughput since progress was last shown
  double elapsed_seconds = 0;     // time since this process began
};

// Returns "step 100/200  epoch 1/2  loss 0.4512  15.4k samples/s  1:05 elapsed  1:05 left".
std::string ProgressLine(const Progress& progress);
// Returns a bar, "[=====>    ]", followed by the line. The bar is as wide as `columns` allow, up to
// 30 cells. Without room for a bar, returns as much of the line as fits.
std::string ProgressBar(const Progress& progress, int columns);

// Decides when progress is shown. On a terminal it is shown five times a second. Elsewhere it is
// shown after one second, then whenever a tenth more time has gone by, but at least once a minute
// and at most once a second.
class ProgressClock {
 public:
  explicit ProgressClock(bool terminal) : terminal_(terminal) {}
  // Returns whether it is time to show progress, `elapsed_seconds` after the start. If so, progress
  // counts as shown.
  bool Due(double elapsed_seconds);

 private:
  const bool terminal_;
  double next_ = 1;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_PROGRESS_H_
