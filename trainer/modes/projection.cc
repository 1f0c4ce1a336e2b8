#include <vector>

#include "trainer/evaluate/rank_projection.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/modes/mode_rows.h"
#include "trainer/records/run_files.h"
#include "trainer/run/inference.h"

namespace elastor {
namespace {

// Refuses models without tokens or matrices whose rank can be cut.
Status CheckHeadModel(const RunOptions& options) {
  const ModelConfig& config = options.experiment.model();
  if (TokenModelOf(config) != nullptr || config.has_matrix_thinker()) return OkStatus();
  return UserError("model: " + KindName(*ChosenModel(config)) +
                   "; expected RANK_ELASTOR, RANK_MIXER or MATRIX_THINKER, which "
                   "--mode=projection is about");
}

StatusOr<Measured> MeasureProjection(const RunOptions& options, int64_t /*step*/,
                                     RunContext* context) {
  Measured measured;
  measured.rows = context->evaluation().rows(options.split);
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<RankProjection> projections,
                           MeasureProjections(context->HeadModel(), options.split,
                                              &context->evaluation(), context->communicator));
  measured.csv_name = kProjectionsFile;
  measured.csv = ProjectionsCsv(projections);
  measured.text = ProjectionsText(projections, MeasureScoring(context->HeadModel()));
  return measured;
}

Status RunProjection(const ModeCall& call, Communicator& communicator) {
  ELASTOR_RETURN_IF_ERROR(CheckHeadModel(call.options));
  return RunInference(call.options, {.measure = MeasureProjection}, communicator);
}

constexpr const char* kProjectionFlags[] = {"split", "tensorboard"};

}  // namespace

const Mode kProjection = {
    .name = "projection",
    .help = "metrics of a trained model with its last tokens cut to lower ranks",
    .flags = kProjectionFlags,
    .run = RunProjection};

}  // namespace elastor
