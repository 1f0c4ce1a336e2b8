#ifndef ELASTOR_TRAINER_EVALUATE_EVALUATION_H_
#define ELASTOR_TRAINER_EVALUATE_EVALUATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/spectrum/spectrum.h"
#include "trainer/data/batch.h"
#include "trainer/data/dataset.h"
#include "trainer/evaluate/metrics.h"
#include "trainer/evaluate/slices.h"
#include "trainer/records/spectrum_record.h"
#include "trainer/step/step.h"

namespace elastor {

// Passes over a split in file order; every rank computes its leaves' rows. Collective. The training
// state does not change.
class Evaluation {
 public:
  struct Options {
    Task task = {};
    int64_t leaves = 16;
    int64_t batch_rows = 4096;  // over all ranks
    int64_t train_rows = 0;  // the training split ends after this many rows; 0: it has all of them
    SliceOptions slices = {};       // REQUIRES: ValidateSlices accepts them
    std::string dataset_path = {};  // source of the texts of slices' values; empty: no texts
    bool weighted = false;          // weighted AUC and gAUC as well, if the data set has weights
    bool unit_tokens = false;       // of Spectrum
  };
  // dataset, communicator, graph and step outlive the object.
  Evaluation(const Dataset* dataset, const Graph* graph, Step<float>* step,
             Communicator* communicator, const Options& options);

  // From now on a pass over a split ends before its next batch, with kStopped on all ranks, once
  // `stopped` returns true on any rank. Null: passes go on to their ends.
  void StopWhen(std::function<bool()> stopped) { stopped_ = std::move(stopped); }

  // Returns file order, in which a split is passed over, with the number of its rows.
  RowOrder order(Split split) const {
    return {.shuffled = false, .first_rows = split == Split::kTrain ? options_.train_rows : 0};
  }
  int64_t rows(Split split) const { return dataset_->rows(split, order(split)); }

  // Measures every learned label over all rows and slices, with gAUC if the data set has groups.
  // The first call chooses the split's slices in a separate pass over its ids; only rank 0 knows
  // the texts of their values. `predicted` (may be empty) is called with this rank's rows of each
  // batch: the first row's index in the split, labels [rows][task's labels] and logits
  // [rows][task's outputs].
  using Predicted = std::function<Status(int64_t first_row, const std::vector<float>& labels,
                                         const std::vector<float>& logits)>;
  StatusOr<std::vector<MetricValues>> Measure(Split split, const Predicted& predicted);

  // Measures every learned label over `count` rows of the training split, or all if there are
  // fewer. They are spread evenly (RowOrder::spread_rows), so their mean stands for the split's
  // where rows change with time. No slices are measured. REQUIRES: count > 0.
  StatusOr<std::vector<MetricValues>> MeasureTrainingRows(int64_t count);
  // Returns the order of these rows.
  RowOrder training_order(int64_t count) const {
    RowOrder spread = order(Split::kTrain);
    spread.spread_rows = count;
    return spread;
  }

  // Calls visit with every pass over this rank's rows among the first `rows` of a split. Calls run
  // on the computing threads, several at once. first_row is the index in the split of the pass's
  // first row. REQUIRES: the split has as many rows.
  using Visit = std::function<void(int64_t first_row, const EvaluatedRows<float>& pass)>;
  Status VisitRows(Split split, int64_t rows, const Visit& visit);

  // Like VisitRows for a whole split. The visitor also gets the batch that the pass belongs to.
  using VisitBatch = std::function<void(const LocalBatch& batch, const EvaluatedRows<float>& pass)>;
  Status VisitBatches(Split split, const VisitBatch& visit);

  // Measures the effective ranks of every probe over the first `samples` rows. `measured` (may be
  // empty) is called with this rank's rows of each batch: the first row's index in the split, and
  // the ranks [rows][probes]. REQUIRES: samples > 0, and the split has rows.
  using RanksMeasured =
      std::function<Status(int64_t first_row, std::span<const EffectiveRank> ranks)>;
  StatusOr<std::vector<SpectrumRecord>> MeasureSpectrum(Split split, int64_t samples,
                                                        const RanksMeasured& measured);

 private:
  // Calls work with this rank's part of each batch of the order's first `rows`.
  Status ForEachBatch(Split split, const RowOrder& order, int64_t rows,
                      const std::function<Status(const LocalBatch&)>& work);
  // Slices and, on rank 0, the texts of their values.
  struct NamedSlices {
    Slices slices;
    std::vector<std::string> texts;
  };
  StatusOr<std::vector<MetricValues>> Measure(Split split, const RowOrder& order,
                                              const NamedSlices& named, const Predicted& predicted);
  StatusOr<const NamedSlices*> SlicesOf(Split split);
  StatusOr<std::vector<std::string>> TextsOf(const Slices& slices) const;

  const Dataset* dataset_;
  const Graph* graph_;
  Step<float>* step_;
  Communicator* communicator_;
  Options options_;
  std::function<bool()> stopped_;
  std::optional<NamedSlices> slices_[3];  // by split
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_EVALUATION_H_
