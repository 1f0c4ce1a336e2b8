#include "trainer/run_log.h"

#include <filesystem>
#include <string>

#include "core/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace elastor {
namespace {

using ::testing::HasSubstr;

class RunLogTest : public testing::Test {
 protected:
  RunLogTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = testing::TempDir() + "/run_log_" + test->name();
    std::filesystem::remove_all(directory_);
  }
  std::string Read(const std::string& name) {
    const auto text = ReadFile(directory_ + "/" + name);
    EXPECT_TRUE(text.ok()) << text.status().message();
    return text.ok() ? text.value() : "";
  }

  std::string directory_;
  Experiment experiment_;
};

TEST_F(RunLogTest, WritesTheFilesOfARun) {
  experiment_.set_name("mine");
  auto log = RunLog::Open(directory_, experiment_, 0);
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_THAT(Read("experiment.textproto"), HasSubstr("name: \"mine\""));
  ASSERT_TRUE((*log)->WritePlan("a table\n").ok());
  EXPECT_EQ(Read("plan.txt"), "a table\n");

  TrainRecord train = {.step = 10, .epoch = 1, .loss = 0.5, .l2 = 0.25, .samples_per_s = 100};
  train.phase_seconds = {{"forward", 0.125}};
  ASSERT_TRUE((*log)->Append(train).ok());
  // Each line is in the file as soon as Append returns.
  EXPECT_EQ(Read("metrics.jsonl"),
            "{\"event\":\"train\",\"step\":10,\"epoch\":1,\"loss\":0.5,\"l2\":0.25,"
            "\"samples_per_s\":100.0,\"phase_s\":{\"forward\":0.125}}\n");
  ASSERT_TRUE((*log)->Append(SpectrumRecord{.step = 10, .stage = "tokens"}).ok());
  const std::string metrics = Read("metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 2);

  Summary summary;
  summary.state_digest = "00ff";
  testing::internal::CaptureStdout();
  ASSERT_TRUE((*log)->Finish(summary).ok());
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("state digest: 00ff"));
  EXPECT_EQ(nlohmann::json::parse(Read("summary.json"))["state_digest"], "00ff");
}

TEST_F(RunLogTest, RefusesAUsedDirectory) {
  ASSERT_TRUE(RunLog::Open(directory_, experiment_, 0).ok());
  const auto again = RunLog::Open(directory_, experiment_, 0);
  EXPECT_EQ(again.status().code(), StatusCode::kUser);
  EXPECT_EQ(again.status().message(),
            "--output_dir=" + directory_ +
                ": holds a run already (experiment.textproto); expected a new or empty directory");

  std::filesystem::remove(directory_ + "/experiment.textproto");
  EXPECT_THAT(RunLog::Open(directory_, experiment_, 0).status().message(),
              HasSubstr("(metrics.jsonl)"));
}

TEST_F(RunLogTest, AcceptsADirectoryWithOtherFiles) {
  std::filesystem::create_directories(directory_);
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/slurm-1.out", "x").ok());
  EXPECT_TRUE(RunLog::Open(directory_, experiment_, 0).ok());
}

TEST_F(RunLogTest, AFileInTheWayIsAUserError) {
  ASSERT_TRUE(WriteFileAtomically(directory_, "a file").ok());
  const auto log = RunLog::Open(directory_, experiment_, 0);
  EXPECT_EQ(log.status().code(), StatusCode::kUser);
  EXPECT_THAT(log.status().message(), HasSubstr(directory_));
  std::filesystem::remove(directory_);
}

TEST_F(RunLogTest, OtherRanksWriteNothing) {
  auto log = RunLog::Open(directory_, experiment_, 1);
  ASSERT_TRUE(log.ok());
  EXPECT_TRUE((*log)->WritePlan("x").ok());
  EXPECT_TRUE((*log)->Append(TrainRecord()).ok());
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  (*log)->ShowProgress(TrainRecord(), 10);
  (*log)->ShowLine("x");
  EXPECT_TRUE((*log)->Finish(Summary()).ok());
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(std::filesystem::exists(directory_));
}

TEST_F(RunLogTest, ProgressInAFileIsPlainLines) {
  auto log = RunLog::Open(directory_, experiment_, 0);
  ASSERT_TRUE(log.ok());
  testing::internal::CaptureStderr();
  (*log)->ShowProgress({.step = 10, .epoch = 1, .loss = 0.5}, 0);
  (*log)->ShowProgress({.step = 20, .epoch = 1, .loss = 0.25}, 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "step 10  epoch 1  loss 0.5000  0 samples/s\n"
            "step 20  epoch 1  loss 0.2500  0 samples/s\n");
}

}  // namespace
}  // namespace elastor
