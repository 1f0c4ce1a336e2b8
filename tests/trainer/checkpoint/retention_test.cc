#include <filesystem>
#include <set>
#include <string>

#include "core/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trainer/checkpoint/checkpoint_testing.h"
#include "trainer/checkpoint/checkpoint.h"

namespace elastor {
namespace {

using ::testing::ElementsAre;

class RetentionTest : public testing::Test {
 protected:
  // A checkpoint of this step; best_step < 0: none.
  void Write(const std::string& name, int64_t best_step) {
    const Status status = OnRanks(model_, {1}, [&](StateRank& rank) -> Status {
      CheckpointMetadata metadata = SomeMetadata(Contents::kState);
      metadata.control.set_has_best(best_step >= 0);
      metadata.control.set_best_step(std::max(best_step, int64_t{0}));
      CheckpointWriter writer(rank.View(), 0, rank.communicator);
      ELASTOR_RETURN_IF_ERROR(writer.Start(directory_ + "/" + name, metadata));
      return writer.Finish().status();
    });
    ASSERT_EQ(status.message(), "");
  }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      names.insert(entry.path().filename());
    }
    return names;
  }

  const SmallModel model_ = {{{"t", 5, 2, 0.1}}};
  const std::string directory_ = ScratchDirectory();
};

TEST_F(RetentionTest, NamesAreOrderedAsSteps) {
  EXPECT_EQ(CheckpointName(100), "step-0000000100");
  EXPECT_EQ(BestName(7), "best-0000000007");
  EXPECT_LT(CheckpointName(99), CheckpointName(100));
}

TEST_F(RetentionTest, FindsTheLastWholeOne) {
  EXPECT_EQ(*LastCheckpoint(directory_ + "/none"), "");
  EXPECT_EQ(*LastCheckpoint(directory_), "");
  Write(CheckpointName(9), -1);
  Write(CheckpointName(10), -1);
  // None of these is a checkpoint.
  for (const char* name : {"step-0000000011.partial", "step-0000000012", "step-13", "step-x",
                           "other", "best-0000000020"}) {
    std::filesystem::create_directory(directory_ + "/" + name);
  }
  EXPECT_EQ(*LastCheckpoint(directory_), directory_ + "/step-0000000010");
  std::filesystem::rename(directory_ + "/step-0000000010", directory_ + "/step-0000000010.old");
  EXPECT_EQ(*LastCheckpoint(directory_), directory_ + "/step-0000000010");
  EXPECT_TRUE(ReadCheckpointMetadata(*LastCheckpoint(directory_)).ok());
  const StatusOr<std::string> file = LastCheckpoint(directory_ + "/step-0000000009/manifest.json");
  EXPECT_EQ(file.status().code(), StatusCode::kUser);
}

TEST_F(RetentionTest, KeepsTheLastAndWhatTheyReferTo) {
  Write(CheckpointName(1), 1);
  Write(CheckpointName(2), 2);
  Write(CheckpointName(3), 2);
  Write(CheckpointName(4), 2);
  for (const int64_t step : {1, 2, 3, 5}) Write(BestName(step), -1);
  std::filesystem::create_directory(directory_ + "/step-0000000005.partial");
  std::filesystem::create_directory(directory_ + "/step-0000000004.old");
  std::filesystem::create_directory(directory_ + "/mine.partial");
  const Status status = RemoveOldCheckpoints(directory_, 2, /*best_step=*/5);
  EXPECT_EQ(status.message(), "");
  EXPECT_THAT(Names(), ElementsAre("best-0000000002", "best-0000000005", "mine.partial",
                                   "step-0000000003", "step-0000000004"));
  EXPECT_TRUE(RemoveOldCheckpoints(directory_, 2, 5).ok());
  EXPECT_EQ(Names().size(), 5u);
}

TEST_F(RetentionTest, ADamagedCheckpointKeepsAllBestWeights) {
  Write(CheckpointName(1), 1);
  Write(CheckpointName(2), 2);
  for (const int64_t step : {1, 2, 3}) Write(BestName(step), -1);
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/step-0000000001/manifest.json", "{").ok());
  EXPECT_EQ(RemoveOldCheckpoints(directory_, 2, /*best_step=*/2).message(), "");
  EXPECT_EQ(Names().size(), 5u);
  EXPECT_EQ(RemoveOldCheckpoints(directory_, 1, /*best_step=*/2).message(), "");
  EXPECT_THAT(Names(), ElementsAre("best-0000000002", "step-0000000002"));
}

// Full ones at 1 and 4, deltas at 2, 3 and 5.
TEST_F(RetentionTest, ABaseStaysWhileADeltaNeedsIt) {
  SmallModel model = model_;
  model.track_touched = true;
  const Status status = OnRanks(model, {1}, [&](StateRank& rank) -> Status {
    rank.Train({0, 1, 2, 3, 4}, 1);
    CheckpointWriter writer(rank.View(), 0, rank.communicator);
    for (const int64_t step : {1, 2, 3, 4, 5}) {
      const std::string path = directory_ + "/" + CheckpointName(step);
      const CheckpointMetadata metadata = SomeMetadata(Contents::kState);
      const bool full = step == 1 || step == 4;
      ELASTOR_RETURN_IF_ERROR(full ? writer.Start(path, metadata)
                                   : writer.StartDelta(path, metadata));
      ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata written, writer.Finish());
      EXPECT_EQ(written.base.has_value(), !full);
      rank.Train({1}, 1 + step);
    }
    return OkStatus();
  });
  ASSERT_EQ(status.message(), "");
  EXPECT_EQ(RemoveOldCheckpoints(directory_, 3, -1).message(), "");
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(1), CheckpointName(3), CheckpointName(4),
                                   CheckpointName(5)));
  // Whatever a damaged delta may need stays.
  const std::string manifest = directory_ + "/" + CheckpointName(5) + "/manifest.json";
  const std::string whole = *ReadFile(manifest);
  const size_t base = whole.find("\"base\": ") + 8;
  for (const char* damaged : {"[1],", "{},", R"({"name": 4},)", "{", ""}) {
    std::string text = whole;
    text.replace(base, text.find('\n', base) - base, damaged);
    ASSERT_TRUE(WriteFileAtomically(manifest, text).ok());
    EXPECT_EQ(RemoveOldCheckpoints(directory_, 1, -1).message(), "");
    EXPECT_EQ(Names().size(), 4u) << damaged;
  }
  ASSERT_TRUE(WriteFileAtomically(manifest, whole).ok());
  EXPECT_EQ(RemoveOldCheckpoints(directory_, 1, -1).message(), "");
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(4), CheckpointName(5)));
}

TEST_F(RetentionTest, KeepsAnOldNameThatIsTheOnlyOne) {
  Write(CheckpointName(1), -1);
  Write(CheckpointName(2), -1);
  std::filesystem::rename(directory_ + "/step-0000000002", directory_ + "/step-0000000002.old");
  EXPECT_TRUE(RemoveOldCheckpoints(directory_, 1, -1).ok());
  EXPECT_THAT(Names(), ElementsAre("step-0000000002.old"));
  EXPECT_TRUE(RemoveOldCheckpoints(directory_ + "/none", 1, -1).ok());
}

}  // namespace
}  // namespace elastor
