#include "tests/trainer/checkpoint/checkpoint_testing.h"

#include <filesystem>
#include <thread>
#include <utility>

#include "collective/dense_reduce.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "gtest/gtest.h"
#include "tests/embedding/embedding_batches.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/config_defaults.h"

namespace elastor {
namespace {

constexpr int64_t kBucketElements = 1024;
constexpr int64_t kLeaves = 16;

// Different for every (seed, kind of value, place).
float ValueAt(int seed, int kind, int64_t place) {
  return static_cast<float>(seed) + 0.25f * static_cast<float>(kind) +
         0.001f * static_cast<float>(place % 1009);
}

ParameterLayout MakeParameters(const SmallModel& model) {
  ParameterLayout layout(kBucketElements);
  layout.Declare("weight", model.weight_shape, Init::Constant(0), Decay::kDense);
  layout.Declare("bias", {5}, Init::Constant(0), Decay::kNone);
  layout.Declare("gain", {1}, Init::Constant(0), Decay::kNone);
  layout.Finish();
  return layout;
}

GlobalBatch BatchOf(const std::vector<int64_t>& keys) {
  GlobalBatch batch;
  for (const int64_t key : keys) batch.bags.push_back({{key}});
  return batch;
}

OptimizerOptions Rule(OptimizerKind kind) {
  OptimizerOptions options;
  options.kind = kind;
  options.initial_accumulator = 0.125;
  return options;
}

}  // namespace

StateRank::StateRank(const SmallModel& model, const Layout& layout, Communicator* communicator)
    : communicator(communicator),
      tables(model.tables),
      plan(*ShardPlan::Make(layout.plan, tables, std::vector<int64_t>(tables.size(), 16),
                            layout.ranks, 0)),
      pool(layout.threads),
      parameters(MakeParameters(model)),
      weights(parameters.flat_size(), 0) {
  std::vector<Range> slices;
  for (const Range& bucket : parameters.buckets()) {
    slices.push_back(SliceOfRank(bucket, communicator->rank(), layout.ranks));
  }
  DenseOptimizerOptions options;
  options.rule = Rule(model.dense);
  optimizer = std::make_unique<DenseOptimizer<float>>(options, parameters, slices, &pool);
  embedding = std::make_unique<ShardedEmbedding<float>>(
      ShardedEmbedding<float>::Options{tables,
                                       {{"f", 0, Pooling::kSum}},
                                       {Rule(model.sparse)},
                                       /*seed=*/1,
                                       kLeaves,
                                       model.track_touched,
                                       model.track_unpublished},
      &plan, communicator, &pool);
}

void StateRank::Fill(int seed) {
  for (const ParameterInfo& p : parameters.parameters()) {
    for (int64_t i = p.offset; i < p.offset + p.size; ++i) weights[i] = ValueAt(seed, 0, i);
  }
  for (size_t b = 0; b < parameters.buckets().size(); ++b) {
    const Range slice =
        SliceOfRank(parameters.buckets()[b], communicator->rank(), communicator->size());
    std::vector<float> values(slice.size());
    for (int64_t slot = 0; slot < optimizer->slots(); ++slot) {
      for (int64_t i = slice.begin; i < slice.end; ++i) {
        values[i - slice.begin] = ValueAt(seed, 1 + static_cast<int>(slot), i);
      }
      optimizer->SetSlot(slot, static_cast<int>(b), values.data());
    }
  }
  // Of a row: its weights are the same with any optimizer.
  constexpr int64_t kMostElements = 256;
  const auto set_row = [&](int table, int64_t key) {
    const int64_t width = tables[table].width;
    const int64_t elements = width + SlotElements(embedding->optimizer_kind(), width) +
                             (tables[table].keeps_use ? kUseElements : 0);
    std::vector<float> row(elements);
    for (int64_t i = 0; i < elements; ++i) row[i] = ValueAt(seed, table, key * kMostElements + i);
    embedding->SetRow(table, key, row.data(), row.data() + width);
  };
  for (int64_t key = seed % 3; key < tables[0].rows; key += 3) set_row(0, key);
  if (!tables[1].looked_up()) return;
  for (const int64_t key : {0, 3, 19}) set_row(1, key);
}

void StateRank::MarkUnpublished(const std::vector<int64_t>& keys) {
  const auto routing = embedding->MakeRouting();
  const SparseBatch mine =
      RankBatch(BatchOf(keys), /*fields=*/1, communicator->rank(), communicator->size(), kLeaves);
  CHECK(embedding->RouteIds(mine, routing.get()).ok());
  embedding->MarkUnpublished(*routing);
}

void StateRank::Train(const std::vector<int64_t>& keys, int64_t step) {
  const GlobalBatch batch = BatchOf(keys);
  const SparseBatch mine =
      RankBatch(batch, /*fields=*/1, communicator->rank(), communicator->size(), kLeaves);
  const auto routing = embedding->MakeRouting();
  CHECK(embedding->RouteIds(mine, routing.get()).ok());
  CHECK(embedding->Lookup(ShardedEmbedding<float>::Purpose::kTrain, routing.get()).ok());
  const int64_t features = embedding->output_features();
  std::vector<float> memory(PanelElements(mine.rows, features), 0.5f);
  embedding->TakeGradients(0, {memory.data(), mine.rows, features, PanelStride(features)},
                           routing.get());
  ExactSum norm, weights_norm;
  CHECK(embedding->RouteGradients(batch.rows(), routing.get(), &norm, &weights_norm).ok());
  embedding->Update(/*scale=*/1, /*learning_rate=*/0.1, step, routing.get());
}

std::string StateRank::Digest(const ControlRecord& control) {
  const StatusOr<std::string> digest = StateDigest(control, View(), *communicator);
  CHECK(digest.ok()) << digest.status().message();
  return *digest;
}

Status OnRanks(const SmallModel& model, const Layout& layout,
               const std::function<Status(StateRank&)>& fn) {
  auto communicators = MakeThreadCommunicators(layout.ranks, {.deadline_seconds = 600});
  std::vector<Status> statuses(layout.ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < layout.ranks; ++r) {
    threads.emplace_back([&, r] {
      StateRank rank(model, layout, communicators[r].get());
      statuses[r] = fn(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), statuses[0].code());
    EXPECT_EQ(status.message(), statuses[0].message());
  }
  return statuses[0];
}

ModelIdentity SomeModel() {
  static const Experiment experiment = [] {
    Experiment model;
    model.set_name("a \"model\"");
    ResolveDefaults(&model);
    return model;
  }();
  static const DatasetInfo data = [] {
    DatasetInfo info;
    info.numeric = {{"n", "standardize", 0.5, 2}};
    info.categorical = {{"long", 10000, false, false, -1, "vocabulary", "", "0123456789abcdef"}};
    return info;
  }();
  return {experiment, data};
}

CheckpointMetadata SomeMetadata(Contents contents) {
  CheckpointMetadata metadata;
  metadata.contents = contents;
  metadata.control.set_step(7);
  metadata.control.set_position(33);
  metadata.control.set_learning_rate(0.1);
  metadata.control.set_best_metric(-1.0 / 3);
  metadata.state_digest = "given";
  metadata.numerics = "numerics";
  metadata.model_hash = MakeModelHash(SomeModel());
  metadata.numeric_hash = "numeric";
  metadata.experiment =
      "# " + std::string(3000, 'a') + "\n" + ExperimentText(SomeModel().experiment);
  metadata.data = "data";
  metadata.encoding = EncodingOf(SomeModel().data);
  return metadata;
}

Status Save(const SmallModel& model, const Layout& layout, const std::string& path,
            Contents contents, int seed, std::string* digest) {
  return OnRanks(model, layout, [&](StateRank& rank) -> Status {
    rank.Fill(seed);
    const CheckpointMetadata metadata = SomeMetadata(contents);
    const std::string found = rank.Digest(metadata.control);
    if (rank.communicator->rank() == 0) *digest = found;
    CheckpointWriter writer(rank.View(), kStaging, rank.communicator);
    ELASTOR_RETURN_IF_ERROR(writer.Start(path, metadata));
    return writer.Finish().status();
  });
}

std::string ScratchDirectory() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test->test_suite_name()) + "_" + test->name();
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  const std::string directory = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(directory);
  CHECK(MakeDirectory(directory).ok());
  return directory;
}

}  // namespace elastor
