#include "trainer/run/training_control.h"

#include <algorithm>
#include <cmath>

#include "core/base/canonical_math.h"
#include "core/base/log.h"

namespace elastor {
namespace {

// Share of the rate that is left at `step` of a cosine decay over `steps`.
double CosineShare(int64_t step, int64_t steps, double final_share) {
  if (step >= steps) return final_share;
  constexpr double kHalfTurn = 0x1p31;  // of 2^32 to a turn
  const double turns = kHalfTurn * (static_cast<double>(step) / static_cast<double>(steps));
  const double cosine = CanonicalSinCos(static_cast<uint32_t>(turns)).cos;
  return final_share + (1 - final_share) * 0.5 * (1 + cosine);
}

}  // namespace

TrainingControl::TrainingControl(const OptimizerConfig& optimizer, const TrainingConfig& training,
                                 const Epoch& epoch, const ControlRecord& record)
    : optimizer_(optimizer), training_(training), epoch_(epoch), record_(record) {
  CHECK_GT(record.plateau_share(), 0);
}

ControlRecord TrainingControl::NewRecord(const TrainingConfig& training) {
  ControlRecord record;
  record.set_seed(training.seed());
  record.set_plateau_share(1);
  return record;
}

double TrainingControl::LearningRate() const {
  const ScheduleConfig& schedule = training_.schedule();
  const int64_t step = record_.step() + 1;
  double planned = optimizer_.learning_rate();
  if (step < schedule.warmup_steps()) {
    planned *= static_cast<double>(step) / static_cast<double>(schedule.warmup_steps());
  }
  if (schedule.decay() == ScheduleConfig::COSINE) {
    const int64_t steps = schedule.decay_steps() > 0 ? schedule.decay_steps() : total_steps();
    planned *= CosineShare(step - 1, steps, schedule.final_share());
  }
  if (record_.plateau_share() == 1) return planned;
  return std::max(planned * record_.plateau_share(),
                  std::min(planned, schedule.min_learning_rate()));
}

void TrainingControl::StepDone(int64_t event_time) {
  record_.set_event_time(event_time);
  record_.set_learning_rate(LearningRate());
  record_.set_step(record_.step() + 1);
  record_.set_epoch(record_.step() / epoch_.steps());
  record_.set_position(record_.step() % epoch_.steps() * epoch_.batch_rows);
  const int64_t every = training_.eval_every_steps();
  record_.set_evaluation_pending(record_.position() == 0 ||
                                 (every > 0 && record_.step() % every == 0));
}

bool TrainingControl::Improves(double value) const {
  if (!record_.has_best()) return true;
  const MonitorConfig& monitor = training_.monitor();
  const double gain = monitor.metric() == MonitorConfig::LOGLOSS ? record_.best_metric() - value
                                                                 : value - record_.best_metric();
  return gain > 0 && gain >= monitor.min_improvement();
}

bool TrainingControl::Evaluated(double value) {
  record_.set_evaluation_pending(false);
  if (std::isnan(value)) return false;
  if (Improves(value)) {
    record_.set_has_best(true);
    record_.set_best_metric(value);
    record_.set_best_step(record_.step());
    record_.set_evaluations_without_improvement(0);
    record_.set_evaluations_since_plateau(0);
    return true;
  }
  const ScheduleConfig& schedule = training_.schedule();
  record_.set_evaluations_without_improvement(record_.evaluations_without_improvement() + 1);
  record_.set_evaluations_since_plateau(record_.evaluations_since_plateau() + 1);
  if (schedule.plateau_factor() > 0 &&
      record_.evaluations_since_plateau() >= schedule.plateau_patience()) {
    record_.set_plateau_share(record_.plateau_share() * schedule.plateau_factor());
    record_.set_evaluations_since_plateau(0);
  }
  const int64_t patience = training_.monitor().early_stop_patience();
  if (patience > 0 && record_.evaluations_without_improvement() >= patience) {
    record_.set_stopped_early(true);
  }
  return false;
}

}  // namespace elastor
