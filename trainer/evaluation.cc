#include "trainer/evaluation.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/exact_sum.h"
#include "core/spectrum/spectrum.h"
#include "trainer/batch.h"

namespace elastor {

Evaluation::Evaluation(const Dataset* dataset, const Model<float>* model, TrainStep<float>* step,
                       Communicator* communicator, int64_t leaves, int64_t batch_rows)
    : dataset_(dataset),
      model_(model),
      step_(step),
      communicator_(communicator),
      leaves_(leaves),
      batch_rows_(batch_rows) {}

Status Evaluation::ForEachBatch(Split split, int64_t rows, const Visit& visit,
                                const std::function<void(const LocalBatch&)>& begin,
                                const std::function<Status(const LocalBatch&)>& end) {
  const RowOrder file_order{.shuffled = false};
  const int64_t fields = static_cast<int64_t>(dataset_->info().categorical.size());
  const int rank = communicator_->rank();
  const int ranks = communicator_->size();
  Rows read;
  LocalBatch batch;
  for (int64_t at = 0; at < rows; at += batch_rows_) {
    const int64_t count = std::min(batch_rows_, rows - at);
    const Range own = LocalPositions(count, rank, ranks, leaves_);
    ELASTOR_RETURN_IF_ERROR(
        AgreeOnStatus(*communicator_,
                      dataset_->Read(split, file_order, 0, {at + own.begin, at + own.end}, &read)));
    FillLocalBatch(at, count, rank, ranks, leaves_, fields, &read, &batch);
    begin(batch);
    ELASTOR_RETURN_IF_ERROR(step_->Evaluate(batch, visit));
    ELASTOR_RETURN_IF_ERROR(end(batch));
  }
  return OkStatus();
}

StatusOr<MetricValues> Evaluation::Measure(Split split, const Predicted& predicted) {
  BinaryMetrics metrics;
  std::vector<float> logits;
  std::vector<double> losses;
  const auto visit = [&](const TrainStep<float>::Evaluated& pass) {
    for (int64_t i = 0; i < pass.pass.rows; ++i) {
      logits[pass.begin + i] = pass.logits.At(i, 0);
      losses[pass.begin + i] = pass.losses[i];
    }
  };
  const auto begin = [&](const LocalBatch& batch) {
    logits.resize(batch.rows());
    losses.resize(batch.rows());
  };
  const auto end = [&](const LocalBatch& batch) {
    metrics.Add(logits, batch.labels, losses);
    return predicted ? predicted(batch.first_index, batch.labels, logits) : OkStatus();
  };
  ELASTOR_RETURN_IF_ERROR(ForEachBatch(split, dataset_->rows(split), visit, begin, end));
  return metrics.Reduce(*communicator_);
}

StatusOr<std::vector<SpectrumRecord>> Evaluation::MeasureSpectrum(Split split, int64_t samples) {
  const std::vector<Stage>& stages = model_->stages();
  // Ranks of every row of a batch, [row][stage][stable, entropy], so that threads do not share.
  std::vector<std::array<double, 2>> ranks;
  std::vector<std::array<ExactSum, 2>> sums(stages.size());
  const auto visit = [&](const TrainStep<float>::Evaluated& pass) {
    for (size_t s = 0; s < stages.size(); ++s) {
      Spectrum spectrum(stages[s].tokens, stages[s].width);
      const Panels<const float> x =
          model_->StageOutput(pass.pass, pass.embeddings, static_cast<int>(s));
      for (int64_t i = 0; i < pass.pass.rows; ++i) {
        const EffectiveRank rank = spectrum.Measure<float>(x, i);
        ranks[(pass.begin + i) * stages.size() + s] = {rank.stable, rank.entropy};
      }
    }
  };
  const auto begin = [&](const LocalBatch& batch) { ranks.resize(batch.rows() * stages.size()); };
  const auto end = [&](const LocalBatch&) {
    for (size_t i = 0; i < ranks.size(); ++i) {
      for (int kind : {0, 1}) sums[i % stages.size()][kind].Add(ranks[i][kind]);
    }
    return OkStatus();
  };
  const int64_t rows = std::min(samples, dataset_->rows(split));
  ELASTOR_RETURN_IF_ERROR(ForEachBatch(split, rows, visit, begin, end));

  std::vector<SpectrumRecord> records;
  for (size_t s = 0; s < stages.size(); ++s) {
    SpectrumRecord record{.step = step_->steps(), .stage = stages[s].name};
    double* const means[] = {&record.stable_rank_mean, &record.entropy_rank_mean};
    for (int kind : {0, 1}) {
      auto words = sums[s][kind].ToWords();
      ELASTOR_RETURN_IF_ERROR(communicator_->AllReduceSum(Phase::kMetrics, words));
      *means[kind] = ExactSum::FromWords(words).Value() / static_cast<double>(rows);
    }
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace elastor
