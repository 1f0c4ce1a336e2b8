#include "trainer/data/batch_source.h"

#include <algorithm>

#include "glog/logging.h"

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
  prefetcher_.Request(requested_ / steps_per_epoch_, {begin + own.begin, begin + own.end});
  ++requested_;
}

Status BatchSource::Next(LocalBatch* batch) {
  CHECK_LT(delivered_, total_steps());
  ELASTOR_RETURN_IF_ERROR(prefetcher_.Next(&buffer_));
  RequestOne();
  const int64_t begin = delivered_ % steps_per_epoch_ * options_.batch_rows;
  FillLocalBatch(begin, std::min(options_.batch_rows, rows_ - begin), options_.rank, options_.ranks,
                 options_.leaves, static_cast<int64_t>(dataset_->info().categorical.size()),
                 &buffer_, batch);
  LayOutSequences(options_.sequences, batch);
  ++delivered_;
  return OkStatus();
}

}  // namespace elastor
