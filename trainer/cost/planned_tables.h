#ifndef ELASTOR_TRAINER_COST_PLANNED_TABLES_H_
#define ELASTOR_TRAINER_COST_PLANNED_TABLES_H_

#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "embedding/shard_plan.h"
#include "trainer/data/dataset.h"
#include "trainer/experiment/resolved_model.h"

namespace elastor {

class Experiment;

// What `plan: PLANNED` has chosen for a job.
struct PlannedTables {
  std::vector<Placement> placements;  // by table
  std::string machine;                // the text of parallel.machine
  std::string report;                 // predicted times, for people: lines of plan.txt
};

// Rank 0 reads parallel.machine and chooses by predicted steps on its first batch (SearchPlan); all
// ranks get its choice. User error, the same on all ranks, if the file cannot be read or the
// machine lacks what the job needs. Collective.
StatusOr<PlannedTables> PlanTables(const Experiment& experiment, const ResolvedModel& model,
                                   const Dataset& dataset, Communicator* communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_COST_PLANNED_TABLES_H_
