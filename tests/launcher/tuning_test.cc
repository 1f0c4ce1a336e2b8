#include "launcher/tuning.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "launcher/make_plan.h"
#include "launcher/plan.h"
#include "launcher/plan_file.h"
#include "launcher/sweep_file.h"
#include "trainer/data/dataset.h"
#include "trainer/data/dataset_writer.h"

namespace elastor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kDiverged = std::numeric_limits<double>::infinity();

Tuning Complete(Tuning tuning) {
  const Status status = CompleteTuning(/*learning_rate=*/1e-3, &tuning);
  EXPECT_TRUE(status.ok()) << status.message();
  return tuning;
}

Tuning Of(const std::vector<std::string>& values, int extensions = 0) {
  Tuning tuning;
  TunedField* field = tuning.add_field();
  for (const std::string& value : values) field->add_values(value);
  tuning.set_extensions(extensions);
  return Complete(tuning);
}

// "0.001@0" of every trial.
std::vector<std::string> Names(const TuningState& state) {
  std::vector<std::string> names;
  for (const Trial& trial : state.trials) {
    std::string name;
    for (const std::string& value : trial.values) name += (name.empty() ? "" : ",") + value;
    names.push_back(name + "@" + std::to_string(trial.rung));
  }
  return names;
}

using Losses = std::function<double(double value, int rung)>;

TuningState Tuned(const Tuning& tuning, const Losses& losses, size_t measured = 1000) {
  size_t asked = 0;
  const StatusOr<TuningState> state =
      Tune(tuning, [&](const Trial& trial) -> StatusOr<TrialOutcome> {
        if (asked++ >= measured) return TrialOutcome();
        return TrialOutcome{TrialOutcome::State::kMeasured,
                            losses(std::stod(trial.values[0]), trial.rung)};
      });
  EXPECT_TRUE(state.ok()) << state.status().message();
  return *state;
}

// |log(value / best)|, so that the best value can be anywhere.
Losses Around(double best) {
  return [best](double value, int) { return 1 + std::abs(std::log(value / best)); };
}

TEST(TuneTest, TheDefaultIsTheLearningRateAroundTheBases) {
  const Tuning tuning = Complete(Tuning());
  ASSERT_EQ(tuning.field_size(), 1);
  EXPECT_EQ(tuning.field(0).field(), "optimizer.learning_rate");
  EXPECT_THAT(tuning.field(0).values(),
              ElementsAre("0.00025", "0.0005", "0.001", "0.002", "0.004"));
  EXPECT_THAT(tuning.seeds(), ElementsAre(0));
  EXPECT_EQ(StepsOfRung(tuning, 0, 100), 11);
  EXPECT_EQ(StepsOfRung(tuning, 1, 100), 33);
  EXPECT_EQ(StepsOfRung(tuning, 2, 100), 100);
}

TEST(TuneTest, EveryRungKeepsTheBest) {
  const Tuning tuning = Of({"7", "1", "2", "3", "4", "5", "6"});
  const TuningState state = Tuned(tuning, Around(3));
  EXPECT_THAT(Names(state), ElementsAre("1@0", "2@0", "3@0", "4@0", "5@0", "6@0", "7@0", "3@1",
                                        "4@1", "2@1", "3@2", "4@2"));
  EXPECT_THAT(state.chosen, ElementsAre("3"));
  EXPECT_EQ(state.loss, 1);
  EXPECT_THAT(state.warning, IsEmpty());
  // A later rung has the last word.
  const Losses changing = [](double value, int rung) { return rung < 2 ? value : -value; };
  EXPECT_THAT(Tuned(tuning, changing).chosen, ElementsAre("2"));
  // Of equal losses the first.
  const TuningState ties = Tuned(tuning, [](double, int) { return 1.0; });
  EXPECT_THAT(ties.chosen, ElementsAre("1"));
  EXPECT_THAT(ties.warning, HasSubstr("optimizer.learning_rate=1 is the smallest value"));
}

TEST(TuneTest, AnEdgeIsMovedButNotForEver) {
  const Tuning tuning = Of({"1", "2", "4"}, /*extensions=*/2);
  const TuningState above = Tuned(tuning, Around(9));
  EXPECT_THAT(Names(above),
              ElementsAre("1@0", "2@0", "4@0", "8@0", "16@0", "8@1", "16@1", "8@2", "16@2"));
  EXPECT_THAT(above.chosen, ElementsAre("8"));
  EXPECT_THAT(above.warning, IsEmpty());
  const TuningState below = Tuned(tuning, Around(1e-3));
  EXPECT_THAT(below.chosen, ElementsAre("0.25"));
  EXPECT_EQ(below.warning, "optimizer.learning_rate=0.25 is the smallest value that was tried");
  // The optimum may reach the edge in a late rung only.
  const TuningState late = Tuned(
      tuning, [](double value, int rung) { return Around(rung == 2 ? 0.1 : 1.9)(value, rung); });
  EXPECT_THAT(late.chosen, ElementsAre("0.25"));
  // What cannot be is not tried.
  const StatusOr<TuningState> refused =
      Tune(tuning, [](const Trial& trial) -> StatusOr<TrialOutcome> {
        const double value = std::stod(trial.values[0]);
        if (value > 4) return UserError("too large");
        return TrialOutcome{TrialOutcome::State::kMeasured, -value};
      });
  ASSERT_TRUE(refused.ok());
  EXPECT_THAT(refused->chosen, ElementsAre("4"));
  EXPECT_THAT(refused->warning, HasSubstr("largest"));
  // No even spacing leads beyond 0.
  EXPECT_THAT(Tuned(Of({"0", "1", "2"}, 2), [](double value, int) { return value; }).chosen,
              ElementsAre("0"));
}

TEST(TuneTest, DivergedAndFailedTrials) {
  const Tuning tuning = Of({"1", "2", "3", "4"}, /*extensions=*/1);
  // An edge beyond which all diverges is none.
  const TuningState cliff =
      Tuned(tuning, [](double value, int) { return value > 4 ? kDiverged : -value; });
  EXPECT_THAT(cliff.chosen, ElementsAre("4"));
  EXPECT_THAT(cliff.warning, IsEmpty());
  const TuningState one =
      Tuned(tuning, [](double value, int) { return value == 2 ? 0.5 : kDiverged; });
  EXPECT_THAT(one.chosen, ElementsAre("2"));
  EXPECT_EQ(one.trials.size(), 4u);
  const TuningState none = Tuned(tuning, [](double, int) { return kDiverged; });
  EXPECT_THAT(none.chosen, IsEmpty());
  EXPECT_EQ(none.failure, "every trial diverged");
  const StatusOr<TuningState> failed =
      Tune(tuning, [](const Trial& trial) -> StatusOr<TrialOutcome> {
        if (trial.values[0] == "3") return TrialOutcome{TrialOutcome::State::kFailed};
        return TrialOutcome{TrialOutcome::State::kMeasured, 1};
      });
  EXPECT_EQ(failed->failure, "a trial failed");
  EXPECT_EQ(failed->trials.size(), 4u);
}

Tuning Random(int trials, const std::string& budget = "") {
  Tuning tuning;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(field { values: "1e-4" values: "1e-2" }
         field { field: "model.dropout" values: "0" values: "0.5" }
         field { field: "model.blocks" values: "1" values: "8" }
         extensions: 0 random { } )" +
          budget,
      &tuning));
  if (trials > 0) tuning.mutable_random()->set_trials(trials);
  return Complete(tuning);
}

TEST(TuneTest, RandomValuesAreSpreadByTheirKind) {
  const TuningState state = Tuned(Random(1000, "rungs: 1"), [](double, int) { return 1.0; });
  // Of 1e-4 to 1e-2 half lie below 1e-3; of 0 to 0.5 half below 0.25; of 1 to 8 blocks those that
  // round to 1 or 2, below 2.5, are log(2.5) / log(8). Three deviations of 1,000 draws are 0.048.
  int low_rates = 0, low_shares = 0, few_blocks = 0;
  std::set<std::vector<std::string>> different;
  for (const Trial& trial : state.trials) {
    low_rates += std::stod(trial.values[0]) < 1e-3;
    low_shares += std::stod(trial.values[1]) < 0.25;
    few_blocks += std::stod(trial.values[2]) < 2.5;
    EXPECT_EQ(trial.values[2].size(), 1u) << trial.values[2];
    EXPECT_GE(std::stod(trial.values[0]), 1e-4);
    EXPECT_LE(std::stod(trial.values[0]), 1e-2);
    EXPECT_TRUE(different.insert(trial.values).second);
  }
  ASSERT_EQ(state.trials.size(), 1000u);
  EXPECT_NEAR(low_rates, 500, 48);
  EXPECT_NEAR(low_shares, 500, 48);
  EXPECT_NEAR(few_blocks, 441, 48);
  // A longer search keeps the draws of a shorter one; another seed has others.
  const auto draws = [](const Tuning& tuning) {
    return Names(Tuned(tuning, [](double, int) { return 1.0; }));
  };
  const std::vector<std::string> five = draws(Random(5, "rungs: 1"));
  const std::vector<std::string> nine = draws(Random(9, "rungs: 1"));
  EXPECT_EQ(five, std::vector<std::string>(nine.begin(), nine.begin() + 5));
  Tuning other = Random(5, "rungs: 1");
  other.mutable_random()->set_seed(1);
  EXPECT_NE(draws(other), five);
  // Two integers of three values have nine combinations and no more.
  Tuning few = Of({"1", "3"});
  few.add_field()->set_field("model.blocks");
  few.mutable_field(1)->add_values("1");
  few.mutable_field(1)->add_values("3");
  few.mutable_random()->set_trials(100);
  few.set_rungs(1);
  EXPECT_EQ(Tuned(few, [](double, int) { return 1.0; }).trials.size(), 9u);
}

TEST(TuneTest, ABudgetOfRunsLeavesRoomForAllRungs) {
  // 9 + 3 + 2 of two seeds are 28 runs; 10 would take 10 + 4 + 2, 32.
  const TuningState state =
      Tuned(Random(0, "seeds: 1 seeds: 2 most_runs: 31"), [](double value, int) { return value; });
  EXPECT_EQ(state.trials.size(), 14u);
  EXPECT_EQ(state.trials.back().rung, 2);
  EXPECT_EQ(state.bound, "the budget of 31 runs allows 9 random combinations");
  // Without a bound there is nothing to say.
  EXPECT_EQ(Tuned(Random(4, "most_runs: 100"), Around(1e-3)).bound, "");
  // What is left of it is for values beyond an edge: 3 + 2 + 2 are 7, with one more value 8.
  Tuning grid = Of({"1", "2", "4"}, /*extensions=*/2);
  grid.set_most_runs(8);
  const TuningState edge = Tuned(grid, Around(100));
  EXPECT_THAT(Names(edge), ElementsAre("1@0", "2@0", "4@0", "8@0", "8@1", "4@1", "8@2", "4@2"));
  EXPECT_EQ(edge.bound, "the budget of 8 runs leaves no room beyond optimizer.learning_rate=8");
}

TEST(TuneTest, ABudgetOfMinutesFollowsWhatTrialsTake) {
  const Tuning tuning = Random(0, "rungs: 2 most_minutes: 60");
  // Trials of m minutes in the first rung, and 2 m more in the second: n + 2 ceil(n / 3) times m.
  const auto tuned = [&](double minutes, size_t measured = 1000) {
    size_t asked = 0;
    const StatusOr<TuningState> state =
        Tune(tuning, [&](const Trial& trial) -> StatusOr<TrialOutcome> {
          if (asked++ >= measured) return TrialOutcome();
          return TrialOutcome{TrialOutcome::State::kMeasured, std::stod(trial.values[0]),
                              trial.rung == 0 ? minutes : 2 * minutes};
        });
    EXPECT_TRUE(state.ok()) << state.status().message();
    return *state;
  };
  const TuningState state = tuned(2);  // 18 + 12 are 30 trials' time; 19 would be 33
  EXPECT_EQ(std::ranges::count(state.trials, 0, &Trial::rung), 18);
  EXPECT_EQ(state.trials.size(), 18u + 6u);
  EXPECT_EQ(state.bound, "the budget of 60 minutes allows 18 random combinations");
  // At first two, then twice as many as are measured; what is measured stays.
  EXPECT_EQ(tuned(2, 0).trials.size(), 2u);
  EXPECT_EQ(tuned(2, 2).trials.size(), 4u);
  EXPECT_EQ(tuned(2, 3).trials.size(), 4u);
  EXPECT_EQ(tuned(2, 8).trials.size(), 16u);
  const std::vector<std::string> all = Names(state);
  for (size_t measured = 0; measured < all.size(); ++measured) {
    const std::vector<std::string> known = Names(tuned(2, measured));
    EXPECT_TRUE(std::equal(known.begin(), known.end(), all.begin())) << measured;
  }
  // Where the first two use it up, no rung follows.
  const TuningState slow = tuned(40);
  EXPECT_EQ(slow.trials.size(), 2u);
  EXPECT_EQ(slow.bound,
            "the budget of 60 minutes allows 2 random combinations and is used up after rung 1 of "
            "2");
  EXPECT_FALSE(slow.chosen.empty());
}

TEST(TuneTest, ARandomSearchGoesBeyondItsEdge) {
  Tuning tuning = Of({"1e-4", "1e-2"}, /*extensions=*/1);
  tuning.mutable_random()->set_trials(6);
  tuning.set_rungs(1);
  const TuningState state = Tuned(tuning, [](double value, int) { return -value; });
  ASSERT_EQ(state.trials.size(), 7u);
  double most = 0;
  for (size_t i = 0; i < 6; ++i) most = std::max(most, std::stod(state.trials[i].values[0]));
  // A quarter of two decades.
  EXPECT_NEAR(std::stod(state.trials[6].values[0]) / most, std::sqrt(10), 1e-4);
  EXPECT_EQ(state.chosen, state.trials[6].values);
}

TEST(TuneTest, TrialsAreComparedByTheMetricThatIsAskedFor) {
  Summary trial;
  trial.metrics.logloss = 0.5;
  trial.metrics.auc = 0.7;
  trial.metrics.gauc = 0.6;
  trial.monitor = "weighted_auc";
  trial.best_metric = 0.8;
  Tuning tuning;
  EXPECT_EQ(MetricOf(tuning, trial).loss(), 0.5);
  tuning.set_metric(Tuning::AUC);
  EXPECT_EQ(MetricOf(tuning, trial).loss(), -0.7);
  tuning.set_metric(Tuning::GAUC);
  EXPECT_EQ(MetricOf(tuning, trial).loss(), -0.6);
  tuning.set_metric(Tuning::MONITORED);
  EXPECT_EQ(MetricOf(tuning, trial).loss(), -0.8);
  EXPECT_EQ(MetricOf(tuning, trial).name, "weighted_auc");
  trial.monitor = "logloss";
  EXPECT_EQ(MetricOf(tuning, trial).loss(), 0.8);
  trial.metrics.gauc.reset();
  tuning.set_metric(Tuning::GAUC);
  EXPECT_FALSE(MetricOf(tuning, trial).value.has_value());
}

// However much is measured, the trials are the first of those of the end, or one that will follow
// is waited for; and the bound of what may come holds.
TEST(TuneTest, HalfDoneTuningsGoOn) {
  const Tuning grid = Of({"1", "2", "4", "8", "16"}, /*extensions=*/2);
  Tuning random = grid;
  random.mutable_random()->set_trials(6);
  for (const Tuning& tuning : {grid, random}) {
    for (const double best : {0.3, 3.0, 100.0}) {
      const TuningState whole = Tuned(tuning, Around(best));
      const std::vector<std::string> all = Names(whole);
      for (size_t measured = 0; measured < all.size(); ++measured) {
        const TuningState part = Tuned(tuning, Around(best), measured);
        const std::vector<std::string> known = Names(part);
        ASSERT_GT(known.size(), measured);
        EXPECT_TRUE(std::equal(known.begin(), known.end(), all.begin())) << measured;
        EXPECT_THAT(part.chosen, IsEmpty());
        int64_t most = 0;
        for (const int64_t count : part.most_to_come) {
          EXPECT_GE(count, 0) << measured;
          most += count;
        }
        EXPECT_GE(static_cast<int64_t>(known.size()) + most, static_cast<int64_t>(all.size()));
      }
    }
  }
}

// ---- Plans

constexpr char kSweep[] = R"(
  base {
    data { path: "DATA" }
    model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
    embedding { width: 4 }
    optimizer { learning_rate: 0.004 }
    training { batch_size: 8 epochs: 9 }
    parallel { virtual_shards: 4 }
    spectrum { samples: 7 }
  }
  axis { field: "training.seed" values: "1" values: "2" }
  axis { field: "model.blocks" values: "1" values: "2" }
)";

// A data set of 32 training rows; planned from, never read.
std::string DataPath(int64_t validation_rows = 8) {
  const std::string path = testing::TempDir() + "/data" + std::to_string(validation_rows);
  if (std::filesystem::exists(path)) return path;
  DatasetInfo info;
  info.numeric = {{"number"}};
  info.categorical = {{"id", 40, false, false}};
  info.rows_per_block = 8;
  auto writer = DatasetWriter::Create(path, info);
  EXPECT_TRUE(writer.ok());
  const auto append = [&](Split split, int64_t count) {
    Rows rows;
    rows.rows = count;
    rows.labels.assign(count, 1);
    rows.numeric.assign(count, 1);
    rows.ids.assign(count, 3);
    EXPECT_TRUE((*writer)->Append(split, rows).ok());
  };
  for (int block = 0; block < 4; ++block) append(Split::kTrain, 8);
  if (validation_rows > 0) append(Split::kValidation, validation_rows);
  EXPECT_TRUE((*writer)->Commit({}).ok());
  return path;
}

StatusOr<Plan> PlanOf(const std::string& tuning, const SweepFiles& files = {},
                      const std::vector<std::string>& overrides = {}, int64_t validation_rows = 8) {
  std::string text = kSweep + tuning;
  text.replace(text.find("DATA"), 4, DataPath(validation_rows));
  const std::string path = testing::TempDir() + "/tuned.textproto";
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  ELASTOR_ASSIGN_OR_RETURN(const Sweep sweep, LoadSweep(path, overrides));
  return MakePlan(sweep, "S", files);
}

Plan Planned(const std::string& tuning, const SweepFiles& files) {
  const StatusOr<Plan> plan = PlanOf(tuning, files);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? *plan : Plan();
}

std::vector<std::string> PlannedLabels(const Plan& plan) {
  std::vector<std::string> labels;
  for (const PlannedRun& run : plan.runs) {
    labels.push_back(run.folder.substr(0, run.folder.rfind('-')));
  }
  return labels;
}

void Finish(const SweepFiles& files, const std::string& folder, double logloss) {
  ASSERT_TRUE(MakeDirectory(files.Run(folder)).ok());
  ASSERT_TRUE(
      WriteFileAtomically(files.Run(folder) + "/summary.json",
                          R"({"state_digest":"d","logloss":)" + std::to_string(logloss) + "}")
          .ok());
}

SweepFiles NewFolder(const std::string& name) {
  const SweepFiles files = {testing::TempDir() + "/" + name};
  std::filesystem::remove_all(files.root);
  EXPECT_TRUE(MakeDirectory(files.root).ok());
  EXPECT_TRUE(MakeDirectory(files.Runs()).ok());
  EXPECT_TRUE(MakeDirectory(files.root + "/attempts").ok());
  return files;
}

TEST(TunedPlanTest, FilesAloneSayHowFarItIs) {
  const SweepFiles files = NewFolder("tuned");
  const std::string tuning =
      R"(tuning { field { values: "1e-3" values: "2e-3" values: "4e-3" } rungs: 2 extensions: 0 })";
  const Plan first = Planned(tuning, files);
  EXPECT_THAT(PlannedLabels(first), ElementsAre("tune_blocks1_learning_rate1e-3_rung1_seed0",
                                                "tune_blocks1_learning_rate2e-3_rung1_seed0",
                                                "tune_blocks1_learning_rate4e-3_rung1_seed0",
                                                "tune_blocks2_learning_rate1e-3_rung1_seed0",
                                                "tune_blocks2_learning_rate2e-3_rung1_seed0",
                                                "tune_blocks2_learning_rate4e-3_rung1_seed0"));
  EXPECT_THAT(first.columns, ElementsAre("training.seed", "model.blocks", "stage",
                                         "optimizer.learning_rate", "tuning_warning"));
  EXPECT_THAT(first.runs[4].columns, ElementsAre("0", "2", "tune", "2e-3", ""));
  EXPECT_EQ(first.runs[0].steps, 12);  // a third of 4 steps in 9 epochs
  EXPECT_EQ(first.runs[0].samples, 12 * 8);
  EXPECT_THAT(first.runs[0].experiment, AllOf(HasSubstr("max_steps: 12"), HasSubstr("seed: 0")));
  ASSERT_EQ(first.later.size(), 4u);  // of each configuration final runs, and a rung
  EXPECT_EQ(first.later[0].count, 2);
  EXPECT_EQ(first.later[0].each.steps, 36);
  EXPECT_EQ(first.later[1].count, 2);
  EXPECT_EQ(first.later[1].each.stage, Stage::kTune);

  // Of one configuration rung 1 is over; of the other a part, which changes nothing.
  Finish(files, first.runs[0].folder, 0.6);
  Finish(files, first.runs[1].folder, 0.5);
  Finish(files, first.runs[2].folder, 0.4);
  Finish(files, first.runs[3].folder, 0.4);
  const Plan second = Planned(tuning, files);
  ASSERT_EQ(second.runs.size(), 8u);
  EXPECT_EQ(PlannedLabels(second)[3], "tune_blocks1_learning_rate4e-3_rung2_seed0");
  EXPECT_EQ(PlannedLabels(second)[4], "tune_blocks1_learning_rate2e-3_rung2_seed0");
  EXPECT_EQ(second.runs[3].steps, 36);
  EXPECT_EQ(second.runs[3].continues, first.runs[2].folder);
  EXPECT_EQ(second.runs[4].continues, first.runs[1].folder);
  EXPECT_EQ(second.runs[5].continues, "");
  EXPECT_THAT(second.runs[3].experiment,
              AllOf(::testing::Not(HasSubstr("max_steps: 36")), HasSubstr("disabled: true")));
  EXPECT_EQ(PlannedLabels(Planned(tuning, files)), PlannedLabels(second));

  // The last rung chooses; the final runs follow at once.
  Finish(files, second.runs[3].folder, 0.45);
  Finish(files, second.runs[4].folder, 0.35);
  const Plan third = Planned(tuning, files);
  ASSERT_EQ(third.runs.size(), 10u);
  EXPECT_EQ(PlannedLabels(third)[5], "blocks1_seed1");
  EXPECT_EQ(PlannedLabels(third)[6], "blocks1_seed2");
  EXPECT_EQ(third.runs[6].stage, Stage::kFinal);
  EXPECT_THAT(third.runs[6].columns, ElementsAre("2", "1", "final", "2e-3", ""));
  EXPECT_THAT(third.runs[6].experiment,
              AllOf(HasSubstr("learning_rate: 0.002"), HasSubstr("samples: 7"),
                    ::testing::Not(HasSubstr("disabled: true"))));
  ASSERT_EQ(third.tuned.size(), 2u);
  EXPECT_EQ(third.tuned[0].chosen, "optimizer.learning_rate=2e-3");
  EXPECT_EQ(third.tuned[0].metric, "logloss");
  EXPECT_EQ(third.tuned[0].value, 0.35);
  EXPECT_THAT(third.tuned[1].chosen, IsEmpty());

  // A trial that diverged is one that is not chosen; one that failed otherwise is waited for.
  const std::string attempts = files.Attempts(second.runs[6].folder);
  ASSERT_TRUE(AppendStart(attempts, 1, {.cores = {0}}).ok());
  ASSERT_TRUE(AppendEnd(attempts, 4, false, 1, "diverged").ok());
  ASSERT_TRUE(AppendStart(files.Attempts(second.runs[7].folder), 1, {.cores = {0}}).ok());
  ASSERT_TRUE(AppendEnd(files.Attempts(second.runs[7].folder), 2, false, 1, "a mistake").ok());
  EXPECT_EQ(Planned(tuning, files).tuned[1].failure, "a trial failed");
  Finish(files, second.runs[7].folder, 0.3);
  const Plan last = Planned(tuning, files);
  EXPECT_EQ(last.runs.back().columns[3], "1e-3");
  EXPECT_EQ(last.runs.size(), 12u);

  ASSERT_TRUE(WritePlan(last, files).ok());
  const StatusOr<Plan> read = ReadPlan(files);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->runs[0].stage, Stage::kTune);
  EXPECT_EQ(read->runs[5].stage, Stage::kFinal);
  EXPECT_EQ(read->tuned[0].chosen, last.tuned[0].chosen);
  EXPECT_EQ(read->later.size(), last.later.size());
}

TEST(TunedPlanTest, SeveralFieldsAndSeeds) {
  const SweepFiles files = NewFolder("fields");
  const std::string tuning = R"(tuning {
    field { values: "1e-3" values: "2e-3" }
    field { field: "model.dropout" values: "0" values: "0.1" }
    rungs: 1 seeds: 8 seeds: 9
  })";
  const Plan first = Planned(tuning, files);
  ASSERT_EQ(first.runs.size(), 16u);
  EXPECT_EQ(PlannedLabels(first)[3], "tune_blocks1_learning_rate1e-3_dropout0.1_rung1_seed9");
  // The mean counts: the best single trial does not win.
  for (size_t i = 0; i < 8; ++i) Finish(files, first.runs[i].folder, 0.5);
  Finish(files, first.runs[2].folder, 0.1);
  Finish(files, first.runs[3].folder, 0.8);
  Finish(files, first.runs[6].folder, 0.3);
  const Plan second = Planned(tuning, files);
  ASSERT_EQ(second.tuned[0].chosen, "");  // the learning rate was at the edge
  EXPECT_EQ(PlannedLabels(second)[8], "tune_blocks1_learning_rate0.004_dropout0.1_rung1_seed8");
}

TEST(TunedPlanTest, MistakesAreOneLine) {
  const auto error = [](const std::string& tuning, const std::vector<std::string>& overrides = {},
                        int64_t validation_rows = 8) {
    const StatusOr<Plan> plan = PlanOf(tuning, {}, overrides, validation_rows);
    EXPECT_EQ(plan.status().code(), StatusCode::kUser) << tuning;
    return plan.status().message();
  };
  EXPECT_THAT(error(R"(tuning { field { field: "model.blocks" values: "1" values: "2" } })"),
              HasSubstr("tuned.textproto: tuning: model.blocks: is varied by the axis"));
  EXPECT_THAT(error(R"(tuning { field { field: "model.dropout" } })"),
              HasSubstr("tuning: model.dropout: has no values; expected some, or start"));
  EXPECT_THAT(error(R"(tuning { field { values: "1e-3" } })"), HasSubstr("has one value"));
  EXPECT_THAT(error(R"(tuning { field { count: 1 } })"), HasSubstr("has one value"));
  EXPECT_THAT(error(R"(tuning { field { values: "1" values: "1.0" } })"),
              HasSubstr("has the value 1.0 twice"));
  EXPECT_THAT(error(R"(tuning { field { values: "fast" values: "1" } })"),
              HasSubstr("value 'fast'; expected a number"));
  EXPECT_THAT(error(R"(tuning { field { values: "1" values: "2" count: 3 } })"),
              HasSubstr("expected one way"));
  EXPECT_THAT(error(R"(tuning { field { } field { } })"), HasSubstr("is tuned twice"));
  EXPECT_THAT(error(R"(tuning { field { field: "model.blokcs" values: "1" values: "2" } })"),
              HasSubstr("S: tuning: model.blokcs=1: "));
  EXPECT_THAT(error("tuning { eta: 1.5 }"), HasSubstr("tuning: eta: 1.5; expected 2 or more"));
  EXPECT_THAT(error("tuning { rungs: 0 }"), HasSubstr("rungs: 0; expected 1 to "));
  EXPECT_THAT(error("tuning { share: 0 }"), HasSubstr("share: 0; expected a share"));
  EXPECT_THAT(error("tuning { extensions: -1 }"), HasSubstr("extensions: -1"));
  EXPECT_THAT(error("tuning { random { trials: 1 } }"), HasSubstr("random.trials: 1; expected 2"));
  EXPECT_THAT(error("tuning { most_minutes: 5 }"), HasSubstr("bounds a random search"));
  EXPECT_THAT(error("tuning { random { } most_minutes: 0 }"),
              HasSubstr("most_minutes: 0; expected"));
  EXPECT_THAT(
      error("tuning { most_runs: 8 }"),  // 5 + 2 + 2
      HasSubstr("most_runs: 8; the grid takes 9; expected as many, fewer rungs, or random"));
  EXPECT_THAT(error("tuning { metric: GAUC }"), HasSubstr("GAUC, but the data have no groups"));
  EXPECT_THAT(error("tuning { seeds: 5 seeds: 5 }"), HasSubstr("seeds: has one twice"));
  EXPECT_THAT(
      error("tuning { rungs: 5 }"),
      HasSubstr("S: run tune blocks1 learning_rate0.001 rung1 seed0: tuning: has 0 steps in "
                "rung 1, of 36; expected fewer rungs"));
  EXPECT_THAT(error("tuning { seeds: 2 }"), HasSubstr("tuning: seeds: 2 is run blocks1_seed2-"));
  EXPECT_THAT(error("tuning { }", {}, 0), HasSubstr("has no rows for validation"));
  EXPECT_THAT(
      error("tuning { }", {"axis.training.sede=1"}),
      AllOf(HasSubstr("no axis is of 'training.sede' alone"), HasSubstr("'training.seed'")));
  const StatusOr<Plan> other = PlanOf("tuning { }", {}, {"axis.training.seed=5"});
  EXPECT_EQ(other->later[0].count, 1);
}

}  // namespace
}  // namespace elastor
