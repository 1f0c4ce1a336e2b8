// How long one call of the forward pass takes that predictions are made of, ids to logits, on one
// thread with the rows of the embedding tables in memory: median and 99th percentile of wall time,
// for 1, 16 and 256 rows. Beside them the floor: the time to read the dense weights once, at the
// rate at which this core reads as many bytes over and over. Prints name=value lines.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "core/kernels/cpu/vec.h"
#include "gflags/gflags.h"
#include "tests/bench/criteo_like.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/make_options.h"
#include "trainer/step/train_step.h"

DEFINE_string(experiments,
              "configs/criteo/rank_elastor.textproto,configs/criteo/rank_mixer.textproto,"
              "configs/criteo/mlp.textproto,configs/criteo/dcn_v2.textproto",
              "models");
DEFINE_int64(ids_per_field, 42'308, "rows of a table; the default is 1.1 M over 26 tables");
DEFINE_double(zipf, 1.05, "exponent of the ids' distribution");
DEFINE_int32(batches, 128, "different batches in memory, taken in turn");
DEFINE_int32(rows, 0, "of a call; 0: 1, 16 and 256 in turn");
DEFINE_double(seconds, 0.5, "measured for each model and number of rows");

namespace elastor {
namespace {

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// REQUIRES: values ascend.
double Quantile(const std::vector<double>& values, double q) {
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

// Seconds to read so many floats that lie where they were left by the reading before.
double ReadSeconds(const std::vector<float>& weights) {
  constexpr int kSums = 8;
  std::vector<double> times;
  for (int round = 0; round < 200; ++round) {
    const double begin = WallSeconds();
    FloatVec sums[kSums] = {};
    const float* p = weights.data();
    const float* const end = p + weights.size() - kSums * kLanes<float> + 1;
    for (; p < end; p += kSums * kLanes<float>) {
      for (int i = 0; i < kSums; ++i) sums[i] += Load(p + i * kLanes<float>);
    }
    for (const FloatVec& sum : sums) asm volatile("" : : "x"(sum));
    times.push_back(WallSeconds() - begin);
  }
  std::sort(times.begin(), times.end());
  return Quantile(times, 0.5);
}

void Measure(const std::string& name, const Experiment& experiment, const DatasetInfo& data) {
  const std::vector<TableSpec> tables = MakeTables(experiment, data);
  const StatusOr<ShardPlan> plan = MakePlan(experiment, tables, 1);
  CHECK(plan.ok()) << plan.status().message();
  const auto communicator = MakeSelfCommunicator();
  ThreadPool pool(1);
  const Graph graph = MakeGraph(experiment, data);
  ShardedEmbedding<float>::Options options;
  options.tables = tables;
  options.fields = MakeFields(experiment, data);
  options.optimizer = MakeSparseOptimizer(experiment.optimizer());
  options.leaves = experiment.parallel().virtual_shards();
  ShardedEmbedding<float> embedding(options, &plan.value(), communicator.get(), &pool);
  TrainStep<float> step(MakeTrainStepOptions(experiment, data), &graph, &embedding,
                        communicator.get(), &pool);
  const std::vector<float> weights(graph.parameters().flat_size());
  const double floor_us = 1e6 * ReadSeconds(weights);
  std::printf("%s_weights_read_us=%.1f\n", name.c_str(), floor_us);
  for (const int64_t rows : {1, 16, 256}) {
    if (FLAGS_rows != 0 && rows != FLAGS_rows) continue;
    std::vector<LocalBatch> batches;
    for (int i = 0; i < FLAGS_batches; ++i) {
      batches.push_back(CriteoLikeBatch(i, rows, FLAGS_ids_per_field, FLAGS_zipf, options.leaves));
    }
    double checksum = 0;
    std::vector<double> times;
    const double end = WallSeconds() + FLAGS_seconds;
    for (size_t i = 0; WallSeconds() < end; ++i) {
      const double begin = WallSeconds();
      CHECK(
          step.Evaluate(batches[i % batches.size()],
                        [&](const EvaluatedRows<float>& pass) { checksum += pass.logits.At(0, 0); })
              .ok());
      times.push_back(WallSeconds() - begin);
    }
    CHECK(checksum == checksum);
    std::sort(times.begin(), times.end());
    const double p50_us = 1e6 * Quantile(times, 0.5);
    std::printf("%s_rows%lld_p50_us=%.1f p99_us=%.1f floor_share=%.2f\n", name.c_str(),
                static_cast<long long>(rows), p50_us, 1e6 * Quantile(times, 0.99),
                floor_us / p50_us);
  }
}

void Main() {
  const DatasetInfo data = CriteoLikeData(FLAGS_ids_per_field);
  // Dense-equivalent Adam has all rows made from the start.
  const std::vector<std::string> overrides = {"parallel.threads=1", "parallel.overlap=false",
                                              "optimizer.sparse=DENSE_ADAM"};
  std::string rest = FLAGS_experiments;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string path = rest.substr(0, comma);
    rest.erase(0, comma + 1);
    const StatusOr<Experiment> loaded = LoadExperiment(path, overrides);
    CHECK(loaded.ok()) << loaded.status().message();
    const size_t slash = path.rfind('/') + 1;
    Measure(path.substr(slash, path.rfind('.') - slash), loaded.value(), data);
  }
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  elastor::StartLog(argv[0]);
  elastor::Main();
}
