#include "trainer/evaluate/evaluation.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "core/spectrum/spectrum.h"
#include "core/spectrum/spectrum_statistics.h"
#include "trainer/evaluate/value_texts.h"

namespace elastor {
namespace {

SpectrumStatistics MeasurePass(const Probe& probe, int64_t rows, const Panels<const float>& x) {
  Spectrum spectrum(probe.shape.tokens, probe.shape.width);
  SpectrumStatistics statistics(spectrum.max_rank());
  for (int64_t row = 0; row < rows; row += Spectrum::kRows) {
    spectrum.Measure<float>(x, row);
    for (int64_t i = 0; i < std::min(Spectrum::kRows, rows - row); ++i) statistics.Add(spectrum, i);
  }
  return statistics;
}

SpectrumRecord MakeRecord(const Probe& probe, const SpectrumStatistics& statistics) {
  const auto stable = statistics.stable();
  const auto entropy = statistics.entropy();
  SpectrumRecord record;
  record.stage = probe.name;
  record.samples = statistics.rows();
  record.max_rank = std::min(probe.shape.tokens, probe.shape.width);
  record.stable_rank_mean = stable.mean;
  record.entropy_rank_mean = entropy.mean;
  record.stable_rank_stddev = stable.stddev;
  record.entropy_rank_stddev = entropy.stddev;
  record.stable_rank_histogram.assign(stable.histogram.begin(), stable.histogram.end());
  record.entropy_rank_histogram.assign(entropy.histogram.begin(), entropy.histogram.end());
  record.profile = statistics.profile();
  return record;
}

}  // namespace

Evaluation::Evaluation(const Dataset* dataset, const Graph* graph, Step<float>* step,
                       Communicator* communicator, const Options& options)
    : dataset_(dataset),
      graph_(graph),
      step_(step),
      communicator_(communicator),
      options_(options) {}

Status Evaluation::ForEachBatch(Split split, int64_t rows,
                                const std::function<Status(const LocalBatch&)>& work) {
  const RowOrder file_order{.shuffled = false};
  const int64_t fields = static_cast<int64_t>(dataset_->info().categorical.size());
  const int rank = communicator_->rank();
  const int ranks = communicator_->size();
  Rows read;
  LocalBatch batch;
  for (int64_t at = 0; at < rows; at += options_.batch_rows) {
    const int64_t count = std::min(options_.batch_rows, rows - at);
    const Range own = LocalPositions(count, rank, ranks, options_.leaves);
    ELASTOR_RETURN_IF_ERROR(
        AgreeOnStatus(*communicator_,
                      dataset_->Read(split, file_order, 0, {at + own.begin, at + own.end}, &read)));
    FillLocalBatch(at, count, rank, ranks, options_.leaves, fields, &read, &batch);
    ELASTOR_RETURN_IF_ERROR(work(batch));
  }
  return OkStatus();
}

StatusOr<const Evaluation::NamedSlices*> Evaluation::SlicesOf(Split split) {
  std::optional<NamedSlices>& named = slices_[static_cast<int>(split)];
  if (named) return &*named;
  Slices slices(options_.slices, dataset_->info());
  StatusOr<std::vector<std::string>> texts(std::vector<std::string>{});
  if (slices.any_field()) {
    ELASTOR_RETURN_IF_ERROR(
        ForEachBatch(split, dataset_->rows(split), [&](const LocalBatch& batch) {
          slices.Count(batch.sparse);
          return OkStatus();
        }));
    ELASTOR_RETURN_IF_ERROR(slices.Choose(*communicator_));
    if (communicator_->rank() == 0) texts = TextsOf(slices);
    ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*communicator_, texts.status()));
  }
  named.emplace(NamedSlices{std::move(slices), std::move(texts).value()});
  return &*named;
}

StatusOr<std::vector<std::string>> Evaluation::TextsOf(const Slices& slices) const {
  std::vector<std::string> all(slices.slices().size());
  if (options_.dataset_path.empty()) return all;
  std::map<int64_t, std::map<int64_t, std::string>> by_field;
  for (const auto& [field, id, rows] : slices.slices()) by_field[field][id];
  for (auto& [field, texts] : by_field) {
    ELASTOR_RETURN_IF_ERROR(FindValueTexts(options_.dataset_path, dataset_->info(), field, &texts));
  }
  for (size_t s = 0; s < all.size(); ++s) {
    const Slices::Slice& slice = slices.slices()[s];
    all[s] = by_field[slice.field][slice.id];
  }
  return all;
}

StatusOr<MetricValues> Evaluation::Measure(Split split, const Predicted& predicted) {
  ELASTOR_ASSIGN_OR_RETURN(const NamedSlices* const named, SlicesOf(split));
  const Slices& slices = named->slices;
  const std::unique_ptr<Metrics> metrics = MakeMetrics(
      options_.task, static_cast<int64_t>(slices.slices().size()), dataset_->info().has_groups);
  const int64_t outputs = options_.task.outputs();
  std::vector<float> logits;
  std::vector<double> losses;
  std::vector<RowSlice> row_slices;
  const auto visit = [&](const EvaluatedRows<float>& pass) {
    for (int64_t i = 0; i < pass.rows; ++i) {
      for (int64_t o = 0; o < outputs; ++o) {
        logits[(pass.begin + i) * outputs + o] = pass.logits.At(i, o);
      }
      losses[pass.begin + i] = pass.losses[i];
    }
  };
  const auto work = [&](const LocalBatch& batch) -> Status {
    logits.resize(batch.rows() * outputs);
    losses.resize(batch.rows());
    ELASTOR_RETURN_IF_ERROR(step_->Evaluate(batch, visit));
    slices.Find(batch.sparse, &row_slices);
    metrics->Add({.logits = logits,
                  .labels = batch.labels,
                  .losses = losses,
                  .weights = batch.weights,
                  .groups = batch.groups,
                  .slices = row_slices});
    return predicted ? predicted(batch.first_index, batch.labels, logits) : OkStatus();
  };
  ELASTOR_RETURN_IF_ERROR(ForEachBatch(split, dataset_->rows(split), work));
  ELASTOR_ASSIGN_OR_RETURN(MetricValues values, metrics->Reduce(*communicator_));
  for (size_t s = 0; s < values.slices.size(); ++s) {
    const Slices::Slice& slice = slices.slices()[s];
    values.slices[s].field = dataset_->info().categorical[slice.field].name;
    values.slices[s].id = slice.id;
    if (!named->texts.empty()) values.slices[s].value = named->texts[s];
  }
  return values;
}

Status Evaluation::VisitRows(Split split, int64_t rows, const Visit& visit) {
  return ForEachBatch(split, rows, [&](const LocalBatch& batch) {
    return step_->Evaluate(batch, [&](const EvaluatedRows<float>& pass) {
      visit(batch.first_index + pass.begin, pass);
    });
  });
}

StatusOr<std::vector<SpectrumRecord>> Evaluation::MeasureSpectrum(Split split, int64_t samples) {
  const std::span<const Probe> probes = graph_->probes();
  std::vector<SpectrumStatistics> statistics;  // of every probe; by all threads
  for (const Probe& probe : probes) {
    statistics.emplace_back(std::min(probe.shape.tokens, probe.shape.width));
  }
  std::mutex mutex;
  const auto visit = [&](const EvaluatedRows<float>& pass) {
    for (size_t s = 0; s < probes.size(); ++s) {
      const SpectrumStatistics own =
          MeasurePass(probes[s], pass.rows, pass.probe(static_cast<int>(s)));
      const std::lock_guard lock(mutex);
      statistics[s].Merge(own);
    }
  };
  const int64_t rows = std::min(samples, dataset_->rows(split));
  ELASTOR_RETURN_IF_ERROR(ForEachBatch(
      split, rows, [&](const LocalBatch& batch) { return step_->Evaluate(batch, visit); }));

  std::vector<int64_t> words;
  for (const SpectrumStatistics& own : statistics) own.AppendWords(&words);
  ELASTOR_RETURN_IF_ERROR(communicator_->AllReduceSum(Phase::kMetrics, words));
  std::vector<SpectrumRecord> records;
  std::span<const int64_t> rest = words;
  for (size_t s = 0; s < probes.size(); ++s) {
    statistics[s].SetWords(rest.first(statistics[s].word_count()));
    rest = rest.subspan(statistics[s].word_count());
    records.push_back(MakeRecord(probes[s], statistics[s]));
    records.back().step = step_->steps();
    records.back().split = SplitName(split);
  }
  return records;
}

}  // namespace elastor
