// Price of a checkpoint: tables of the given size with lazy Adam, all rows initialised, written as
// a training state twice (the second finds the memory of the first), as weights and, with one row
// of a hundred and of ten changed since the second state, as deltas; the state and the last delta
// are verified, and loaded on 1, 2 and 4 ranks (threads of this process). Prints name=value lines;
// rates are of the bytes of the folder that is written or named. The same bytes written plainly to
// one file with write and fsync are the yardstick.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collective/communicator.h"
#include "collective/dense_reduce.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "embedding/key_space.h"
#include "embedding/sharded_embedding.h"
#include "gflags/gflags.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/step/dense_optimizer.h"

DEFINE_string(directory, "", "where to write; removed at the end");
DEFINE_int64(table_mib, 1024, "weights of all tables");
DEFINE_int64(tables, 26, "tables of equal size");
DEFINE_int64(width, 16, "elements of a row");
DEFINE_int64(dense, 530'000, "dense parameters");
DEFINE_int32(threads, 2, "threads of all ranks together");
DEFINE_int64(staging_mib, 16384, "what a rank may copy");
DEFINE_bool(keyed, false, "tables find their rows by 64-bit keys");

namespace elastor {
namespace {

constexpr double kMegabyte = 1e6;

// CPU time of the process, in user space: what a neighbour or a slow first touch of memory moves
// least.
double UserSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec) * 1e-6;
}

ModelIdentity Identity() {
  static const Experiment experiment = [] {
    Experiment defaults;
    ResolveDefaults(&defaults);
    return defaults;
  }();
  static const DatasetInfo data;
  return {experiment, data};
}

std::vector<TableSpec> Tables() {
  const int64_t elements = FLAGS_table_mib * (1 << 20) / static_cast<int64_t>(sizeof(float));
  std::vector<TableSpec> tables;
  for (int64_t t = 0; t < FLAGS_tables; ++t) {
    tables.push_back(
        {"C" + std::to_string(t + 1), elements / FLAGS_tables / FLAGS_width, FLAGS_width, 0.1});
    tables.back().keyed = FLAGS_keyed;
  }
  return tables;
}

ParameterLayout Parameters() {
  ParameterLayout layout;
  layout.Declare("weight", {FLAGS_dense}, Init::Constant(0), Decay::kDense);
  layout.Finish();
  return layout;
}

// One rank's memory.
struct Rank {
  explicit Rank(Communicator* communicator)
      : communicator(communicator),
        plan(*ShardPlan::Make(PlanKind::kRowWise, tables,
                              std::vector<int64_t>(tables.size(), 3 * FLAGS_width * 4),
                              communicator->size(), 0)),
        pool(std::max(1, FLAGS_threads / communicator->size())),
        weights(layout.flat_size(), 1) {
    std::vector<Range> slices;
    for (const Range& bucket : layout.buckets()) {
      slices.push_back(SliceOfRank(bucket, communicator->rank(), communicator->size()));
    }
    DenseOptimizerOptions adam;
    adam.rule.kind = OptimizerKind::kDenseAdam;
    optimizer = std::make_unique<DenseOptimizer<float>>(adam, layout, slices, &pool);
    embedding = std::make_unique<ShardedEmbedding<float>>(
        ShardedEmbedding<float>::Options{tables,
                                         {{"f", 0, Pooling::kSum}},
                                         {},
                                         /*seed=*/1,
                                         /*leaves=*/16,
                                         /*track_touched=*/true},
        &plan, communicator, &pool);
  }

  StateView View() {
    return {&layout, [this] { return weights.data(); }, optimizer.get(), &tables, embedding.get()};
  }
  // Every row whose key is a multiple of the stride.
  void Fill(int64_t stride) {
    std::vector<float> row(3 * FLAGS_width);
    for (size_t t = 0; t < tables.size(); ++t) {
      for (int64_t key = 0; key < tables[t].rows; key += stride) {
        for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(key % 65536 + i);
        embedding->SetRow(static_cast<int>(t),
                          FLAGS_keyed ? static_cast<int64_t>(MixKey(key)) : key, row.data(),
                          row.data() + FLAGS_width);
      }
    }
  }

  Communicator* communicator;
  const std::vector<TableSpec> tables = Tables();
  const ParameterLayout layout = Parameters();
  ShardPlan plan;
  ThreadPool pool;
  std::vector<float> weights;
  std::unique_ptr<DenseOptimizer<float>> optimizer;
  std::unique_ptr<ShardedEmbedding<float>> embedding;
};

int64_t BytesIn(const std::string& directory) {
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    bytes += static_cast<int64_t>(entry.file_size());
  }
  return bytes;
}

// Seconds of writing so many bytes to one file and syncing it.
double PlainWriteSeconds(int64_t bytes) {
  const std::string block(8 << 20, 'x');
  const std::string path = FLAGS_directory + "/plain";
  const Clock::time_point start = Clock::now();
  StatusOr<AtomicFileWriter> writer = AtomicFileWriter::Open(path);
  CHECK(writer.ok()) << writer.status().message();
  for (int64_t left = bytes; left > 0; left -= static_cast<int64_t>(block.size())) {
    const auto size = static_cast<size_t>(std::min<int64_t>(left, block.size()));
    const Status status = writer->Append(std::string_view(block).substr(0, size));
    CHECK(status.ok()) << status.message();
  }
  const Status status = writer->Commit();
  CHECK(status.ok()) << status.message();
  const double seconds = SecondsSince(start);
  std::filesystem::remove(path);
  return seconds;
}

enum class Kind { kState, kDelta, kWeights };

void Write(const std::string& name, Kind kind, CheckpointWriter* writer) {
  const std::string path = FLAGS_directory + "/" + name;
  CheckpointMetadata metadata;
  metadata.contents = kind == Kind::kWeights ? Contents::kWeights : Contents::kState;
  metadata.model_hash = MakeModelHash(Identity());
  metadata.experiment = ExperimentText(Identity().experiment);
  const double user = UserSeconds();
  const Clock::time_point start = Clock::now();
  const Status started =
      kind == Kind::kDelta ? writer->StartDelta(path, metadata) : writer->Start(path, metadata);
  CHECK(started.ok()) << started.message();
  const double blocked = SecondsSince(start);
  const double blocked_user = UserSeconds() - user;
  const auto finished = writer->Finish();
  CHECK(finished.ok()) << finished.status().message();
  CHECK_EQ(finished->base.has_value(), kind == Kind::kDelta);
  const double total = SecondsSince(start);
  std::printf("%s_start_user_s=%.3f\n%s_write_user_s=%.3f\n", name.c_str(), blocked_user,
              name.c_str(), UserSeconds() - user);
  const auto bytes = static_cast<double>(BytesIn(path));
  const double plain = PlainWriteSeconds(BytesIn(path));
  std::printf("%s_bytes=%.0f\n%s_start_s=%.3f\n%s_write_s=%.3f\n", name.c_str(), bytes,
              name.c_str(), blocked, name.c_str(), total);
  std::printf("%s_start_mb_per_s=%.0f\n%s_write_mb_per_s=%.0f\n", name.c_str(),
              bytes / blocked / kMegabyte, name.c_str(), bytes / total / kMegabyte);
  std::printf("%s_plain_write_s=%.3f\n%s_of_plain_write=%.2f\n", name.c_str(), plain, name.c_str(),
              total / plain);
}

// Calls work(rank) on so many ranks; seconds of the slowest.
template <typename Work>
double SecondsOnRanks(int ranks, const Work& work) {
  const auto communicators = MakeThreadCommunicators(ranks, {});
  std::vector<double> seconds(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      Rank rank(communicators[r].get());
      const Clock::time_point start = Clock::now();
      const Status status = work(rank);
      CHECK(status.ok()) << status.message();
      seconds[r] = SecondsSince(start);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return *std::max_element(seconds.begin(), seconds.end());
}

// Loads and verifies what was written.
void Read(const char* name) {
  const std::string path = FLAGS_directory + "/" + name;
  const auto bytes = static_cast<double>(BytesIn(path));
  for (const int ranks : {1, 2, 4}) {
    const double user = UserSeconds();
    const double seconds = SecondsOnRanks(ranks, [&](Rank& rank) {
      return LoadCheckpoint(path, Contents::kState, Identity(), rank.View(), *rank.communicator)
          .status();
    });
    std::printf("load_%s_on_%d_s=%.3f\nload_%s_on_%d_mb_per_s=%.0f\nload_%s_on_%d_user_s=%.3f\n",
                name, ranks, seconds, name, ranks, bytes / seconds / kMegabyte, name, ranks,
                UserSeconds() - user);
  }
  const double seconds = SecondsOnRanks(FLAGS_threads, [&](Rank& rank) {
    return VerifyCheckpoint(path, *rank.communicator).status();
  });
  std::printf("verify_%s_s=%.3f\nverify_%s_mb_per_s=%.0f\n", name, seconds, name,
              bytes / seconds / kMegabyte);
}

void Main() {
  CHECK(!FLAGS_directory.empty()) << "--directory is needed";
  CHECK(MakeDirectory(FLAGS_directory).ok());
  SecondsOnRanks(1, [](Rank& rank) {
    rank.Fill(1);
    CheckpointWriter writer(rank.View(), FLAGS_staging_mib << 20, rank.communicator);
    Write("first_state", Kind::kState, &writer);
    Write("state", Kind::kState, &writer);
    Write("weights", Kind::kWeights, &writer);
    rank.Fill(100);
    Write("delta_of_1_percent", Kind::kDelta, &writer);
    rank.Fill(10);
    Write("delta", Kind::kDelta, &writer);
    return OkStatus();
  });
  for (const char* name : {"state", "delta"}) Read(name);
  CHECK(RemoveDirectory(FLAGS_directory).ok());
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  elastor::StartLog(argv[0]);
  elastor::Main();
  return 0;
}
