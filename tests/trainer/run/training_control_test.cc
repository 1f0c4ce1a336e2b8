#include "trainer/run/training_control.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace elastor {
namespace {

// Ten steps an epoch, the last one short.
constexpr TrainingControl::Epoch kEpoch = {.rows = 98, .batch_rows = 10};

struct Plan {
  OptimizerConfig optimizer;
  TrainingConfig training;
  Plan() {
    optimizer.set_learning_rate(0.5);
    training.set_epochs(4);
    training.mutable_schedule()->set_plateau_patience(1);
  }
  TrainingControl Start() const {
    return TrainingControl(optimizer, training, kEpoch, TrainingControl::NewRecord(training));
  }
};

std::vector<double> Rates(TrainingControl control, int steps) {
  std::vector<double> rates;
  for (int i = 0; i < steps; ++i) {
    rates.push_back(control.LearningRate());
    control.StepDone();
  }
  return rates;
}

TEST(ControlTest, AConstantRateByDefault) {
  for (const double rate : Rates(Plan().Start(), 40)) EXPECT_EQ(rate, 0.5);
}

TEST(ControlTest, WarmUpIsLinear) {
  Plan plan;
  plan.training.mutable_schedule()->set_warmup_steps(4);
  EXPECT_EQ(Rates(plan.Start(), 6), (std::vector<double>{0.125, 0.25, 0.375, 0.5, 0.5, 0.5}));
}

TEST(ControlTest, CosineFallsFromTheRateToItsFinalShare) {
  Plan plan;
  plan.training.mutable_schedule()->set_decay(ScheduleConfig::COSINE);
  plan.training.mutable_schedule()->set_final_share(0.1);
  const std::vector<double> rates = Rates(plan.Start(), 45);
  for (int i = 0; i < 45; ++i) {
    const double angle = M_PI * std::min(i, 40) / 40.0;
    EXPECT_NEAR(rates[i], 0.5 * (0.1 + 0.9 * 0.5 * (1 + std::cos(angle))), 1e-9) << i;
  }
  plan.training.mutable_schedule()->set_decay_steps(2);
  EXPECT_EQ(Rates(plan.Start(), 4)[0], 0.5);
  EXPECT_NEAR(Rates(plan.Start(), 4)[1], 0.5 * 0.55, 1e-9);
  EXPECT_EQ(Rates(plan.Start(), 4)[2], 0.05);
}

TEST(ControlTest, PositionsAndScheduledEvaluations) {
  Plan plan;
  plan.training.set_eval_every_steps(4);
  TrainingControl control = plan.Start();
  std::vector<int64_t> due;
  for (int i = 0; i < 20; ++i) {
    control.StepDone();
    if (control.EvaluationDue()) due.push_back(control.record().step());
  }
  EXPECT_EQ(due, (std::vector<int64_t>{4, 8, 10, 12, 16, 20}));
  EXPECT_EQ(control.record().epoch(), 2);
  EXPECT_EQ(control.record().position(), 0);
  control.StepDone();
  EXPECT_EQ(control.record().epoch(), 2);
  EXPECT_EQ(control.record().position(), 10);
  EXPECT_FALSE(control.finished());
  while (!control.finished()) control.StepDone();
  EXPECT_EQ(control.record().step(), 40);
}

// A signal may stop the run within it. Whoever goes on from the record makes it first.
TEST(ControlTest, AnEvaluationIsDueUntilItIsTold) {
  Plan plan;
  plan.training.set_eval_every_steps(1);
  TrainingControl control = plan.Start();
  EXPECT_FALSE(control.EvaluationDue());
  control.StepDone();
  control.SetSpectrumDue(true);
  TrainingControl resumed(plan.optimizer, plan.training, kEpoch, control.record());
  EXPECT_TRUE(resumed.EvaluationDue());
  EXPECT_TRUE(resumed.SpectrumDue());
  EXPECT_TRUE(resumed.Evaluated(0.7));
  EXPECT_FALSE(resumed.EvaluationDue());
  resumed.StepDone();
  resumed.Evaluated(std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(resumed.EvaluationDue());
}

// The published recipe: every evaluation without improvement lowers the rate by 10, the second in a
// row ends the run.
TEST(ControlTest, PlateauAndEarlyStop) {
  Plan plan;
  plan.training.mutable_schedule()->set_plateau_factor(0.1);
  plan.training.mutable_schedule()->set_min_learning_rate(0.02);
  plan.training.mutable_monitor()->set_min_improvement(1e-3);
  plan.training.mutable_monitor()->set_early_stop_patience(2);
  TrainingControl control = plan.Start();
  EXPECT_TRUE(control.Evaluated(0.7));
  EXPECT_EQ(control.LearningRate(), 0.5);
  EXPECT_FALSE(control.Evaluated(0.7005));  // better by less than the least improvement
  EXPECT_EQ(control.LearningRate(), 0.5 * 0.1);
  control.StepDone();
  EXPECT_TRUE(control.Evaluated(0.702));
  EXPECT_EQ(control.record().best_step(), 1);
  EXPECT_FALSE(control.Evaluated(0.6));
  EXPECT_EQ(control.LearningRate(), 0.02);  // not 0.005
  EXPECT_FALSE(control.finished());
  // An evaluation without the metric is none.
  EXPECT_FALSE(control.Evaluated(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(control.finished());
  EXPECT_FALSE(control.Evaluated(0.6));
  EXPECT_TRUE(control.finished());
  EXPECT_EQ(control.record().best_metric(), 0.702);
}

TEST(ControlTest, TheFloorNeverRaisesARateThatWasPlannedLower) {
  Plan plan;
  plan.training.mutable_schedule()->set_warmup_steps(1000);
  plan.training.mutable_schedule()->set_plateau_factor(0.1);
  plan.training.mutable_schedule()->set_min_learning_rate(0.4);
  TrainingControl control = plan.Start();
  control.Evaluated(0.7);
  control.Evaluated(0.6);
  EXPECT_EQ(control.LearningRate(), 0.5 * 0.001);
}

TEST(ControlTest, PatienceOfThePlateauRule) {
  Plan plan;
  plan.training.mutable_schedule()->set_plateau_factor(0.5);
  plan.training.mutable_schedule()->set_plateau_patience(2);
  TrainingControl control = plan.Start();
  control.Evaluated(0.7);
  std::vector<double> shares;
  for (int i = 0; i < 5; ++i) {
    control.Evaluated(0.6);
    shares.push_back(control.record().plateau_share());
  }
  EXPECT_EQ(shares, (std::vector<double>{1, 0.5, 0.5, 0.25, 0.25}));
}

TEST(ControlTest, LoglossImprovesDownwards) {
  Plan plan;
  plan.training.mutable_monitor()->set_metric(MonitorConfig::LOGLOSS);
  TrainingControl control = plan.Start();
  EXPECT_TRUE(control.Evaluated(0.5));
  EXPECT_TRUE(control.Evaluated(0.4));
  EXPECT_FALSE(control.Evaluated(0.45));
  EXPECT_FALSE(control.Evaluated(0.4));
}

TEST(ControlTest, ContinuesFromARecordAsIfItHadNeverStopped) {
  Plan plan;
  plan.training.mutable_schedule()->set_decay(ScheduleConfig::COSINE);
  plan.training.mutable_schedule()->set_plateau_factor(0.1);
  plan.training.mutable_monitor()->set_early_stop_patience(3);
  TrainingControl whole = plan.Start();
  TrainingControl pieces = plan.Start();
  for (int i = 0; i < 40; ++i) {
    pieces = TrainingControl(plan.optimizer, plan.training, kEpoch, pieces.record());
    EXPECT_EQ(whole.LearningRate(), pieces.LearningRate());
    whole.StepDone();
    pieces.StepDone();
    if (i % 5 == 4) {
      whole.Evaluated(0.7 - 0.01 * (i % 10));
      pieces.Evaluated(0.7 - 0.01 * (i % 10));
    }
    EXPECT_EQ(whole.record().SerializeAsString(), pieces.record().SerializeAsString());
    EXPECT_EQ(whole.finished(), pieces.finished());
  }
}

}  // namespace
}  // namespace elastor
