#ifndef ELASTOR_LAUNCHER_TIME_ESTIMATE_H_
#define ELASTOR_LAUNCHER_TIME_ESTIMATE_H_

#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "launcher/machine.h"
#include "launcher/plan.h"
#include "launcher/run_folder.h"
#include "trainer/records/run_records.h"

namespace elastor {

// Estimates the seconds that runs take from measured runs. Runs of a model with the same ranks and
// threads are fitted together. A sample's time within steps, and a run's time outside of steps
// (start, evaluations, writing), are each a + b * multiply-adds. The fit minimises squared relative
// errors, weighted by the run's length. If the model has none, a sample's time is the predicted one
// (PlannedRun), and else that of runs of other models.
class TimeEstimate {
 public:
  void Add(const PlannedRun& run, const Summary& result);
  // Returns the seconds from start to end; none if nothing is predicted and no run on as many cores
  // has been added.
  std::optional<double> Seconds(const PlannedRun& run) const;

 private:
  // Returns a + b * x with a and b at least 0 that minimise the sum of weight * ((a + b * x - y) /
  // y)^2.
  class Line {
   public:
    void Add(double x, double y, double weight);
    double at(double x) const;

   private:
    double sum_ = 0, x1_ = 0, x2_ = 0, y1_ = 0, xy_ = 0;  // of the weights / y^2, times powers
    double least_ = 0, most_ = 0;                         // x
  };
  struct Lines {
    Line of_sample, of_rest;
  };

  std::map<std::tuple<std::string, int, int>, Lines> by_model_;  // model, ranks, threads
  std::map<int, Lines> by_cores_;
};

// Makes an estimate from the finished runs of a plan and of its calibration.
TimeEstimate EstimateFrom(const Plan& plan, const SweepFiles& files, const Machine& machine);

// Returns the folder of a sweep's calibration, which is a separate sweep for this host.
SweepFiles CalibrationFiles(const SweepFiles& files, const Machine& machine);
// Returns a plan of runs of a few seconds each, from which the time of `plan`'s runs can be
// estimated: for every model the smallest, the middle and the largest run, for some of their steps.
// REQUIRES: a plan from MakePlan.
Plan CalibrationPlan(const Plan& plan);

// One piece of remaining work, which may or may not have cores already.
struct Work {
  double seconds = 0;
  int cores = 1;
};
// Returns the time until all work is done on so many cores, when the longest work begins first, on
// the cores that are free first. `running` has its cores at the start. REQUIRES: no work needs more
// cores than there are.
double SecondsOnCores(std::span<const Work> running, std::vector<Work> waiting, int cores);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_TIME_ESTIMATE_H_
