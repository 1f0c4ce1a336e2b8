// Embedding tables on one device: forward (rows looked up and pooled) and backward (gradients
// summed, their norm, row-wise Adagrad) of a batch of uniform ids, and the share of the bandwidth
// that a copy of device memory reaches in the same run. Prints name=value lines; times are medians
// over rounds, on the device but for ids, which the host waits for.
//
// useful bytes: each lookup's row read and its activation written; each lookup's gradient read and
// each different row's weights and slot read and written. fetched bytes: in whole sectors of 32
// bytes, with the second pass over gradients (norm before update) and the indices of both.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "collective/cuda/device_communicator.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/thread_pool.h"
#include "core/cuda/bfloat16.h"
#include "core/cuda/exact_sum.h"
#include "core/cuda/runtime.h"
#include "embedding/cuda/device_embedding.h"
#include "gflags/gflags.h"

DEFINE_int64(rows, 1'000'000, "rows of each table");
DEFINE_int64(tables, 26, "tables, each with a field of its own");
DEFINE_int64(batch_size, 65'536, "lookups in each table");
DEFINE_int64(leaves, 16, "virtual shards");
DEFINE_int64(rounds, 11, "batches measured");
DEFINE_int64(device_mib, 0, "tables beyond so many MiB lie in the host's memory (0: none)");

namespace elastor::cuda {
namespace {

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Reads and writes, in bytes per second.
double CopyBandwidth(Stream& stream) {
  constexpr int64_t kBytes = int64_t{1} << 30;
  const Buffer<char> from(&stream, kBytes), to(&stream, kBytes);
  FillZero(stream, from.data(), kBytes);
  std::vector<double> seconds;
  for (int round = 0; round < 11; ++round) {
    Event begin, end;
    begin.Record(stream);
    Copy<char>(stream, to.data(), from.data(), kBytes);
    end.Record(stream);
    end.Synchronize();
    seconds.push_back(end.MillisecondsSince(begin) * 1e-3);
  }
  return 2.0 * kBytes / Median(seconds);
}

SparseBatch UniformBatch(uint64_t stream) {
  SparseBatch batch;
  batch.rows = FLAGS_batch_size;
  batch.fields = FLAGS_tables;
  for (int64_t i = 0; i < batch.rows * batch.fields; ++i) {
    const uint32_t word = Philox(stream, {static_cast<uint32_t>(i), 0, 0, 0})[0];
    batch.ids.push_back(
        static_cast<int64_t>(UniformFromBits(word) * static_cast<double>(FLAGS_rows)));
  }
  for (int64_t leaf = 0; leaf <= FLAGS_leaves; ++leaf) {
    batch.leaf_offsets.push_back(leaf * batch.rows / FLAGS_leaves);
  }
  return batch;
}

int64_t CountDifferent(const SparseBatch& batch) {
  int64_t count = 0;
  for (int64_t f = 0; f < batch.fields; ++f) {
    std::vector<bool> seen(FLAGS_rows, false);
    for (int64_t row = 0; row < batch.rows; ++row) {
      const int64_t id = batch.ids[row * batch.fields + f];
      count += !seen[id];
      seen[id] = true;
    }
  }
  return count;
}

struct Bytes {
  double useful = 0;
  double fetched = 0;
};

double InSectors(double bytes) {
  return static_cast<double>((static_cast<int64_t>(bytes) + 31) / 32 * 32);
}

Bytes ForwardBytes(double width, double activation_bytes) {
  const auto lookups = static_cast<double>(FLAGS_batch_size * FLAGS_tables);
  const double row = width * sizeof(float);
  const double written = width * activation_bytes;
  const double index = sizeof(uint32_t) + sizeof(float*);  // unique id, its row's address
  return {lookups * (row + written), lookups * (InSectors(row) + written + index)};
}

Bytes BackwardBytes(double width, double activation_bytes, double different) {
  const auto lookups = static_cast<double>(FLAGS_batch_size * FLAGS_tables);
  const double gradient = width * activation_bytes;
  const double row = (width + 1) * sizeof(float);
  // Key, place of the gradient in two steps, address of the row, sum of squares.
  const double index = 5 * sizeof(int64_t);
  return {lookups * gradient + different * 2 * row,
          lookups * 2 * gradient + different * (2 * InSectors(row) + 2 * index)};
}

void Print(const std::string& name, double milliseconds, const Bytes& bytes, double bandwidth) {
  const double copied = bandwidth * milliseconds * 1e-3;
  std::printf("%s_ms=%.3f\n", name.c_str(), milliseconds);
  std::printf("%s_useful_mb=%.1f\n", name.c_str(), bytes.useful * 1e-6);
  std::printf("%s_fetched_mb=%.1f\n", name.c_str(), bytes.fetched * 1e-6);
  std::printf("%s_useful_share=%.3f\n", name.c_str(), bytes.useful / copied);
  std::printf("%s_fetched_share=%.3f\n", name.c_str(), bytes.fetched / copied);
}

DeviceEmbedding::Options EmbeddingOptions(int64_t width) {
  DeviceEmbedding::Options options;
  for (int64_t t = 0; t < FLAGS_tables; ++t) {
    options.tables.push_back({"table_" + std::to_string(t), FLAGS_rows, width, 0.01});
    options.fields.push_back({"field_" + std::to_string(t), static_cast<int>(t), Pooling::kSum});
  }
  options.optimizer.rule.kind = OptimizerKind::kRowWiseAdagrad;
  options.leaves = FLAGS_leaves;
  options.device_bytes = FLAGS_device_mib << 20;
  return options;
}

// Times of the rounds, in milliseconds.
struct Times {
  std::vector<double> ids, forward, backward;
};

template <typename A>
Times Run(DeviceEmbedding* embedding, Stream& compute, std::span<const SparseBatch> batches) {
  const int64_t features = embedding->output_features();
  const Buffer<A> e(&compute, FLAGS_batch_size * features);
  const auto activations = Activations<A>::RowMajor(e.data(), FLAGS_batch_size, 1, features);
  std::vector<int32_t> numbers(FLAGS_batch_size);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Buffer<int32_t> device_numbers(&compute, FLAGS_batch_size);
  Copy<int32_t>(compute, device_numbers.data(), numbers.data(), FLAGS_batch_size);
  const UpdateGate open;
  const Buffer<UpdateGate> gate(&compute, 1);
  Copy<UpdateGate>(compute, gate.data(), &open, 1);
  const Buffer<DeviceExactSum> sums(&compute, 2);
  const auto routing = embedding->MakeRouting();
  Times times;
  const auto count = static_cast<int64_t>(batches.size());
  // All batches once before: rows come into being, buffers grow.
  for (int64_t round = -count; round < FLAGS_rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    CHECK(embedding->RouteIds(batches[(round + count) % count], routing.get()).ok());
    const std::chrono::duration<double, std::milli> ids = std::chrono::steady_clock::now() - start;
    ClearExactSums(compute, sums.data(), 2);
    Event begin, pooled, updated;
    begin.Record(compute);
    CHECK(embedding->Lookup(DeviceEmbedding::Purpose::kTrain, routing.get()).ok());
    embedding->ReturnRows<A>(*routing, device_numbers.data(), activations);
    pooled.Record(compute);
    // The activations stand for their gradient.
    CHECK(embedding
              ->RouteGradients<A>(FLAGS_batch_size, device_numbers.data(), activations,
                                  routing.get(), sums.data(), sums.data() + 1)
              .ok());
    embedding->Update(gate.data(), 1e-3, 1, routing.get());
    updated.Record(compute);
    updated.Synchronize();
    if (round < 0) continue;
    times.ids.push_back(ids.count());
    times.forward.push_back(pooled.MillisecondsSince(begin));
    times.backward.push_back(updated.MillisecondsSince(pooled));
  }
  return times;
}

template <typename A>
void Measure(const std::string& name, int64_t width, double bandwidth) {
  const DeviceEmbedding::Options options = EmbeddingOptions(width);
  const std::vector<int64_t> bytes_per_row(FLAGS_tables, (width + 1) * 4);
  StatusOr<ShardPlan> plan =
      ShardPlan::Make(PlanKind::kRowWise, options.tables, bytes_per_row, 1, 0);
  CHECK(plan.ok()) << plan.status().message();
  const auto host = MakeSelfCommunicator();
  const auto communicator = MakeHostDeviceCommunicator(host.get());
  Stream compute, route;
  ThreadPool pool(1);
  DeviceEmbedding embedding(options, &*plan, communicator.get(), &compute, &route, &pool);
  const SparseBatch batches[] = {UniformBatch(1), UniformBatch(2)};
  const Times times = Run<A>(&embedding, compute, batches);
  const auto different = static_cast<double>(CountDifferent(batches[0]));
  const auto k = static_cast<double>(width);
  std::printf("%s_ids_ms=%.3f\n", name.c_str(), Median(times.ids));
  Print(name + "_forward", Median(times.forward), ForwardBytes(k, sizeof(A)), bandwidth);
  Print(name + "_backward", Median(times.backward), BackwardBytes(k, sizeof(A), different),
        bandwidth);
}

int Main() {
  const StatusOr<DeviceInfo> device = OpenDevice(0);
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.status().message().c_str());
    return 2;
  }
  if (device.value().emulated) {
    std::fprintf(stderr, "an emulated device has no speed: build with --config=cuda\n");
    return 2;
  }
  Stream stream;
  const double bandwidth = CopyBandwidth(stream);
  std::printf("device=%s\n", device.value().name.c_str());
  std::printf("copy_gb_per_s=%.1f\n", bandwidth * 1e-9);
  Measure<float>("float32_width_128", 128, bandwidth);
  Measure<float>("float32_width_16", 16, bandwidth);
  Measure<BFloat16>("bfloat16_width_128", 128, bandwidth);
  Measure<BFloat16>("bfloat16_width_16", 16, bandwidth);
  return 0;
}

}  // namespace
}  // namespace elastor::cuda

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return elastor::cuda::Main();
}
