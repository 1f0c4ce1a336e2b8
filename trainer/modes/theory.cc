#include "trainer/evaluate/theory.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "core/base/text.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/modes/mode_rows.h"
#include "trainer/records/run_files.h"
#include "trainer/run/inference.h"

namespace elastor {
namespace {

// Refuses models without the matrices that the theorems are about.
Status CheckTheoryModel(const RunOptions& options) {
  const ModelConfig& config = options.experiment.model();
  const TokenModelConfig* const tokens = TokenModelOf(config);
  if (tokens == nullptr) {
    return UserError("model: " + KindName(*ChosenModel(config)) +
                     "; expected RANK_ELASTOR or RANK_MIXER, which --mode=theory is about");
  }
  const int64_t iterations =
      std::max(tokens->iterations(), options.experiment.evaluation().iterations());
  if (iterations == 1) return OkStatus();
  return UserError(StrCat("model.iterations: ", iterations,
                          "; expected 1: the theorems are about blocks with weights of their own"));
}

// Measures the whole table, on `samples` rows; the weights are the initial ones afterwards.
StatusOr<std::vector<TheoryRow>> MeasureTheoryTable(const RunOptions& options, int64_t samples,
                                                    RunContext* context) {
  const uint64_t seed = options.experiment.training().seed();
  const TheoryModel model = {.graph = &context->model.graph,
                             .config = &context->experiment.model(),
                             .weights = context->step().weights(),
                             .seed = seed};
  const auto measure = [&](const std::string& representation) {
    return MeasureTheory(representation, model, options.split, samples, &context->evaluation(),
                         context->communicator);
  };
  std::vector<TheoryRow> rows = CountParameters(model);
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<TheoryRow> random,
                           MeasureRandomTheory(model, options.split, samples,
                                               &context->evaluation(), context->communicator));
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<TheoryRow> trained, measure("trained"));
  context->State().embedding->ForgetRows();
  context->model.graph.parameters().Initialize(seed, context->step().weights());
  context->step().WeightsChanged();
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<TheoryRow> initial, measure("initial"));
  for (const auto* part : {&random, &initial, &trained}) {
    rows.insert(rows.end(), part->begin(), part->end());
  }
  return rows;
}

StatusOr<Measured> MeasureTheory(const RunOptions& options, int64_t /*step*/, RunContext* context) {
  Measured measured;
  measured.rows =
      std::min(options.experiment.spectrum().samples(), context->evaluation().rows(options.split));
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<TheoryRow> table,
                           MeasureTheoryTable(options, measured.rows, context));
  measured.csv_name = kTheoryFile;
  measured.csv = TheoryCsv(table);
  measured.text = TheoryText(table);
  return measured;
}

Status RunTheory(const ModeCall& call, Communicator& communicator) {
  ELASTOR_RETURN_IF_ERROR(CheckTheoryModel(call.options));
  return RunInference(call.options, {.measure = MeasureTheory}, communicator);
}

constexpr const char* kTheoryFlags[] = {"split", "tensorboard"};

}  // namespace

const Mode kTheory = {.name = "theory",
                      .help = "RankElastor's theorems tested on a trained model",
                      .flags = kTheoryFlags,
                      .run = RunTheory};

}  // namespace elastor
