// How fast prepared rows are read, in shuffled order, with one reader and with several: name=value
// lines. The data set comes from memory after the first pass, as for one that fits the page cache.
#include <cstdio>
#include <string>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "gflags/gflags.h"
#include "trainer/data/batch_source.h"

DEFINE_string(data, "", "a prepared data set");
DEFINE_int64(batch, 65536, "rows of a batch");
DEFINE_int32(readers, 1, "threads that read ahead");
DEFINE_int64(epochs, 2, "passes; the first one is not measured");

namespace elastor {
namespace {

void Main() {
  const auto dataset = Dataset::Open(FLAGS_data);
  CHECK(dataset.ok()) << dataset.status().message();
  BatchSource source(
      dataset->get(), RowOrder{},
      {.batch_rows = FLAGS_batch, .leaves = 1, .epochs = FLAGS_epochs, .readers = FLAGS_readers});
  const int64_t warm = source.steps_per_epoch();
  LocalBatch batch;
  for (int64_t i = 0; i < warm; ++i) CHECK(source.Next(&batch).ok());
  const Clock::time_point start = Clock::now();
  int64_t rows = 0;
  for (int64_t i = warm; i < source.total_steps(); ++i) {
    CHECK(source.Next(&batch).ok());
    rows += batch.rows();
  }
  std::printf("rows=%lld\nreaders=%d\nrows_per_s=%.0f\n", static_cast<long long>(rows),
              FLAGS_readers, static_cast<double>(rows) / SecondsSince(start));
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  elastor::Main();
}
