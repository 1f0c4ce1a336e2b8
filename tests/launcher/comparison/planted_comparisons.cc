// What intervals and corrected verdicts of comparisons are worth: many comparisons are drawn whose
// true differences are known. By hand; the figures of docs/results/sweeps.md:
//
//   bazel run -c opt //tests/launcher/comparison:planted_comparisons -- --draws=40000
#include <gflags/gflags.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "launcher/comparison/arms.h"
#include "launcher/comparison/comparison.h"

DEFINE_int32(draws, 40000, "comparisons of every plan; a tenth of them by predictions");
DEFINE_uint64(seed, 38, "of the draws");

namespace elastor {
namespace {

class Normals {
 public:
  Normals(uint64_t plan, uint64_t draw) : key_((FLAGS_seed << 40) ^ (plan << 24) ^ draw) {}
  double Next() {
    const PhiloxBlock block = Philox(key_, {next_++, 0, 0, 0});
    return NormalFromBits(block[0], block[1]).first;
  }

 private:
  const uint64_t key_;
  uint32_t next_ = 0;
};

struct ArmPlan {
  const char* name;
  std::vector<double> means;    // of each arm, in units of `spreads`
  std::vector<double> spreads;  // of runs of each arm
  double common = 0;            // spread of what a seed does to all arms
  int seeds = 3;
  int levels = 1;
  bool shared = true;  // whether arms have the same seeds
};

double Percent(int64_t count, int64_t of) {
  return 100 * static_cast<double>(count) / static_cast<double>(of);
}

bool Holds(const Interval& interval, double truth) {
  return interval.low <= truth && truth <= interval.high;
}

void Measure(const ArmPlan& plan, uint64_t number) {
  int64_t held = 0, intervals = 0, wrong = 0, found = 0, effects = 0;
  for (int draw = 0; draw < FLAGS_draws; ++draw) {
    Normals normals(number, draw);
    std::vector<Arm> arms;
    for (size_t a = 0; a < plan.means.size(); ++a) {
      arms.push_back({.name = "arm" + std::to_string(a), .levels = {}});
    }
    for (int level = 0; level < plan.levels; ++level) {
      for (Arm& arm : arms) {
        arm.levels.push_back({.name = "level" + std::to_string(level), .by_seed = {}});
      }
      for (int seed = 0; seed < plan.seeds; ++seed) {
        const double common = plan.common * normals.Next();
        for (size_t a = 0; a < arms.size(); ++a) {
          const int own = plan.shared ? seed : seed + 100 * static_cast<int>(a);
          arms[a].levels.back().by_seed[own] =
              plan.means[a] + common + plan.spreads[a] * normals.Next();
        }
      }
    }
    const ArmComparison comparison = CompareArms(arms);
    bool any = false;
    for (const auto* list : {&comparison.overall, &comparison.by_level}) {
      for (const ArmDifference& each : *list) {
        const double truth = plan.means[each.first] - plan.means[each.second];
        ++intervals;
        held += Holds(*each.interval, truth);
        any = any || (truth == 0 && each.told_apart() && list == &comparison.overall);
        if (truth == 0 || list != &comparison.overall) continue;
        ++effects;
        found += each.told_apart();
      }
    }
    wrong += any;
  }
  std::printf("%s: intervals hold %.2f %%; family error %.2f %%", plan.name,
              Percent(held, intervals), Percent(wrong, FLAGS_draws));
  if (effects > 0) std::printf("; true differences told apart %.1f %%", Percent(found, effects));
  std::printf("\n");
  std::fflush(stdout);
}

// Models of equal quality by predictions. Logits are the signal of a row and two noises: the
// model's, which all its runs have, and the run's own.
struct RowPlan {
  const char* name;
  int models, runs;
  double of_model;    // the model's noise of a row
  double of_run;      // the run's noise of a row, on average
  double spread = 0;  // of the logarithm of the run's noise: the luck of a seed
  int rows = 500;
};

void MeasureRows(const RowPlan& plan, uint64_t number) {
  const int draws = FLAGS_draws / 10;
  int64_t auc = 0, logloss = 0, intervals = 0, wrong = 0;
  for (int draw = 0; draw < draws; ++draw) {
    Normals normals(number, draw);
    std::vector<double> signal;
    std::vector<uint8_t> labels;
    for (int i = 0; i < plan.rows; ++i) {
      signal.push_back(normals.Next());
      labels.push_back(signal.back() + 1.5 * normals.Next() > 1);
    }
    std::vector<ComparedModel> compared;
    for (int m = 0; m < plan.models; ++m) {
      std::vector<double> seen = signal;
      for (double& each : seen) each += plan.of_model * normals.Next();
      ComparedModel& model = compared.emplace_back();
      model.name = "model" + std::to_string(m);
      for (int r = 0; r < plan.runs; ++r) {
        ComparedRun& run = model.runs.emplace_back();
        run.seed = r;
        // A run's own quality, which other rows do not change.
        const double noise = plan.of_run * std::exp(plan.spread * normals.Next());
        for (const double each : seen) {
          const double logit = each + noise * normals.Next() - 1;
          run.probabilities.push_back(static_cast<float>(1 / (1 + std::exp(-logit))));
        }
      }
    }
    bool any = false;
    const Comparison comparison = Compare(labels, compared, {.resamples = 0, .against = {}});
    for (const PairFigures& pair : comparison.pairs) {
      ++intervals;
      auc += Holds(*pair.auc.both, 0);
      logloss += Holds(*pair.logloss.both, 0);
      any = any || pair.auc.differs_from_0();
    }
    wrong += any;
  }
  std::printf(
      "%d equal models of %d runs, %s, predictions of %d rows: intervals over rows and seeds hold "
      "%.2f %% of AUCs, %.2f %% of loglosses; family error %.2f %%\n",
      plan.models, plan.runs, plan.name, plan.rows, Percent(auc, intervals),
      Percent(logloss, intervals), Percent(wrong, draws));
  std::fflush(stdout);
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  const std::vector<elastor::ArmPlan> plans = {
      {"2 arms, 2 seeds", {0, 0}, {1, 1}, 0, 2},
      {"2 arms, 3 seeds with effects of their own", {0, 0}, {1, 1}, 3, 3},
      {"2 arms, 10 seeds, one arm ahead", {2, 0}, {1, 1}, 1, 10},
      {"2 arms, 5 seeds, unequal spreads", {0, 0}, {1, 4}, 0, 5},
      {"2 arms, 3 seeds, 4 levels", {0, 0}, {1, 1}, 1, 3, 4},
      {"4 equal arms, 3 seeds", {0, 0, 0, 0}, {1, 1, 1, 1}, 1, 3},
      {"6 equal arms, 5 seeds", {0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1}, 1, 5},
      {"5 arms, 5 seeds, two far ahead", {9, 9, 0, 0, 0}, {1, 1, 1, 1, 1}, 1, 5},
      {"2 arms, 3 seeds each, none shared", {0, 0}, {1, 1}, 0, 3, 1, false},
      {"2 arms, 5 seeds each, none shared", {0, 0}, {1, 1}, 0, 5, 1, false},
      {"2 arms, 10 seeds each, none shared, unequal spreads", {0, 0}, {1, 3}, 0, 10, 1, false},
  };
  for (size_t i = 0; i < plans.size(); ++i) elastor::Measure(plans[i], i);
  const std::vector<elastor::RowPlan> row_plans = {
      {"runs with noise of their own", 2, 5, 0, 1, 0.2},
      {"runs with noise of their own", 3, 3, 0, 1, 0.2},
      {"rows dominate", 2, 5, 1, 0.1, 0},
      {"rows dominate", 2, 3, 1, 0.1, 0},
      {"seeds dominate", 2, 5, 0, 1, 0.3, 4000},
      {"seeds dominate", 2, 3, 0, 1, 0.3, 4000},
      {"seeds dominate and some runs fail", 2, 5, 0, 1, 0.8},
      {"rows and seeds", 2, 5, 1, 1, 0.3},
      {"rows and seeds", 2, 3, 1, 1, 0.3},
      {"rows times seeds alone", 2, 5, 0, 1, 0},
      {"rows times seeds alone", 2, 3, 0, 1, 0},
      {"rows and seeds", 4, 10, 1, 1, 0.3},
      {"two runs: rows and seeds", 2, 2, 1, 1, 0.3},
  };
  for (size_t i = 0; i < row_plans.size(); ++i) {
    elastor::MeasureRows(row_plans[i], plans.size() + i);
  }
}
