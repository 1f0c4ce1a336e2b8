#ifndef ELASTOR_TRAINER_RUN_PROGRESS_H_
#define ELASTOR_TRAINER_RUN_PROGRESS_H_

#include <cstdint>
#include <string>

namespace elastor {

// How far a run is.
struct Progress {
  int64_t step = 0;
  int64_t first_step = 0;         // where this process began
  int64_t total_steps = 0;        // 0: unknown, then no time left
  int64_t epoch = 0, epochs = 0;  // counted from 0; 0: unknown
  double loss = 0;                // mean of the steps since what was shown last
  double samples_per_s = 0;       // since then, too
  double elapsed_seconds = 0;     // of this process
};

// "step 100/200  epoch 1/2  loss 0.4512  15.4k samples/s  1:05 elapsed  1:05 left"
std::string ProgressLine(const Progress& progress);
// The same before a bar, "[=====>    ]", that fills what is left of `columns`; as much of it as
// fits in them.
std::string ProgressBar(const Progress& progress, int columns);

// When progress is shown. On a terminal five times a second; elsewhere after one second, then
// whenever a tenth more time has gone by, but once a minute at least and once a second at most.
class ProgressClock {
 public:
  explicit ProgressClock(bool terminal) : terminal_(terminal) {}
  // Whether it is time, `elapsed_seconds` after the start; it then counts as shown.
  bool Due(double elapsed_seconds);

 private:
  const bool terminal_;
  double next_ = 1;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_PROGRESS_H_
