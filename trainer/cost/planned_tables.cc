#include "trainer/cost/planned_tables.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include "collective/rank_hosts.h"
#include "configs/proto/experiment.pb.h"
#include "configs/proto/machine.pb.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "trainer/cost/machine.h"
#include "trainer/cost/prediction.h"

namespace elastor {
namespace {

constexpr std::chrono::milliseconds kWait(100);  // between two signs of life

std::string Milliseconds(double seconds) { return Format("%.3f ms", seconds * 1e3); }

std::string Report(const Machine& machine, const PlanSearch& search,
                   const std::vector<std::string>& warnings) {
  std::string text = StrCat("predicted step on machine '", machine.name(),
                            "': ", Milliseconds(search.prediction.step_seconds), "\n");
  for (int plan = 0; plan < kSimplePlans; ++plan) {
    const std::optional<Prediction>& simple = search.simple[plan];
    StrAppend(&text, "  ", ParallelConfig::Plan_Name(static_cast<ParallelConfig::Plan>(plan)), ": ",
              simple ? Milliseconds(simple->step_seconds) : "beyond parallel.memory_budget_bytes",
              "\n");
  }
  for (const std::string& warning : warnings) StrAppend(&text, "warning: ", warning, "\n");
  return text;
}

StatusOr<PlannedTables> Choose(const Experiment& experiment, const ResolvedModel& model,
                               const Dataset& dataset, int ranks, int ranks_per_host) {
  PlannedTables planned;
  const std::string& path = experiment.parallel().machine();
  // A resumed run has the path of its first part.
  StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return UserError("parallel.machine: " + text.status().message());
  planned.machine = *std::move(text);
  ELASTOR_ASSIGN_OR_RETURN(const Machine machine, ReadMachine(path));
  Predictor predictor(&experiment, &machine, &model, &dataset.info(), &dataset);
  ELASTOR_ASSIGN_OR_RETURN(
      PlanSearch search,
      predictor.SearchPlan(ranks, ranks_per_host, experiment.training().batch_size()));
  planned.report = Report(machine, search, predictor.Warnings());
  planned.placements = std::move(search.placements);
  return planned;
}

}  // namespace

StatusOr<PlannedTables> PlanTables(const Experiment& experiment, const ResolvedModel& model,
                                   const Dataset& dataset, Communicator* communicator) {
  ELASTOR_ASSIGN_OR_RETURN(const RankHosts hosts, FindHosts(*communicator));
  PlannedTables planned;
  Status status;
  std::future<StatusOr<PlannedTables>> choice;
  if (communicator->rank() == 0) {
    const auto of_host = static_cast<int>(hosts.RanksOf(hosts.HostOf(0)).size());
    choice = std::async(std::launch::async, [&, of_host] {
      return Choose(experiment, model, dataset, communicator->size(), of_host);
    });
  }
  // A search for thousands of ranks takes longer than parallel.deadline_seconds: meanwhile rank 0
  // tells that it still searches.
  for (int64_t searches = 1; searches > 0;) {
    searches = choice.valid() && choice.wait_for(kWait) != std::future_status::ready ? 1 : 0;
    ELASTOR_RETURN_IF_ERROR(communicator->AllReduceMax(Phase::kSetup, {&searches, 1}));
  }
  if (choice.valid()) {
    StatusOr<PlannedTables> chosen = choice.get();
    status = chosen.status();
    if (chosen.ok()) planned = *std::move(chosen);
  }
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*communicator, status));
  std::string bytes;
  for (const Placement placement : planned.placements) bytes += static_cast<char>(placement);
  for (std::string* text : {&bytes, &planned.machine, &planned.report}) {
    ELASTOR_RETURN_IF_ERROR(BroadcastText(*communicator, Phase::kSetup, 0, text));
  }
  planned.placements.clear();
  for (const char placement : bytes) {
    planned.placements.push_back(static_cast<Placement>(placement));
  }
  return planned;
}

}  // namespace elastor
