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

namespace elastor {

// Seconds that runs take, by those that have been measured. Of the runs of a model on as many ranks
// and threads, a sample's time within steps and a run's time outside of them (start, evaluations,
// writing) are each a + b * multiply-adds, fitted by least squares to relative errors, in which a
// run counts by its length. Runs of other models stand in where there is none.
class TimeEstimate {
 public:
  void Add(const PlannedRun& run, const RunResult& result);
  // From start to end; nothing: no run on as many cores has been added.
  std::optional<double> Seconds(const PlannedRun& run) const;

 private:
  // a + b * x, neither below 0, for the least sum of weight * ((a + b * x - y) / y)^2.
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

// With the finished runs of a plan, and those of its calibration.
TimeEstimate EstimateFrom(const Plan& plan, const SweepFiles& files, const Machine& machine);

// Where the calibration of a sweep lies: a sweep of its own, of this host.
SweepFiles CalibrationFiles(const SweepFiles& files, const Machine& machine);
// Runs of a few seconds each by which the time of a plan's runs can be estimated: of every model
// the smallest, the middle and the largest, for some of their steps. REQUIRES: a plan that was
// made.
Plan CalibrationPlan(const Plan& plan);

// What is still to be done, and has cores already or not.
struct Work {
  double seconds = 0;
  int cores = 1;
};
// Until all is done on so many cores, when the longest begins first on the cores that are free
// first. `running` has its cores at the start. REQUIRES: nothing needs more cores than there are.
double SecondsOnCores(std::span<const Work> running, std::vector<Work> waiting, int cores);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_TIME_ESTIMATE_H_
