#include "launcher/comparison/loss_and_gap.h"

#include <cmath>

#include "trainer/records/run_files.h"
#include "trainer/records/run_reader.h"

namespace elastor {

StatusOr<LossAndGapRun> ReadLossAndGap(const std::string& folder, int64_t from_step) {
  LossAndGapRun run;
  double loss = 0;
  int records = 0;
  ELASTOR_RETURN_IF_ERROR(ReadRecords(folder, [&](const RunRecord& record) -> Status {
    if (const auto* train = std::get_if<TrainRecord>(&record.values)) {
      ELASTOR_RETURN_IF_ERROR(CheckFinite("loss", train->loss));
      loss += train->loss;
      ++records;
    }
    const auto* eval = std::get_if<EvalRecord>(&record.values);
    if (!eval || eval->split != "validation" || !eval->scheduled || records == 0) return OkStatus();
    const double mean = loss / records;
    loss = records = 0;
    if (record.step < from_step) return OkStatus();
    const double gap = eval->metrics.logloss - mean;
    ELASTOR_RETURN_IF_ERROR(CheckFinite("gap of logloss to loss", gap));
    run.push_back({mean, gap});
    return OkStatus();
  }));
  if (!run.empty()) return run;
  return UserError(folder + "/" + kMetricsFile +
                   ": no scheduled evaluation of the validation split from step " +
                   std::to_string(from_step) +
                   " on, after a training record; expected one (training.eval_every_steps, "
                   "training.log_every_steps)");
}

}  // namespace elastor
