#include "core/base/text.h"
#include "trainer/data/input_list.h"
#include "trainer/modes/flags.h"
#include "trainer/modes/mode_rows.h"
#include "trainer/run/inference.h"
#include "trainer/score/score_rows.h"

namespace elastor {
namespace {

Status Check(const RunOptions& /*options*/, const RunContext& context) {
  return CheckPredictions("--mode=predict", context);
}

StatusOr<Measured> MeasurePredict(const RunOptions& options, int64_t /*step*/,
                                  RunContext* context) {
  Measured measured;
  ELASTOR_ASSIGN_OR_RETURN(measured.evaluated, MeasureAndPredict(options, context));
  measured.predictions = PredictionsPath(options);
  return measured;
}

Status RunPredict(const ModeCall& call, Communicator& communicator) {
  return RunInference(call.options, {.check = Check, .measure = MeasurePredict}, communicator);
}

Status Score(const ModeCall& call, Communicator& communicator) {
  if (communicator.size() > 1) {
    return UserError(StrCat("--input: ", communicator.size(),
                            " ranks; expected one, whose work --set=parallel.threads=N shares"));
  }
  const RunOptions& options = call.options;
  ScoreRowsOptions score = {.model_dir = options.model_dir,
                            .inputs = ListedInputs(FLAGS_input),
                            .output_dir = options.output_dir,
                            .logit = options.logit,
                            .threads = options.experiment.parallel().threads(),
                            .max_bad_rows = FLAGS_max_bad_rows};
  return ScoreRows(score);
}

constexpr const char* kPredictFlags[] = {"logits", "split", "tensorboard"};
constexpr const char* kScoringFlags[] = {"input", "logits", "max_bad_rows", "output_dir"};
constexpr const char* kPredictParallel[] = {"threads"};

}  // namespace

const Mode kPredict = {
    .name = "predict",
    .help = "metrics and predictions.csv of a trained model; with --input, scores of raw rows",
    .flags = kPredictFlags,
    .run = RunPredict};

const Mode kScoreRows = {.name = "predict",
                         .help = "",
                         .source = Mode::Source::kModel,
                         .writes = false,
                         .parallel = kPredictParallel,
                         .flags = kScoringFlags,
                         .run = Score};

}  // namespace elastor
