#ifndef ELASTOR_LAUNCHER_TUNING_H_
#define ELASTOR_LAUNCHER_TUNING_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "configs/proto/sweep.pb.h"
#include "core/base/status.h"
#include "trainer/records/run_records.h"

namespace elastor {

// A trial: one value for every field, in the order of Tuning.field, and the rung in which they are
// tried, from 0.
struct Trial {
  std::vector<std::string> values;
  int rung = 0;
};

// Outcome of a trial: none yet, a loss on the validation split (infinity: it diverged), or a
// failure that does not depend on its values.
struct TrialOutcome {
  enum class State { kOpen, kMeasured, kFailed } state = State::kOpen;
  double loss = 0;       // smaller is better: a metric such as AUC has its negative
  double minutes = 0;    // of its runs together
  std::string why = {};  // it failed; empty: as its attempts say
};

// What a trial is compared by.
struct TuningMetric {
  std::string name = "logloss";  // in files
  bool larger_is_better = false;
  std::optional<double> value = {};  // none: it was not measured

  // REQUIRES: a value.
  double loss() const { return larger_is_better ? -*value : *value; }
};
TuningMetric MetricOf(const Tuning& tuning, const Summary& trial);

// State of a configuration's tuning.
struct TuningState {
  std::vector<Trial> trials;  // all that have been called for, in the order in which they were
  std::vector<std::string> chosen;    // Tuning.field's values; empty: open, or it failed
  double loss = 0;                    // loss of the chosen trial
  std::string warning;                // of what was chosen: it is at the edge of what was tried
  std::string bound;                  // what the budget left out; empty: nothing
  std::string failure;                // why nothing will be chosen
  std::vector<int64_t> most_to_come;  // by rung: trials beyond these, at most
};

// Fills in the parts that a tuning leaves out, so that every field has its values, ascending.
// `learning_rate` is the base experiment's. User error in one line.
Status CompleteTuning(double learning_rate, Tuning* tuning);

// Returns the steps of a trial if a final run has `steps`.
int64_t StepsOfRung(const Tuning& tuning, int rung, int64_t steps);

// Runs successive halving (Jamieson and Talwalkar, AISTATS 2016) over the grid or the random
// combinations of a complete tuning, as far as the outcomes reach. Rung 0 has all of them. The best
// 1/eta of every rung go on, at least two while two have a loss, and the best trial of the last
// rung is chosen. If a rung's best trial has the smallest or the largest value tried for a field,
// the next value beyond is tried in that rung too, up to Tuning.extensions times per field and
// within the budget. A random search takes the fourth root of the field's range for the ratio of a
// step beyond. Among equal losses the first wins: in rung 0 in the grid's order, later in the order
// of the previous rung. Which trials there are depends on the outcomes alone.
//
// A budget of runs bounds the number of random combinations, so that all rungs fit. A budget of
// minutes does so by the mean of the combinations measured: at first two are tried, then at most
// twice as many at a time, and no rung begins when the budget is used up.
//
// `outcome` is called once for every trial. It returns nothing for an impossible trial. Such a
// trial is left out where a grid is extended, and is an error in the grid.
StatusOr<TuningState> Tune(
    const Tuning& tuning, const std::function<StatusOr<TrialOutcome>(const Trial& trial)>& outcome);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_TUNING_H_
