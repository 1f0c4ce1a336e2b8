#include "trainer/model_files.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/thread_pool.h"
#include "embedding/shard_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trainer/config.h"

namespace elastor {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr int64_t kWidth = 3;
constexpr char kHash[] = "0123456789abcdef";

std::vector<TableSpec> Tables() {
  return {{"long", 10000, kWidth, 0.1}, {"short", 20, kWidth, 0.1}, {"unseen", 7, kWidth, 0.1}};
}

ParameterLayout MakeLayout(const std::vector<int64_t>& weight_shape) {
  ParameterLayout layout;
  layout.Declare("weight", weight_shape, Init::Constant(0), Decay::kDense);
  layout.Declare("bias", {5}, Init::Constant(0), Decay::kNone);
  layout.Finish();
  return layout;
}

// The rows that training touched: table and key -> first weight.
std::map<std::pair<int, int64_t>, float> TouchedRows() {
  std::map<std::pair<int, int64_t>, float> rows;
  for (int64_t key = 0; key < 10000; key += 7) rows[{0, key}] = static_cast<float>(key);
  for (int64_t key : {0, 3, 19}) rows[{1, key}] = static_cast<float>(-key - 1);
  return rows;
}

// What one rank has in memory.
struct Rank {
  Rank(Communicator* communicator, PlanKind kind, std::vector<TableSpec> specs,
       const std::vector<int64_t>& weight_shape)
      : communicator(communicator),
        tables(std::move(specs)),
        plan(*ShardPlan::Make(kind, tables, std::vector<int64_t>(tables.size(), 16),
                              communicator->size(), 0)),
        pool(1),
        embedding({tables, {{"f", 0, Pooling::kSum}}, {}, 1, 16}, &plan, communicator, &pool),
        layout(MakeLayout(weight_shape)),
        dense(layout.flat_size(), -1) {}

  ModelWeights Weights() { return {&layout, dense.data(), &tables, &embedding}; }
  void Fill() {
    for (size_t i = 0; i < dense.size(); ++i) dense[i] = static_cast<float>(i);
    for (const auto& [place, value] : TouchedRows()) {
      const float row[kWidth] = {value, 1, 2};
      embedding.SetRow(place.first, place.second, row, nullptr);
    }
  }

  Communicator* communicator;
  std::vector<TableSpec> tables;
  ShardPlan plan;
  ThreadPool pool;
  ShardedEmbedding<float> embedding;
  ParameterLayout layout;
  std::vector<float> dense;
};

class ModelFilesTest : public testing::Test {
 protected:
  ModelFilesTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = testing::TempDir() + "/model_files_" + test->name();
    std::filesystem::remove_all(directory_);
    EXPECT_TRUE(MakeDirectory(directory_).ok());
    model_ = directory_ + "/model";
  }

  // fn(rank) on `ranks` threads; the status that all must return.
  Status OnRanks(int ranks, PlanKind kind, const std::function<Status(Rank&)>& fn) {
    auto communicators = MakeThreadCommunicators(ranks, {});
    std::vector<Status> statuses(ranks);
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        Rank rank(communicators[r].get(), kind, tables_, weight_shape_);
        statuses[r] = fn(rank);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Status& status : statuses) EXPECT_EQ(status.message(), statuses[0].message());
    return statuses[0];
  }
  Status Save(int ranks, PlanKind kind) {
    return OnRanks(ranks, kind, [&](Rank& rank) {
      rank.Fill();
      return SaveModel(model_, {7, 1, "digest", "numerics", kHash}, rank.Weights(),
                       *rank.communicator);
    });
  }
  std::string LoadError() {
    const Status status = OnRanks(2, PlanKind::kRowWise, [&](Rank& rank) {
      return LoadModel(model_, kHash, rank.Weights(), *rank.communicator).status();
    });
    EXPECT_EQ(status.code(), status.ok() ? StatusCode::kOk : StatusCode::kUser);
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    return status.message();
  }
  void ReplaceInManifest(const std::string& from, const std::string& to) {
    const std::string path = model_ + "/manifest.json";
    std::string text = *ReadFile(path);
    const size_t at = text.find(from);
    ASSERT_NE(at, text.npos) << from;
    ASSERT_TRUE(WriteFileAtomically(path, text.replace(at, from.size(), to)).ok());
  }

  std::string directory_;
  std::string model_;
  std::vector<TableSpec> tables_ = Tables();
  std::vector<int64_t> weight_shape_ = {4, 300};
};

TEST_F(ModelFilesTest, AnyRanksReadWhatAnyRanksWrote) {
  const std::pair<int, PlanKind> spreads[] = {
      {1, PlanKind::kRowWise}, {3, PlanKind::kTableWise}, {5, PlanKind::kReplicated}};
  for (const auto& [writers, written_plan] : spreads) {
    std::filesystem::remove_all(model_);
    ASSERT_EQ(Save(writers, written_plan).message(), "");
    EXPECT_FALSE(std::filesystem::exists(model_ + ".partial"));
    for (const auto& [readers, plan] : spreads) {
      std::mutex mutex;
      std::map<std::pair<int, int64_t>, float> found;
      const Status status = OnRanks(readers, plan, [&](Rank& rank) {
        const auto facts = LoadModel(model_, kHash, rank.Weights(), *rank.communicator);
        if (!facts.ok()) return facts.status();
        EXPECT_EQ(facts->step, 7);
        EXPECT_EQ(facts->epochs, 1);
        EXPECT_EQ(facts->state_digest, "digest");
        EXPECT_EQ(facts->numerics, "numerics");
        for (const ParameterInfo& p : rank.layout.parameters()) {
          for (int64_t i = p.offset; i < p.offset + p.size; ++i) EXPECT_EQ(rank.dense[i], i);
        }
        const std::lock_guard lock(mutex);
        rank.embedding.ForEachRow([&](int t, int64_t key, const float* row, const float*) {
          EXPECT_TRUE((found.insert({{t, key}, row[0]}).second)) << t << " " << key;
          EXPECT_EQ(row[1], 1);
          EXPECT_EQ(row[2], 2);
        });
        return OkStatus();
      });
      EXPECT_EQ(status.message(), "");
      EXPECT_EQ(found, TouchedRows()) << writers << " ranks to " << readers;
    }
  }
}

TEST_F(ModelFilesTest, SaysWhichTensorHasAnotherShape) {
  ASSERT_TRUE(Save(2, PlanKind::kRowWise).ok());
  weight_shape_ = {4, 301};
  EXPECT_EQ(LoadError(), model_ +
                             "/dense.safetensors: tensor 'weight' is F32 [4, 300]; expected "
                             "F32 [4, 301]");
  weight_shape_ = {4, 300};
  tables_[1].width = 2;
  EXPECT_THAT(LoadError(), HasSubstr("embedding-00000-of-00002.safetensors: tensor 'short.rows'"));
  tables_ = Tables();
  tables_[0].rows = 100;
  EXPECT_THAT(LoadError(), HasSubstr("tensor 'long.keys' holds key 112; expected less than 100"));
  tables_ = Tables();
  tables_[2].name = "other";
  EXPECT_THAT(LoadError(), HasSubstr("has no tensor 'other.keys'; expected I64 [any]"));
  tables_ = Tables();
  tables_.pop_back();
  EXPECT_THAT(LoadError(), EndsWith("has 6 tensors; expected 2 for each of the 2 tables"));
}

TEST_F(ModelFilesTest, RefusesAnotherModel) {
  ASSERT_TRUE(Save(1, PlanKind::kRowWise).ok());
  ReplaceInManifest(kHash, "fedcba9876543210");
  EXPECT_THAT(LoadError(), HasSubstr("manifest.json: model_hash fedcba9876543210; expected 01234"));
}

TEST_F(ModelFilesTest, RefusesADamagedOrMissingFile) {
  EXPECT_THAT(LoadError(), AllOf(HasSubstr(model_ + "/manifest.json: open: No such file"),
                                 EndsWith("expected the model folder of a finished run")));
  ASSERT_TRUE(Save(1, PlanKind::kRowWise).ok());
  const std::string rows = model_ + "/embedding-00000-of-00001.safetensors";
  std::string bytes = *ReadFile(rows);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(rows, bytes).ok());
  EXPECT_THAT(LoadError(), HasSubstr(rows + ": the bytes do not match their hash"));
  std::filesystem::remove(rows);
  EXPECT_EQ(LoadError(), rows + ": open: No such file or directory");
}

TEST_F(ModelFilesTest, RefusesAManifestThatPointsElsewhere) {
  for (const char* name : {"../dense.safetensors", "/etc/passwd", "..", "", "a/b"}) {
    std::filesystem::remove_all(model_);
    ASSERT_TRUE(Save(1, PlanKind::kRowWise).ok());
    ReplaceInManifest("\"dense.safetensors\"", std::string("\"") + name + "\"");
    EXPECT_EQ(LoadError(), model_ + "/manifest.json: name '" + name +
                               "'; expected a file in the same directory");
  }
}

TEST_F(ModelFilesTest, RefusesAManifestThatIsNone) {
  ASSERT_TRUE(Save(1, PlanKind::kRowWise).ok());
  ReplaceInManifest("\"version\": 1", "\"version\": 2");
  EXPECT_EQ(LoadError(), model_ + "/manifest.json: version 2; expected 1");
  ReplaceInManifest("\"version\": 2,", "");
  EXPECT_THAT(LoadError(), HasSubstr("manifest.json: "));
  ReplaceInManifest("elastor-model", "something");
  EXPECT_EQ(LoadError(), model_ + "/manifest.json: not the manifest of a model");
  ASSERT_TRUE(WriteFileAtomically(model_ + "/manifest.json", "{\"format\": ").ok());
  EXPECT_THAT(LoadError(), HasSubstr("manifest.json: "));
}

TEST_F(ModelFilesTest, NeverReplacesAModel) {
  ASSERT_TRUE(Save(1, PlanKind::kRowWise).ok());
  const Status again = Save(2, PlanKind::kRowWise);
  EXPECT_EQ(again.code(), StatusCode::kUser);
  EXPECT_EQ(again.message(), model_ + ": rename: Directory not empty");
  EXPECT_EQ(LoadError(), "");
}

TEST(ModelHashTest, KnowsWhatPredictionsDependOn) {
  Experiment experiment;
  DatasetInfo data;
  data.numeric = {{"n"}};
  data.categorical = {{"c", 10}};
  const std::string hash = MakeModelHash(experiment, data);
  EXPECT_EQ(hash.size(), 16u);

  Experiment other = experiment;
  other.mutable_training()->set_max_steps(5);
  other.mutable_optimizer()->set_learning_rate(0.5);
  other.mutable_parallel()->set_virtual_shards(32);
  EXPECT_EQ(MakeModelHash(other, data), hash);

  const std::function<void(Experiment*)> changes[] = {
      [](Experiment* e) { e->mutable_model()->set_blocks(3); },
      [](Experiment* e) { e->mutable_embedding()->set_init_stddev(0.5); },
      [](Experiment* e) { e->mutable_training()->set_seed(1); },
  };
  for (const auto& change : changes) {
    other = experiment;
    change(&other);
    EXPECT_NE(MakeModelHash(other, data), hash) << other.ShortDebugString();
  }
  DatasetInfo wider = data;
  wider.categorical[0].ids = 11;
  EXPECT_NE(MakeModelHash(experiment, wider), hash);
  wider = data;
  wider.categorical[0].mean_pooling = true;
  EXPECT_NE(MakeModelHash(experiment, wider), hash);
}

}  // namespace
}  // namespace elastor
