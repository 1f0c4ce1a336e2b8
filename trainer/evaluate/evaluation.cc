#include "trainer/evaluate/evaluation.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "core/spectrum/spectrum_statistics.h"
#include "trainer/evaluate/value_texts.h"

namespace elastor {
namespace {

// What one thread measures of the probes.
class SpectrumWorker {
 public:
  SpectrumWorker(std::span<const Probe> probes, bool unit_tokens) {
    for (const Probe& probe : probes) {
      matrices_.push_back(probe.matrices);
      spectra_.emplace_back(probe.shape.tokens, probe.shape.width, unit_tokens);
      statistics_.emplace_back(spectra_.back().max_rank());
    }
  }

  // ranks: [pass.rows][probes], unless null; of several matrices their means.
  void Measure(const EvaluatedRows<float>& pass, EffectiveRank* ranks) {
    for (int64_t row = 0; row < pass.rows; row += Spectrum::kRows) {
      const int64_t rows = std::min(Spectrum::kRows, pass.rows - row);
      for (size_t s = 0; s < spectra_.size(); ++s) {
        const Panels<const float> all = pass.probe(static_cast<int>(s));
        const int64_t features = all.features / matrices_[s];
        // Changes are those from as many matrices to as many.
        const bool follows = s > 0 && matrices_[s] == matrices_[s - 1];
        before_.resize(matrices_[s] * Spectrum::kRows);
        EffectiveRank mean[Spectrum::kRows] = {};
        for (int64_t m = 0; m < matrices_[s]; ++m) {
          EffectiveRank* const before = before_.data() + m * Spectrum::kRows;
          spectra_[s].Measure<float>(all.Slice(m * features, features), row);
          for (int64_t i = 0; i < rows; ++i) {
            statistics_[s].Add(spectra_[s], i, follows ? &before[i] : nullptr);
            before[i] = spectra_[s].rank(i);
            mean[i].stable += before[i].stable;
            mean[i].entropy += before[i].entropy;
          }
        }
        for (int64_t i = 0; ranks != nullptr && i < rows; ++i) {
          const double share = 1 / static_cast<double>(matrices_[s]);
          ranks[(row + i) * spectra_.size() + s] = {mean[i].stable * share,
                                                    mean[i].entropy * share};
        }
      }
    }
  }
  const std::vector<SpectrumStatistics>& statistics() const { return statistics_; }

 private:
  std::vector<int64_t> matrices_;  // by probe
  std::vector<Spectrum> spectra_;
  std::vector<SpectrumStatistics> statistics_;
  std::vector<EffectiveRank> before_;  // [matrices][kRows] of the probe before
};

// Workers for threads that come and go.
class SpectrumWorkers {
 public:
  SpectrumWorkers(std::span<const Probe> probes, bool unit_tokens)
      : probes_(probes), unit_tokens_(unit_tokens) {}

  void Measure(const EvaluatedRows<float>& pass, EffectiveRank* ranks) {
    std::unique_ptr<SpectrumWorker> worker;
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        worker = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (worker == nullptr) worker = std::make_unique<SpectrumWorker>(probes_, unit_tokens_);
    worker->Measure(pass, ranks);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(worker));
  }
  // Returns every probe's statistics, merged over all workers. REQUIRES: no worker is at work.
  std::vector<SpectrumStatistics> Merged() const {
    std::vector<SpectrumStatistics> merged = SpectrumWorker(probes_, unit_tokens_).statistics();
    for (const auto& worker : idle_) {
      for (size_t s = 0; s < merged.size(); ++s) merged[s].Merge(worker->statistics()[s]);
    }
    return merged;
  }

 private:
  const std::span<const Probe> probes_;
  const bool unit_tokens_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<SpectrumWorker>> idle_;
};

RankRecord MakeRankRecord(const SpectrumStatistics::Distribution& found) {
  return {.mean = found.rank.mean,
          .stddev = found.rank.stddev,
          .histogram = {found.histogram.begin(), found.histogram.end()},
          .change_mean = found.change.mean,
          .change_stddev = found.change.stddev,
          .rising = found.rising,
          .falling = found.falling};
}

}  // namespace

Evaluation::Evaluation(const Dataset* dataset, const Graph* graph, Step<float>* step,
                       Communicator* communicator, const Options& options)
    : dataset_(dataset),
      graph_(graph),
      step_(step),
      communicator_(communicator),
      options_(options) {}

Status Evaluation::ForEachBatch(Split split, const RowOrder& order, int64_t rows,
                                const std::function<Status(const LocalBatch&)>& work) {
  const int64_t fields = static_cast<int64_t>(dataset_->info().categorical.size());
  const int rank = communicator_->rank();
  const int ranks = communicator_->size();
  Rows read;
  LocalBatch batch;
  for (int64_t at = 0; at < rows; at += options_.batch_rows) {
    const int64_t count = std::min(options_.batch_rows, rows - at);
    const Range own = LocalPositions(count, rank, ranks, options_.leaves);
    Status ready = dataset_->Read(split, order, 0, {at + own.begin, at + own.end}, &read);
    if (ready.ok()) {
      FillLocalBatch(at, count, rank, ranks, options_.leaves, fields, &read, &batch);
      ready = LayOutSequences(graph_->features().sequences, &batch);
    }
    if (ready.ok() && stopped_ && stopped_()) ready = StoppedBySignal("an evaluation was stopped");
    ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*communicator_, ready));
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
        ForEachBatch(split, order(split), rows(split), [&](const LocalBatch& batch) {
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

StatusOr<std::vector<MetricValues>> Evaluation::Measure(Split split, const Predicted& predicted) {
  ELASTOR_ASSIGN_OR_RETURN(const NamedSlices* const named, SlicesOf(split));
  return Measure(split, order(split), *named, predicted);
}

StatusOr<std::vector<MetricValues>> Evaluation::MeasureTrainingRows(int64_t count) {
  const NamedSlices none = {Slices({}, dataset_->info()), {}};
  return Measure(Split::kTrain, training_order(count), none, {});
}

StatusOr<std::vector<MetricValues>> Evaluation::Measure(Split split, const RowOrder& order,
                                                        const NamedSlices& named,
                                                        const Predicted& predicted) {
  const Slices& slices = named.slices;
  const std::unique_ptr<Metrics> metrics =
      MakeMetrics(options_.task, {.slices = static_cast<int64_t>(slices.slices().size()),
                                  .grouped = dataset_->info().has_groups,
                                  .weighted = options_.weighted && dataset_->info().has_weights});
  const int64_t outputs = options_.task.outputs();
  const int64_t row_losses = options_.task.losses();
  std::vector<float> logits;
  std::vector<double> losses;
  std::vector<RowSlice> row_slices;
  const auto visit = [&](const EvaluatedRows<float>& pass) {
    for (int64_t i = 0; i < pass.rows; ++i) {
      for (int64_t o = 0; o < outputs; ++o) {
        logits[(pass.begin + i) * outputs + o] = pass.logits.At(i, o);
      }
      std::copy_n(pass.losses + i * row_losses, row_losses, &losses[(pass.begin + i) * row_losses]);
    }
  };
  const auto work = [&](const LocalBatch& batch) -> Status {
    logits.resize(batch.rows() * outputs);
    losses.resize(batch.rows() * row_losses);
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
  ELASTOR_RETURN_IF_ERROR(ForEachBatch(split, order, dataset_->rows(split, order), work));
  ELASTOR_ASSIGN_OR_RETURN(std::vector<MetricValues> all, metrics->Reduce(*communicator_));
  for (MetricValues& values : all) {
    for (size_t s = 0; s < values.slices.size(); ++s) {
      const Slices::Slice& slice = slices.slices()[s];
      values.slices[s].field = dataset_->info().categorical[slice.field].name;
      values.slices[s].id = static_cast<uint64_t>(slice.id);
      if (!named.texts.empty()) values.slices[s].value = named.texts[s];
    }
  }
  return all;
}

Status Evaluation::VisitRows(Split split, int64_t rows, const Visit& visit) {
  return ForEachBatch(split, order(split), rows, [&](const LocalBatch& batch) {
    return step_->Evaluate(batch, [&](const EvaluatedRows<float>& pass) {
      visit(batch.first_index + pass.begin, pass);
    });
  });
}

Status Evaluation::VisitBatches(Split split, const VisitBatch& visit) {
  return ForEachBatch(split, order(split), rows(split), [&](const LocalBatch& batch) {
    return step_->Evaluate(batch, [&](const EvaluatedRows<float>& pass) { visit(batch, pass); });
  });
}

StatusOr<std::vector<SpectrumRecord>> Evaluation::MeasureSpectrum(Split split, int64_t samples,
                                                                  const RanksMeasured& measured) {
  static_assert(kRankBins == SpectrumStatistics::kBins);
  const std::span<const Probe> probes = graph_->probes();
  SpectrumWorkers workers(probes, options_.unit_tokens);
  std::vector<EffectiveRank> ranks;  // [rows of the batch][probes], where somebody asks for them
  const auto visit = [&](const EvaluatedRows<float>& pass) {
    workers.Measure(pass, measured ? &ranks[pass.begin * probes.size()] : nullptr);
  };
  const auto work = [&](const LocalBatch& batch) -> Status {
    if (measured) ranks.resize(batch.rows() * probes.size());
    ELASTOR_RETURN_IF_ERROR(step_->Evaluate(batch, visit));
    return measured ? measured(batch.first_index, ranks) : OkStatus();
  };
  ELASTOR_RETURN_IF_ERROR(ForEachBatch(split, order(split), std::min(samples, rows(split)), work));

  std::vector<SpectrumStatistics> statistics = workers.Merged();
  std::vector<int64_t> words;
  for (const SpectrumStatistics& own : statistics) own.AppendWords(&words);
  ELASTOR_RETURN_IF_ERROR(communicator_->AllReduceSum(Phase::kMetrics, words));
  std::vector<SpectrumRecord> records;
  std::span<const int64_t> rest = words;
  for (size_t s = 0; s < probes.size(); ++s) {
    statistics[s].SetWords(rest.first(statistics[s].word_count()));
    rest = rest.subspan(statistics[s].word_count());
    records.push_back({.step = step_->steps(),
                       .split = SplitName(split),
                       .stage = probes[s].name,
                       .samples = statistics[s].rows(),
                       .max_rank = std::min(probes[s].shape.tokens, probes[s].shape.width),
                       .stable = MakeRankRecord(statistics[s].stable()),
                       .entropy = MakeRankRecord(statistics[s].entropy()),
                       .profile = statistics[s].profile()});
  }
  return records;
}

}  // namespace elastor
