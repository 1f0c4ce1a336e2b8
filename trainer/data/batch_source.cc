#include "trainer/data/batch_source.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"

namespace elastor {
namespace {

constexpr int64_t kReadAhead = 3;  // batches, with one reader; one more for each other

}  // namespace

BatchSource::BatchSource(const Dataset* dataset, const RowOrder& order, const Options& options)
    : dataset_(dataset),
      options_(options),
      rows_(dataset->rows(Split::kTrain, order)),
      steps_per_epoch_((rows_ + options.batch_rows - 1) / options.batch_rows),
      requested_(options.first_step),
      delivered_(options.first_step),
      prefetcher_(dataset, Split::kTrain, order, options.readers) {
  for (int64_t i = 0; i < kReadAhead + options.readers - 1; ++i) RequestOne();
}

void BatchSource::RequestOne() {
  if (requested_ == total_steps()) return;
  const int64_t begin = requested_ % steps_per_epoch_ * options_.batch_rows;
  const int64_t batch = std::min(options_.batch_rows, rows_ - begin);
  const Range own = LocalPositions(batch, options_.rank, options_.ranks, options_.leaves);
  if (spare_.empty()) spare_.emplace_back();
  LocalBatch* const made = &batches_.emplace_back(std::move(spare_.back()));
  spare_.pop_back();
  prefetcher_.Request(requested_ / steps_per_epoch_, {begin + own.begin, begin + own.end},
                      [=, this](Rows* rows) { return MakeBatch(begin, batch, rows, made); });
  ++requested_;
}

Status BatchSource::MakeBatch(int64_t begin, int64_t size, Rows* rows, LocalBatch* batch) const {
  std::unique_ptr<StagedIds> memory = std::move(batch->sparse.staged);
  FillLocalBatch(begin, size, options_.rank, options_.ranks, options_.leaves,
                 static_cast<int64_t>(dataset_->info().categorical.size()), rows, batch);
  ELASTOR_RETURN_IF_ERROR(LayOutSequences(options_.sequences, batch));
  if (options_.stage != nullptr) {
    batch->sparse.staged = options_.stage(batch->sparse, std::move(memory));
  }
  return OkStatus();
}

Status BatchSource::Next(LocalBatch* batch) {
  CHECK_LT(delivered_, total_steps());
  const Status status = prefetcher_.Next();
  if (status.ok()) std::swap(*batch, batches_.front());
  spare_.push_back(std::move(batches_.front()));
  batches_.pop_front();
  ELASTOR_RETURN_IF_ERROR(status);
  RequestOne();
  ++delivered_;
  return OkStatus();
}

}  // namespace elastor
