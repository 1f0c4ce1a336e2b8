// gap_test: do arms of runs have the same training loss and generalisation gap?
// (docs/reproduce_conditioning.md)

#include <gflags/gflags.h>

#include <cstdio>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/status.h"
#include "core/report/chart.h"
#include "launcher/comparison/energy_distance.h"
#include "launcher/comparison/loss_and_gap.h"
#include "launcher/comparison/report.h"
#include "launcher/folder_program.h"
#include "launcher/result_runs.h"
#include "trainer/run/standard_streams.h"

DEFINE_int64(from_step, 0, "leave out evaluations before this step, as those of the first steps");
DEFINE_string(svg, "", "a file for the picture of all points, gap over training loss");
DEFINE_uint64(seed, 1, "of drawn labellings, beyond 20,000 possible ones");

namespace elastor {
namespace {

constexpr char kSourceFile[] = "gap_test_main.cc";

std::string PairLine(const LossAndGapArm& first, const LossAndGapArm& second) {
  const EnergyTest test = TestEnergyDistance(first.runs, second.runs, {.seed = FLAGS_seed});
  char line[512];
  std::snprintf(line, sizeof(line), ",%zu,%zu,%.6g,%.6g,%s,%lld,%.6g,%.6g,%.6g,%.6g\n",
                first.runs.size(), second.runs.size(), test.distance, test.p,
                test.exact ? "all" : "drawn", static_cast<long long>(test.labellings),
                test.gap_difference, test.gap_interval.low, test.gap_interval.high,
                test.equivalence_bound);
  return Quoted(first.name) + "," + Quoted(second.name) + line;
}

// Every point of every run, a colour an arm.
std::string Cloud(const std::vector<LossAndGapArm>& arms) {
  ScalingChart chart;
  chart.title = "Generalisation gap over training loss";
  chart.subtitle = "a point a scheduled evaluation; gap: validation logloss less training loss";
  chart.x.title = "training loss";
  chart.y.title = "gap";
  for (const LossAndGapArm& arm : arms) {
    ScalingSeries& series = chart.series.emplace_back();
    series.name = arm.name;
    for (const LossAndGapRun& run : arm.runs) {
      for (const LossAndGap& point : run) {
        series.points.push_back({.mean = {.x = point.loss, .y = point.gap}});
      }
    }
  }
  return ToSvg(chart);
}

Status Run(const std::vector<std::string>& folders) {
  if (folders.empty()) return UserError("no run; expected folders of runs, or of sweeps");
  ELASTOR_ASSIGN_OR_RETURN(const ResultRuns results, FindResultRuns(folders));
  std::fputs(results.left_out.c_str(), stderr);
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<LossAndGapArm> arms,
                           ReadLossAndGap(results.folders, FLAGS_from_step));
  if (arms.size() < 2) {
    return UserError("all runs are named " + arms[0].name + "; expected runs of two names");
  }
  std::string text =
      "first,second,first_runs,second_runs,energy_distance,p,labellings_are,labellings,"
      "gap_difference,gap_low,gap_high,equivalence_bound\n";
  for (size_t i = 0; i < arms.size(); ++i) {
    for (size_t j = i + 1; j < arms.size(); ++j) text += PairLine(arms[i], arms[j]);
  }
  if (!FLAGS_svg.empty()) ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(FLAGS_svg, Cloud(arms)));
  return WriteToStdout(text);
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  return elastor::RunFolderProgram(
      argc, argv, "gap_test",
      "RUN...: energy distance, permutation test and equivalence bound of training loss and "
      "generalisation gap, every pair of names",
      elastor::kSourceFile, elastor::Run);
}
