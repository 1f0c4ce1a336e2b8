// The whole training step on one GPU, embeddings included: RankElastor with the paper's Criteo
// settings, batches in the host's memory, each step's upload and ids overlapped with the step
// before as in a training. Prints name=value lines; a round is all batches in turn, times are wall
// time of a round by its steps. The times of phases are the device's, means over the measured
// steps; what they leave of ms_per_step the device spent waiting for the host and for ids.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "gflags/gflags.h"
#include "tests/bench/criteo_like.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/make_options.h"
#include "trainer/run/backend.h"

DEFINE_string(experiment, "configs/scale.textproto", "model, optimizer and virtual shards");
DEFINE_string(set, "", "one override, path.to.field=value");
DEFINE_bool(fused_network, true, "false: RankElastor's per-token network by products");
DEFINE_int32(shards, 0, "virtual shards; 0: the experiment's");
DEFINE_int64(batch, 4096, "rows of a batch");
DEFINE_int64(ids_per_field, 42'308, "rows of a table; the default is 1.1 M over 26 tables");
DEFINE_double(zipf, 1.05, "exponent of the ids' distribution");
DEFINE_int32(threads, 4, "the host's threads");
DEFINE_int32(rounds, 10, "measured rounds; three more are not");
DEFINE_int32(batches, 6, "different batches in memory, taken in turn");

namespace elastor {
namespace {

int Main() {
  std::vector<std::string> overrides = {"training.batch_size=" + std::to_string(FLAGS_batch),
                                        "parallel.threads=" + std::to_string(FLAGS_threads)};
  if (!FLAGS_set.empty()) overrides.push_back(FLAGS_set);
  if (FLAGS_shards > 0) {
    overrides.push_back("parallel.virtual_shards=" + std::to_string(FLAGS_shards));
  }
  const StatusOr<Experiment> loaded = LoadExperiment(FLAGS_experiment, overrides);
  CHECK(loaded.ok()) << loaded.status().message();
  const Experiment& experiment = loaded.value();
  const auto communicator = MakeSelfCommunicator();
  const StatusOr<std::string> device = OpenCudaDevice(*communicator);
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.status().message().c_str());
    return 2;
  }

  const DatasetInfo data = CriteoLikeData(FLAGS_ids_per_field);
  const StatusOr<ShardPlan> plan = MakePlan(experiment, MakeTables(experiment, data), 1);
  CHECK(plan.ok()) << plan.status().message();
  ThreadPool pool(FLAGS_threads);
  const Graph graph = MakeGraph(experiment, data);
  const auto parts = MakeCudaBackend({.experiment = experiment,
                                      .data = &data,
                                      .plan = &plan.value(),
                                      .graph = &graph,
                                      .communicator = communicator.get(),
                                      .pool = &pool,
                                      .fused_network = FLAGS_fused_network});
  CHECK(parts.ok()) << parts.status().message();
  const int64_t leaves = experiment.parallel().virtual_shards();
  std::vector<LocalBatch> batches;
  for (int i = 0; i < FLAGS_batches; ++i) {
    batches.push_back(CriteoLikeBatch(i, FLAGS_batch, FLAGS_ids_per_field, FLAGS_zipf, leaves));
  }

  // The first rounds make rows, capture graphs and let buffers grow.
  constexpr int kWarmUpRounds = 3;
  std::vector<double> milliseconds;  // of a step
  StepTimes before;                  // of the measured rounds
  double loss = 0;
  for (int round = 0; round < kWarmUpRounds + FLAGS_rounds; ++round) {
    if (round == kWarmUpRounds) before = (*parts)->step()->times();
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < FLAGS_batches; ++i) {
      const LocalBatch* const next = &batches[(i + 1) % FLAGS_batches];
      const auto result = (*parts)->step()->Run(batches[i], next, 1e-3, 0);
      CHECK(result.ok()) << result.status().message();
      loss = result->loss;
    }
    if (round >= kWarmUpRounds) milliseconds.push_back(SecondsSince(start) * 1e3 / FLAGS_batches);
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  const size_t count = milliseconds.size();
  const double median = milliseconds[count / 2];
  std::printf("ms_per_step=%.4f\nquartiles_ms=%.4f-%.4f\nsamples_per_s=%.0f\nloss=%.6f\n", median,
              milliseconds[count / 4], milliseconds[count * 3 / 4],
              static_cast<double>(FLAGS_batch) / median * 1e3, loss);
  const StepTimes& after = (*parts)->step()->times();
  const double per_step_ms = 1e3 / (FLAGS_rounds * FLAGS_batches);
  for (int p = static_cast<int>(StepPart::kLookup); p < kStepParts; ++p) {
    const auto part = static_cast<StepPart>(p);
    std::printf("%s_ms=%.4f\n", StepPartName(part), (after[part] - before[part]) * per_step_ms);
  }
  return 0;
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  elastor::StartLog(argv[0]);
  return elastor::Main();
}
