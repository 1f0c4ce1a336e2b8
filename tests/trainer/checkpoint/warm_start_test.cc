#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trainer/checkpoint/checkpoint_testing.h"
#include "trainer/checkpoint/checkpoint.h"

namespace elastor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class WarmStartTest : public testing::Test {
 protected:
  WarmStartTest() {
    std::string digest;
    EXPECT_TRUE(Save({}, {2}, path_, Contents::kState, 1, &digest).ok());
    config_.set_path(path_);
  }

  // Starts a fresh state on 3 ranks. After it: dense weights; first weight and last slot of rows.
  Status Start() {
    dense_.clear();
    rows_.clear();
    std::mutex mutex;
    return OnRanks(model_, {3, PlanKind::kAuto}, [&](StateRank& rank) -> Status {
      ELASTOR_ASSIGN_OR_RETURN(WarmStartReport report,
                               WarmStart(config_, data_, rank.View(), *rank.communicator));
      const std::string digest = rank.Digest({});
      const std::lock_guard lock(mutex);
      report_ = std::move(report);
      digest_ = digest;
      dense_ = rank.weights;
      rank.embedding->ForEachRow([&](int t, int64_t key, const float* w, const float* slots) {
        const int64_t elements =
            SlotElements(rank.embedding->optimizer_kind(), rank.tables[t].width);
        rows_[{t, key}] = {w[0], elements > 0 ? slots[elements - 1] : -1};
      });
      return OkStatus();
    });
  }
  std::string StartError() {
    const Status status = Start();
    EXPECT_EQ(status.code(), status.ok() ? StatusCode::kOk : StatusCode::kUser);
    return status.message();
  }
  // The state that was saved, in the model's places.
  void GetSaved() {
    EXPECT_TRUE(OnRanks({}, {1}, [&](StateRank& rank) {
                  rank.Fill(1);
                  saved_digest_ = rank.Digest({});
                  saved_dense_ = rank.weights;
                  rank.embedding->ForEachRow([&](int t, int64_t key, const float* w, const float*) {
                    saved_rows_[{t, key}] = w[0];
                  });
                  return OkStatus();
                }).ok());
  }

  SmallModel model_;
  DatasetInfo data_ = SomeModel().data;
  WarmStartConfig config_;
  const std::string path_ = ScratchDirectory() + "/checkpoint";
  WarmStartReport report_;
  std::string digest_;
  std::vector<float> dense_;
  std::map<std::pair<int, int64_t>, std::pair<float, float>> rows_;
  std::string saved_digest_;
  std::vector<float> saved_dense_;
  std::map<std::pair<int, int64_t>, float> saved_rows_;
};

TEST_F(WarmStartTest, TakesAllWeights) {
  GetSaved();
  ASSERT_EQ(StartError(), "");
  EXPECT_THAT(report_.taken, ElementsAre("weight", "bias", "gain", "long", "short", "unseen"));
  EXPECT_THAT(report_.left, IsEmpty());
  EXPECT_THAT(report_.fresh, IsEmpty());
  EXPECT_EQ(report_.metadata.control.step(), 7);
  EXPECT_EQ(dense_, saved_dense_);
  ASSERT_EQ(rows_.size(), saved_rows_.size());
  for (const auto& [place, row] : rows_) {
    EXPECT_EQ(row.first, saved_rows_[place]);
    EXPECT_EQ(row.second, 0);
  }
}

TEST_F(WarmStartTest, TakesTheOptimizersStateToo) {
  GetSaved();
  config_.set_optimizer_state(true);
  ASSERT_EQ(StartError(), "");
  EXPECT_EQ(digest_, saved_digest_);
  model_.sparse = OptimizerKind::kAdagrad;
  EXPECT_THAT(StartError(), HasSubstr("table 'long' has columns rows 3, m 3, v 3; expected rows 3, "
                                      "a 3, those of the optimizer"));
  model_ = {};
  model_.dense = OptimizerKind::kAdagrad;
  EXPECT_THAT(StartError(), HasSubstr("has no tensor 'weight/a'"));
  std::string digest;
  ASSERT_TRUE(Save({}, {2}, path_, Contents::kWeights, 1, &digest).ok());
  EXPECT_THAT(StartError(), HasSubstr("optimizer_state expects 'state'"));
  config_.set_optimizer_state(false);
  EXPECT_EQ(StartError(), "");
}

// A step's number is no count of occurrences.
TEST_F(WarmStartTest, UsesOfAnotherPolicyAreRefused) {
  model_.tables[0].keyed = model_.tables[0].keeps_use = true;
  // Uses of counts are steps, whatever the policy of the table.
  model_.tables[2] = {.name = "long/counts",
                      .width = 1,
                      .keyed = true,
                      .keeps_use = true,
                      .rules = {.policy = RowRules::Policy::kTtlSteps},
                      .role = TableRole::kCounts,
                      .beside = 0};
  std::string digest;
  ASSERT_TRUE(Save(model_, {2}, path_, Contents::kState, 1, &digest).ok());
  config_.set_optimizer_state(true);
  ASSERT_EQ(StartError(), "");  // the experiment of the checkpoint has no rules
  model_.tables[0].rules.policy = RowRules::Policy::kLfu;
  EXPECT_EQ(StartError(),
            path_ +
                "/manifest.json: table 'long' was trained with another eviction.policy or "
                "half_life_steps, which its rows' uses are of; expected the same, or "
                "training.warm_start.optimizer_state: false");
  config_.set_optimizer_state(false);
  EXPECT_EQ(StartError(), "");
}

TEST_F(WarmStartTest, TakesWhatIsSelected) {
  config_.add_tensors("b");
  config_.add_tensors("sh");
  ASSERT_EQ(StartError(), "");
  EXPECT_THAT(report_.taken, ElementsAre("bias", "short"));
  EXPECT_THAT(report_.left, IsEmpty());
  EXPECT_THAT(report_.fresh, ElementsAre("weight", "gain", "long", "unseen"));
  EXPECT_EQ(dense_[0], 0);
  EXPECT_EQ(rows_.size(), 3u);
  config_.add_tensors("nothing");
  EXPECT_THAT(StartError(), HasSubstr("training.warm_start.tensors: 'nothing' begins the name of "
                                      "no parameter and no table in "));
}

TEST_F(WarmStartTest, OtherShapesAreLeftOnlyWhenThatIsAllowed) {
  model_.weight_shape = {4, 301};
  EXPECT_THAT(StartError(),
              HasSubstr("dense.safetensors: tensor 'weight' is F32 [4, 300]; expected F32 [4, 301] "
                        "(training.warm_start.partial leaves it out)"));
  config_.set_partial(true);
  model_.tables[0].width = 4;
  model_.tables[1].name = "new";
  ASSERT_EQ(StartError(), "");
  EXPECT_THAT(report_.taken, ElementsAre("bias", "gain", "unseen"));
  EXPECT_THAT(report_.left, ElementsAre("weight", "long", "short"));
  EXPECT_THAT(report_.fresh, ElementsAre("weight", "long", "new"));
  EXPECT_TRUE(rows_.empty());
  config_.set_partial(false);
  model_ = {};
  model_.tables[0].width = 4;
  EXPECT_THAT(StartError(), HasSubstr("table 'long' has width 3; expected 4"));
  model_.tables[0] = {"shorter", 10000, 3, 0.1};
  EXPECT_THAT(StartError(), HasSubstr("table 'long' is no table of the model"));
}

TEST_F(WarmStartTest, TablesMayGrowButNotShrink) {
  model_.tables[0].rows = 20000;
  EXPECT_EQ(StartError(), "");
  model_.tables[0].rows = 9999;
  config_.set_partial(true);
  EXPECT_THAT(StartError(), HasSubstr("table 'long' has 10000 keys; expected at most 9999"));
}

// Ids of the vocabulary that the folder knows mean the same in one that has grown from it.
TEST_F(WarmStartTest, VocabulariesMayHaveGrown) {
  GetSaved();
  config_.set_optimizer_state(true);
  model_.tables[0].rows = 12000;
  DatasetInfo::Categorical& field = data_.categorical[0];
  field.ids = 12000;
  field.vocabulary = "fedcba9876543210";
  field.grown_from = {{"1111111111111111", 9000}, {"0123456789abcdef", 10000}};
  ASSERT_EQ(StartError(), "");
  EXPECT_EQ(digest_, saved_digest_);  // every row and slot that was saved, and none besides
  field.grown_from[1].ids = 9999;
  EXPECT_THAT(StartError(), HasSubstr("categorical field long: vocabulary fedcba9876543210"));
}

// What weights stand for: numbers and ids.
TEST_F(WarmStartTest, OtherEncodingsAreTold) {
  model_.tables[2] = {.name = "long/shared",
                      .rows = kPartitions,
                      .width = 3,
                      .role = TableRole::kShared,
                      .beside = 0};
  std::string digest;
  ASSERT_TRUE(Save(model_, {2}, path_, Contents::kState, 1, &digest).ok());
  const std::string manifest = path_ + "/manifest.json";
  data_.categorical[0].vocabulary = "fedcba9876543210";
  EXPECT_EQ(StartError(),
            "training.warm_start: categorical field long: vocabulary fedcba9876543210 of 10000 "
            "ids; " +
                manifest +
                " was trained on 0123456789abcdef of 10000 ids (training.warm_start.partial leaves "
                "it out)");
  config_.set_partial(true);
  ASSERT_EQ(StartError(), "");
  EXPECT_THAT(report_.left, ElementsAre("long", "long/shared"));
  config_.set_partial(false);
  data_ = SomeModel().data;
  data_.numeric[0].transform = "none";
  EXPECT_EQ(StartError(), "training.warm_start: numeric field n: transform NONE; " + manifest +
                              " was trained on STANDARDIZE (training.warm_start.partial takes its "
                              "parameters all the same)");
  config_.add_tensors("long");
  EXPECT_EQ(StartError(), "");  // no parameter sees numbers
}

// Rows of the folder lie over those that dense-equivalent Adam made.
TEST_F(WarmStartTest, RowsThatExistAlready) {
  model_.sparse = OptimizerKind::kDenseAdam;
  GetSaved();
  ASSERT_EQ(StartError(), "");
  EXPECT_EQ(rows_.size(), 10027u);
  for (const auto& [place, value] : saved_rows_) EXPECT_EQ(rows_[place].first, value);
}

}  // namespace
}  // namespace elastor
