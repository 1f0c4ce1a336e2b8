#include "launcher/comparison/loss_and_gap.h"

#include <optional>

#include "core/base/text.h"
#include "trainer/records/run_files.h"
#include "trainer/records/run_reader.h"

namespace elastor {

StatusOr<LossAndGapRun> ReadLossAndGap(const std::string& folder, int64_t from_step) {
  LossAndGapRun run;
  std::optional<TrainingEvalRecord> training;
  ELASTOR_RETURN_IF_ERROR(ReadRecords(folder, [&](const RunRecord& record) -> Status {
    if (const auto* found = std::get_if<TrainingEvalRecord>(&record.values)) training = *found;
    const auto* eval = std::get_if<EvalRecord>(&record.values);
    if (!eval || eval->split != "validation" || !eval->scheduled) return OkStatus();
    if (record.step < from_step) return OkStatus();
    if (!training || training->step != record.step) {
      return UserError(StrCat("no training rows were evaluated at step ", record.step,
                              "; expected a run with evaluation.train_rows"));
    }
    const double loss = training->metrics.logloss;
    ELASTOR_RETURN_IF_ERROR(CheckFinite("logloss of the training rows", loss));
    const double gap = eval->metrics.logloss - loss;
    ELASTOR_RETURN_IF_ERROR(CheckFinite("gap of the loglosses", gap));
    run.push_back({loss, gap});
    return OkStatus();
  }));
  if (!run.empty()) return run;
  return UserError(StrCat(folder, "/", kMetricsFile,
                          ": no scheduled evaluation of the validation split from step ", from_step,
                          " on; expected one (training.eval_every_steps)"));
}

}  // namespace elastor
