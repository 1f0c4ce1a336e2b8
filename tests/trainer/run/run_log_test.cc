#include "trainer/run/run_log.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

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

  StatusOr<std::unique_ptr<RunLog>> Open(int rank) {
    return RunLog::Open(directory_, experiment_, rank, RunLog::Used::kRefuse, 0);
  }
  StatusOr<std::unique_ptr<RunLog>> Continue(int64_t step) {
    return RunLog::Open(directory_, experiment_, 0, RunLog::Used::kContinue, step);
  }

  std::string directory_;
  Experiment experiment_;
};

TEST_F(RunLogTest, WritesTheFilesOfARun) {
  experiment_.set_name("mine");
  auto log = Open(0);
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
            "\"learning_rate\":0.0,\"gradient_norm\":0.0,\"samples_per_s\":100.0,\"phase_s\":{"
            "\"forward\":0.125}}\n");
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

TEST_F(RunLogTest, ContinuesWithTheRecordsUpToAStep) {
  {
    auto log = Open(0);
    ASSERT_TRUE(log.ok());
    for (int64_t step : {10, 20, 30}) {
      ASSERT_TRUE((*log)->Append(SpectrumRecord{.step = step, .stage = "tokens"}).ok());
    }
  }
  std::ofstream(directory_ + "/metrics.jsonl", std::ios::app) << "{\"event\":\"tra";
  {
    auto log = Continue(20);
    ASSERT_TRUE(log.ok()) << log.status().message();
    ASSERT_TRUE((*log)->Append(SpectrumRecord{.step = 25, .stage = "tokens"}).ok());
    EXPECT_THAT(Continue(20).status().message(), HasSubstr("another process is writing this run"));
  }
  std::vector<int> steps;
  std::istringstream lines(Read("metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    steps.push_back(nlohmann::json::parse(line)["step"]);
  }
  EXPECT_EQ(steps, (std::vector<int>{10, 20, 25}));
}

TEST_F(RunLogTest, AFinishedRunThatContinuesIsNotFinished) {
  const auto finish = [](RunLog* log) {
    testing::internal::CaptureStdout();
    EXPECT_TRUE(log->Append(SpectrumRecord{.step = 10, .stage = "tokens"}).ok());
    EXPECT_TRUE(log->Finish(Summary()).ok());
    testing::internal::GetCapturedStdout();
  };
  finish(Open(0)->get());
  // Without a checkpoint there is nothing to continue, and the results stay.
  const auto log = Continue(0);
  EXPECT_EQ(log.status().code(), StatusCode::kUser);
  EXPECT_THAT(log.status().message(), HasSubstr("holds a finished run without checkpoints"));
  EXPECT_NE(Read("metrics.jsonl"), "");
  EXPECT_NE(Read("summary.json"), "");
  ASSERT_TRUE(Continue(10).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/summary.json"));
}

TEST_F(RunLogTest, ContinuesWhereNothingWasYet) {
  ASSERT_TRUE(Continue(0).ok());
  EXPECT_EQ(Read("metrics.jsonl"), "");
}

TEST_F(RunLogTest, RefusesAUsedDirectory) {
  ASSERT_TRUE(Open(0).ok());
  const auto again = Open(0);
  EXPECT_EQ(again.status().code(), StatusCode::kUser);
  EXPECT_EQ(again.status().message(),
            "--output_dir=" + directory_ +
                ": holds a run already (experiment.textproto); expected a new or empty directory, "
                "or --resume to continue the run");

  std::filesystem::remove(directory_ + "/experiment.textproto");
  EXPECT_THAT(Open(0).status().message(), HasSubstr("(metrics.jsonl)"));
  std::filesystem::remove(directory_ + "/metrics.jsonl");
  // Checkpoints of higher steps than the new run's, or somebody's models, must not be mixed with
  // it.
  for (const char* name : {"model", "checkpoints"}) {
    std::filesystem::create_directory(directory_ + "/" + name);
    EXPECT_THAT(Open(0).status().message(), HasSubstr("(" + std::string(name) + ")"));
    std::filesystem::remove(directory_ + "/" + name);
  }
  EXPECT_TRUE(Open(0).ok());
}

TEST_F(RunLogTest, AcceptsADirectoryWithOtherFiles) {
  std::filesystem::create_directories(directory_);
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/slurm-1.out", "x").ok());
  EXPECT_TRUE(Open(0).ok());
}

TEST_F(RunLogTest, AFileInTheWayIsAUserError) {
  ASSERT_TRUE(WriteFileAtomically(directory_, "a file").ok());
  const auto log = Open(0);
  EXPECT_EQ(log.status().code(), StatusCode::kUser);
  EXPECT_THAT(log.status().message(), HasSubstr(directory_));
  std::filesystem::remove(directory_);
}

TEST_F(RunLogTest, OtherRanksWriteNothing) {
  auto log = Open(1);
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
  auto log = Open(0);
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
