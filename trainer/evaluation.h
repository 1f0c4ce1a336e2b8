#ifndef ELASTOR_TRAINER_EVALUATION_H_
#define ELASTOR_TRAINER_EVALUATION_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "trainer/data/dataset.h"
#include "trainer/metrics.h"
#include "trainer/run_records.h"
#include "trainer/train_step.h"

namespace elastor {

// Passes over a split in file order, every rank computing its leaves' rows. Collective; nothing of
// the training state changes.
class Evaluation {
 public:
  // dataset, communicator, model and step outlive the object. batch_rows: over all ranks.
  Evaluation(const Dataset* dataset, const Model<float>* model, TrainStep<float>* step,
             Communicator* communicator, int64_t leaves, int64_t batch_rows);

  // Metrics over all rows. `predicted` (may be empty) is called with this rank's rows of each
  // batch: index in the split of the first, labels and logits.
  using Predicted = std::function<Status(int64_t first_row, const std::vector<float>& labels,
                                         const std::vector<float>& logits)>;
  StatusOr<MetricValues> Measure(Split split, const Predicted& predicted);

  // Effective ranks of every stage, averaged over the first `samples` rows.
  StatusOr<std::vector<SpectrumRecord>> MeasureSpectrum(Split split, int64_t samples);

 private:
  using Visit = std::function<void(const TrainStep<float>::Evaluated&)>;
  // Calls begin(batch) before and end(batch) after the passes of each batch of the first `rows`.
  Status ForEachBatch(Split split, int64_t rows, const Visit& visit,
                      const std::function<void(const LocalBatch&)>& begin,
                      const std::function<Status(const LocalBatch&)>& end);

  const Dataset* dataset_;
  const Model<float>* model_;
  TrainStep<float>* step_;
  Communicator* communicator_;
  int64_t leaves_;
  int64_t batch_rows_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATION_H_
