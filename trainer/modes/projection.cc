#include <vector>

#include "core/base/file.h"
#include "core/process/standard_streams.h"
#include "trainer/evaluate/rank_projection.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/modes/mode_rows.h"
#include "trainer/records/run_files.h"
#include "trainer/run/inference.h"

namespace elastor {
namespace {

// Refuses models without tokens or matrices whose rank can be cut.
Status CheckModel(const RunOptions& options) {
  const ModelConfig& config = options.experiment.model();
  if (TokenModelOf(config) != nullptr || config.has_matrix_thinker()) return OkStatus();
  return UserError("model: " + KindName(*ChosenModel(config)) +
                   "; expected RANK_ELASTOR, RANK_MIXER or MATRIX_THINKER, which "
                   "--mode=projection is about");
}

Status Run(const ModeCall& call, Communicator& communicator) {
  ELASTOR_RETURN_IF_ERROR(CheckModel(call.options));
  std::vector<RankProjection> projections;
  const auto measure = [&](const RunOptions& options, int64_t /*step*/,
                           RunContext* context) -> StatusOr<Measured> {
    Measured measured;
    measured.rows = context->dataset->rows(options.split);
    ELASTOR_ASSIGN_OR_RETURN(
        projections, MeasureProjections(context->HeadModel(), options.split, &context->evaluation(),
                                        context->communicator));
    return measured;
  };
  // projections.csv, and the same on stdout.
  const auto write = [&](const RunOptions& options, const Measured& /*measured*/, int64_t /*step*/,
                         RunContext* context) -> Status {
    if (context->communicator->rank() != 0) return OkStatus();
    ELASTOR_RETURN_IF_ERROR(context->log->CheckInPlace());
    ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(options.output_dir + "/" + kProjectionsFile,
                                                ProjectionsCsv(projections)));
    return WriteToStdout(ProjectionsText(projections, MeasureScoring(context->HeadModel())));
  };
  return RunInference(call.options, {.measure = measure, .write = write}, communicator);
}

constexpr const char* kFlags[] = {"tensorboard"};

}  // namespace

const Mode kProjection = {
    .name = "projection",
    .help = "metrics of a trained model with its last tokens cut to lower ranks",
    .flags = kFlags,
    .run = Run};

}  // namespace elastor
