#include "trainer/experiment/describe.h"

#include <memory>
#include <string>
#include <utility>

#include "configs/proto/machine.pb.h"
#include "core/base/file.h"
#include "core/process/claimed_folder.h"
#include "trainer/cost/advice.h"
#include "trainer/cost/machine.h"
#include "trainer/cost/prediction.h"
#include "trainer/data/dataset.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/make_options.h"
#include "trainer/experiment/resolved_model.h"
#include "trainer/modes/flags.h"
#include "trainer/modes/mode_rows.h"

namespace elastor {
namespace {

// Writes scaling.svg into --output_dir.
Status WritePicture(const std::string& picture) {
  ELASTOR_ASSIGN_OR_RETURN(ClaimedFolder claimed, ClaimedFolder::Claim(FLAGS_output_dir));
  ELASTOR_RETURN_IF_ERROR(claimed.CheckIsEmpty("a new directory for scaling.svg"));
  ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(FLAGS_output_dir + "/scaling.svg", picture));
  claimed.Keep();
  return OkStatus();
}

// A field's name may be no UTF-8: such bytes become U+FFFD.
Status PrintJson(const Json& json, Communicator& communicator) {
  return PrintOnce(json.dump(2) + "\n", communicator);
}

Status ShowScaling(Predictor* predictor, const Machine& machine, const Experiment& experiment,
                   Communicator& communicator) {
  ELASTOR_ASSIGN_OR_RETURN(const Scaling scaling, PredictScaling(predictor, experiment, FLAGS_ranks,
                                                                 FLAGS_ranks_per_host));
  if (!FLAGS_output_dir.empty()) {
    const Status written = communicator.rank() == 0
                               ? WritePicture(ScalingPicture(scaling, machine.name()))
                               : OkStatus();
    ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, written));
  }
  return PrintOnce(ScalingTable(scaling), communicator);
}

Status RunDescribe(const ModeCall& call, Communicator& communicator) {
  const Experiment& experiment = call.options.experiment;
  ELASTOR_RETURN_IF_ERROR(ValidateRanks(experiment, FLAGS_ranks));
  DatasetInfo info = AssumedData(experiment.data().shape());
  std::unique_ptr<Dataset> dataset;
  if (const std::string& path = experiment.data().path(); !path.empty()) {
    ELASTOR_ASSIGN_OR_RETURN(dataset, Dataset::Open(path));
    info = dataset->info();
  }
  if (FLAGS_scaling && FLAGS_advise) {
    return UserError("--scaling and --advise: expected one of them");
  }
  const std::string& path = FLAGS_machine.empty() ? experiment.parallel().machine() : FLAGS_machine;
  if ((FLAGS_scaling || FLAGS_advise || FLAGS_ranks_per_host != 0) && path.empty()) {
    return UserError(StrCat(FLAGS_scaling  ? "--scaling"
                            : FLAGS_advise ? "--advise"
                                           : "--ranks_per_host",
                            ": is of a prediction; expected --machine=FILE or parallel.machine "
                            "beside it"));
  }
  ELASTOR_ASSIGN_OR_RETURN(
      Json json, Describe(experiment, info, FLAGS_ranks, FLAGS_ranks_per_host, FLAGS_rows));
  if (path.empty()) return PrintJson(json, communicator);
  ELASTOR_ASSIGN_OR_RETURN(const Machine machine, ReadMachine(path));
  ELASTOR_ASSIGN_OR_RETURN(const ResolvedModel model, ResolveModel(experiment, info));
  Predictor predictor(&experiment, &machine, &model, &info, dataset.get());
  if (FLAGS_scaling) return ShowScaling(&predictor, machine, experiment, communicator);
  if (experiment.parallel().plan() == ParallelConfig::PLANNED) {
    ELASTOR_ASSIGN_OR_RETURN(const PlanSearch planned,
                             predictor.SearchPlan(FLAGS_ranks, FLAGS_ranks_per_host,
                                                  experiment.training().batch_size()));
    ELASTOR_ASSIGN_OR_RETURN(json, Describe(experiment, info, FLAGS_ranks, FLAGS_ranks_per_host,
                                            FLAGS_rows, planned.placements));
  }
  ELASTOR_ASSIGN_OR_RETURN(json["prediction"], PredictionJson(&predictor, experiment, machine, info,
                                                              FLAGS_ranks, FLAGS_ranks_per_host));
  if (FLAGS_advise) {
    ELASTOR_ASSIGN_OR_RETURN(json["prediction"]["advice"],
                             AdviceJson(experiment, machine, model, info, dataset.get(),
                                        FLAGS_ranks, FLAGS_ranks_per_host));
  }
  return PrintJson(json, communicator);
}

constexpr const char* kDescribeFlags[] = {"advise",         "machine", "output_dir", "ranks",
                                          "ranks_per_host", "rows",    "scaling"};

}  // namespace

const Mode kDescribe = {
    .name = "describe",
    .help = "prints parameters, FLOPs, memory and shard plan as JSON; with --machine a step's time",
    .source = Mode::Source::kExperiment,
    .model = Mode::Model::kNone,
    .writes = false,
    .flags = kDescribeFlags,
    .run = RunDescribe};

}  // namespace elastor
