#ifndef ELASTOR_TRAINER_PREPARE_PROGRESS_LINE_H_
#define ELASTOR_TRAINER_PREPARE_PROGRESS_LINE_H_

#include <chrono>
#include <string>

#include "trainer/prepare/prepare_options.h"

namespace elastor {

// Shows how far a run is on stderr: on a terminal a bar in one line, rewritten five times a second;
// elsewhere a line every ten seconds. Not thread-safe.
class ProgressLine {
 public:
  ProgressLine();
  void Show(const PrepareProgress& progress);
  // Leaves the bar as it is, so that something else can be printed.
  void EndLine();

  // What is shown after `seconds` seconds in the phase, which was at `first_share` then.
  static std::string Text(const PrepareProgress& progress, double first_share, double seconds,
                          bool bar);

 private:
  using Clock = std::chrono::steady_clock;
  const bool terminal_;
  bool open_line_ = false;
  std::string phase_;
  double first_share_ = 0;
  Clock::time_point phase_begin_;
  Clock::time_point last_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_PROGRESS_LINE_H_
