#ifndef ELASTOR_TRAINER_COST_STEP_PROGRAM_H_
#define ELASTOR_TRAINER_COST_STEP_PROGRAM_H_

#include <array>
#include <cstdint>
#include <vector>

#include "core/graph/graph.h"
#include "trainer/cost/batch_demand.h"
#include "trainer/cost/machine.h"
#include "trainer/cost/simulation.h"
#include "trainer/step/step_calls.h"
#include "trainer/step/step_options.h"

namespace elastor {

// What the steps of a job depend on. All it points to outlives the program.
struct StepModel {
  const WorkTimes* work = nullptr;
  const Graph* graph = nullptr;
  TrainStepOptions options;
  StepShape shape;
  bool gpus = false;  // a rank's rows are one pass
  int threads = 1;    // of each rank
  int64_t width = 0;  // of embedding rows
  int ranks_per_host = 1;
};

// Steps of a job as a program of a simulation: the calls that the step declares (CallsOfStep), in
// its threads, with the work between them.
struct StepProgram {
  SimJob job;
  std::vector<StepCall> calls;  // of rank 0, in one step
  Sent rank0_sent, all_sent;    // in one step
  Sent between_hosts;           // of all_sent, to ranks of other hosts
  // Marks of a step: the beginnings of its parts, its end, that its threads have computed and wait
  // for the communication, and of each bucket two, around its wait for weights that come late.
  static constexpr int kEnd = kStepParts;
  static constexpr int kComputed = kStepParts + 1;
  static constexpr int kWaits = kStepParts + 2;
  int buckets = 0;
  int MarkOf(int step, int mark) const { return step * (kWaits + 2 * buckets) + mark; }
  // By rank, seconds of own work in each part of a step, if the units are not shared.
  std::vector<std::array<double, kStepParts>> work;
};

// All steps have the same demand, and the steps before the first have routed its ids.
StepProgram MakeStepProgram(const StepModel& model, const JobDemand& demand, int steps);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_COST_STEP_PROGRAM_H_
