#ifndef ELASTOR_LAUNCHER_TUNING_H_
#define ELASTOR_LAUNCHER_TUNING_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "configs/proto/sweep.pb.h"
#include "core/base/status.h"

namespace elastor {

// Values for the fields of a configuration, one each in the order of Tuning.field, and the rung
// that they are tried in, from 0.
struct Trial {
  std::vector<std::string> values;
  int rung = 0;
};

// What a trial has come to: nothing yet, a loss on the validation split (infinity: it diverged), or
// a failure that says nothing of its values.
struct TrialOutcome {
  enum class State { kOpen, kMeasured, kFailed } state = State::kOpen;
  double loss = 0;
};

// Where the tuning of a configuration stands.
struct TuningState {
  std::vector<Trial> trials;  // all that have been called for, in the order in which they were
  std::vector<std::string> chosen;    // Tuning.field's values; empty: open, or it failed
  double loss = 0;                    // of the chosen trial
  std::string warning;                // of what was chosen: it is at the edge of what was tried
  std::string failure;                // why nothing will be chosen
  std::vector<int64_t> most_to_come;  // by rung: trials beyond these, at most
};

// Fills in what a tuning leaves out, so that every field has its values, ascending. `learning_rate`
// is the base's. User error in one line.
Status CompleteTuning(double learning_rate, Tuning* tuning);

// Steps of a trial where a final run has `steps`.
int64_t StepsOfRung(const Tuning& tuning, int rung, int64_t steps);

// Successive halving (Jamieson and Talwalkar, AISTATS 2016) over the grid of a complete tuning, as
// far as the outcomes reach. Rung 0 has the whole grid; of every rung the best 1/eta go on, two at
// least while two have a loss, and the best of the last one is chosen. Where a rung's best has the
// smallest or the largest value that was tried of a field, the next value beyond is tried in that
// rung, too, up to Tuning.extensions times a field. Of equal losses the first counts: in rung 0 in
// the grid's order, later that of the rung before. Which trials there are depends on the outcomes
// alone.
//
// `outcome` is asked once for every trial. It says nothing of a trial that cannot be, which is left
// out where a grid is extended and an error in the grid.
StatusOr<TuningState> Tune(
    const Tuning& tuning, const std::function<StatusOr<TrialOutcome>(const Trial& trial)>& outcome);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_TUNING_H_
