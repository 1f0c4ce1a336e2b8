// The whole training step, embeddings included, against this core's FMA peak measured in the same
// run. Defaults: RankElastor with the paper's Criteo settings, one rank, one thread. Prints
// name=value lines.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "core/spectrum/spectrum.h"
#include "core/spectrum/spectrum_statistics.h"
#include "gflags/gflags.h"
#include "tests/bench/criteo_like.h"
#include "tests/bench/fma_peak.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/make_options.h"
#include "trainer/step/train_step.h"

DEFINE_string(experiment, "configs/scale.textproto", "model, optimizer and virtual shards");
DEFINE_string(set, "", "one override, path.to.field=value");
DEFINE_int64(batch, 4096, "rows of a batch");
DEFINE_int64(ids_per_field, 42'308, "rows of a table; the default is 1.1 M over 26 tables");
DEFINE_double(zipf, 1.05, "exponent of the ids' distribution");
DEFINE_int32(threads, 1, "computing threads");
DEFINE_int32(steps, 24, "measured steps");
DEFINE_int32(batches, 6, "different batches in memory, taken in turn; at least 2");

namespace elastor {
namespace {

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double PeakRssMib() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Wall time of a step's phases, in microseconds a sample.
class Phases {
 public:
  void Add(const StepTimes& before, const StepTimes& after) {
    for (int p = 0; p < kStepParts; ++p) {
      const auto part = static_cast<StepPart>(p);
      times_[p].push_back((after[part] - before[part]) * 1e6 / static_cast<double>(FLAGS_batch));
    }
  }
  void Print() const {
    for (int p = 0; p < kStepParts; ++p) {
      std::printf("%s_us_per_sample=%.3f\n", StepPartName(static_cast<StepPart>(p)),
                  Median(times_[p]));
    }
  }

 private:
  std::array<std::vector<double>, kStepParts> times_;
};

// CPU microseconds a row of the forward passes, and of the spectrum of all probes, and of the last
// five of them, with them.
void PrintSpectrum(const Graph& graph, const std::vector<LocalBatch>& batches,
                   TrainStep<float>* step) {
  std::vector<Spectrum> spectra;
  std::vector<SpectrumStatistics> statistics;
  for (const Probe& probe : graph.probes()) {
    spectra.emplace_back(probe.shape.tokens, probe.shape.width);
    statistics.emplace_back(spectra.back().max_rank());
  }
  const auto measure = [&](size_t first, const EvaluatedRows<float>& pass) {
    for (int64_t row = 0; row < pass.rows; row += Spectrum::kRows) {
      const int64_t rows = std::min(Spectrum::kRows, pass.rows - row);
      for (size_t s = first; s < spectra.size(); ++s) {
        spectra[s].Measure<float>(pass.probe(static_cast<int>(s)), row);
        for (int64_t i = 0; i < rows; ++i) statistics[s].Add(spectra[s], i);
      }
    }
  };
  const auto time = [&](const std::function<void(const EvaluatedRows<float>&)>& visit) {
    std::vector<double> times;
    for (const LocalBatch& batch : batches) {
      const double cpu = ThreadSeconds();
      CHECK(step->Evaluate(batch, visit).ok());
      times.push_back((ThreadSeconds() - cpu) * 1e6 / static_cast<double>(batch.rows()));
    }
    return Median(times);
  };
  std::printf("forward_us_per_sample=%.3f\n", time([](const EvaluatedRows<float>&) {}));
  const size_t five = spectra.size() - std::min<size_t>(spectra.size(), 5);
  std::printf("five_stages_us_per_sample=%.3f\n",
              time([&](const EvaluatedRows<float>& pass) { measure(five, pass); }));
  std::printf("spectrum_us_per_sample=%.3f\n",
              time([&](const EvaluatedRows<float>& pass) { measure(0, pass); }));
  CHECK_EQ(statistics.back().rows(), 2 * FLAGS_batch * FLAGS_batches);
}

void Main() {
  std::vector<std::string> overrides = {"training.batch_size=" + std::to_string(FLAGS_batch),
                                        "parallel.threads=" + std::to_string(FLAGS_threads),
                                        "parallel.overlap=false"};
  if (!FLAGS_set.empty()) overrides.push_back(FLAGS_set);
  const StatusOr<Experiment> loaded = LoadExperiment(FLAGS_experiment, overrides);
  CHECK(loaded.ok()) << loaded.status().message();
  const Experiment& experiment = loaded.value();

  const DatasetInfo data = CriteoLikeData(FLAGS_ids_per_field);
  const std::vector<TableSpec> tables = MakeTables(experiment, data);
  const StatusOr<ShardPlan> plan = MakePlan(experiment, tables, 1);
  CHECK(plan.ok()) << plan.status().message();
  const auto communicator = MakeSelfCommunicator();
  ThreadPool pool(FLAGS_threads);
  const Graph graph = MakeGraph(experiment, data);
  ShardedEmbedding<float>::Options options;
  options.tables = tables;
  options.fields = MakeFields(experiment, data);
  options.optimizer = MakeSparseOptimizer(experiment.optimizer());
  options.leaves = experiment.parallel().virtual_shards();
  ShardedEmbedding<float> embedding(options, &plan.value(), communicator.get(), &pool);
  TrainStep<float> step(MakeTrainStepOptions(experiment, data), &graph, &embedding,
                        communicator.get(), &pool);
  std::vector<LocalBatch> batches;
  for (int i = 0; i < FLAGS_batches; ++i) {
    batches.push_back(
        CriteoLikeBatch(i, FLAGS_batch, FLAGS_ids_per_field, FLAGS_zipf, options.leaves));
  }

  const double flops_per_sample = 6.0 * static_cast<double>(graph.multiply_adds());
  std::vector<double> peaks, rates, wall_rates, shares;
  Phases phases;
  // Not measured: the steps that make rows.
  for (const LocalBatch& batch : batches) CHECK(step.Run(batch, nullptr, 1e-3, 0).ok());
  for (int i = 0; i < FLAGS_steps; ++i) {
    const double peak_before = FmaPeakGflops();
    const StepTimes before = step.times();
    const double wall = WallSeconds();
    const double cpu = ThreadSeconds();
    CHECK(step.Run(batches[i % FLAGS_batches], nullptr, 1e-3, 0).ok());
    const double cpu_seconds = ThreadSeconds() - cpu;
    const double wall_seconds = WallSeconds() - wall;
    phases.Add(before, step.times());
    const double peak = 0.5 * (peak_before + FmaPeakGflops());
    const double rate = static_cast<double>(FLAGS_batch) / cpu_seconds;
    peaks.push_back(peak);
    rates.push_back(rate);
    wall_rates.push_back(static_cast<double>(FLAGS_batch) / wall_seconds);
    shares.push_back(rate * flops_per_sample * 1e-9 / peak);
  }
  std::printf("multiply_adds_per_sample=%lld\n", static_cast<long long>(graph.multiply_adds()));
  std::printf("isa=%s\n", IsaName(ActiveIsa()));
  std::printf("fma_peak_gflops=%.1f\n", Median(peaks));
  std::printf("wall_samples_per_s=%.0f\n", Median(wall_rates));
  std::printf("peak_rss_mib=%.0f\n", PeakRssMib());
  if (FLAGS_threads == 1) {  // CPU time of one thread is the step's only then
    std::printf("samples_per_s=%.0f\n", Median(rates));
    std::printf("share_of_peak=%.3f\n", Median(shares));
    PrintSpectrum(graph, batches, &step);
  }
  phases.Print();
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  elastor::StartLog(argv[0]);
  elastor::Main();
}
