// Latency of elastor_score_ids on one thread: score_benchmark --model=RUN/model [--rows=1]
// [--calls=2000] [--seed=1]. Random ids and numbers, encoded before the clock starts. Prints the
// CPU time of every call in microseconds, a line each (tools/peers/score_latency.py makes a table
// of it).
#include <time.h>

#include <cstdio>
#include <random>
#include <vector>

#include "gflags/gflags.h"
#include "trainer/score/elastor_score.h"
#include "trainer/score/scorer.h"

DEFINE_string(model, "", "RUN/model");
DEFINE_int64(rows, 1, "a call");
DEFINE_int64(calls, 2000, "after 100 that warm up");
DEFINE_int64(seed, 1, "of the ids");

namespace {

double CpuMicroseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  char error[512] = "";
  elastor_model* model = nullptr;
  if (elastor_open(FLAGS_model.c_str(), &model, error, sizeof(error)) != ELASTOR_OK) {
    std::fprintf(stderr, "%s\n", error);
    return 2;
  }
  const auto scorer = elastor::Scorer::Open(FLAGS_model, nullptr);
  const elastor::EmbeddingLayout& layout = (*scorer)->layout();
  std::mt19937_64 random(FLAGS_seed);
  std::normal_distribution<float> normal;
  constexpr int kBatches = 64;
  const size_t numbers = FLAGS_rows * elastor_numeric_fields(model);
  std::vector<std::vector<float>> numeric(kBatches);
  std::vector<std::vector<int64_t>> ids(kBatches);
  for (int b = 0; b < kBatches; ++b) {
    for (size_t i = 0; i < numbers; ++i) numeric[b].push_back(normal(random));
    for (int64_t row = 0; row < FLAGS_rows; ++row) {
      for (int64_t f = 0; f < layout.fields(); ++f) {
        ids[b].push_back(static_cast<int64_t>(
            random() % static_cast<uint64_t>(layout.table(layout.field(f).table).rows)));
      }
    }
  }
  std::vector<float> probabilities(FLAGS_rows * elastor_outputs(model));
  std::vector<double> times;
  for (int64_t call = -100; call < FLAGS_calls; ++call) {
    const int64_t b = (call + 100) % kBatches;
    const double begin = CpuMicroseconds();
    if (elastor_score_ids(model, numeric[b].data(), ids[b].data(), nullptr, FLAGS_rows,
                          probabilities.data(), error, sizeof(error)) != ELASTOR_OK) {
      std::fprintf(stderr, "%s\n", error);
      return 2;
    }
    if (call >= 0) times.push_back(CpuMicroseconds() - begin);
  }
  for (const double us : times) std::printf("%.3f\n", us);
  elastor_close(model);
}
