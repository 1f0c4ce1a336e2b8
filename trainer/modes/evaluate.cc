#include <algorithm>

#include "trainer/modes/mode_rows.h"
#include "trainer/run/inference.h"

namespace elastor {
namespace {

// Whether a row has one of the labels that the model learned.
bool HasLabels(const EvalRecord& record) {
  const auto any = [](const MetricValues& values) { return values.rows > 0; };
  return any(record.metrics) || std::ranges::any_of(record.labels, any);
}

StatusOr<Measured> MeasureEvaluate(const RunOptions& options, int64_t /*step*/,
                                   RunContext* context) {
  Measured measured;
  ELASTOR_ASSIGN_OR_RETURN(measured.evaluated, context->Evaluate(options.split, {}));
  if (HasLabels(measured.evaluated)) return measured;
  return UserError(options.experiment.data().path() + ": no row of the " +
                   measured.evaluated.split +
                   " split has a label; expected --mode=predict, which needs none");
}

Status RunEvaluate(const ModeCall& call, Communicator& communicator) {
  return RunInference(call.options, {.measure = MeasureEvaluate}, communicator);
}

constexpr const char* kEvaluateFlags[] = {"split", "tensorboard"};

}  // namespace

const Mode kEvaluate = {.name = "evaluate",
                        .help = "metrics of a trained model on a split",
                        .flags = kEvaluateFlags,
                        .run = RunEvaluate};

}  // namespace elastor
