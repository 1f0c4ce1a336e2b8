#include "trainer/run/run_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "trainer/experiment/config_defaults.h"

namespace elastor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

  using Use = RunLog::Use;

  // Claims the directory, and fills it when that may be done.
  StatusOr<std::unique_ptr<RunLog>> Claim(Use use, int64_t step = 0, int rank = 0) {
    return RunLog::Open(directory_, experiment_, rank, use, step);
  }
  StatusOr<std::unique_ptr<RunLog>> Open(int rank, Use use = Use::kTraining, int64_t step = 0) {
    auto log = Claim(use, step, rank);
    if (!log.ok()) return log;
    ELASTOR_RETURN_IF_ERROR((*log)->Begin("a table\n"));
    return log;
  }
  StatusOr<std::unique_ptr<RunLog>> Continue(int64_t step) {
    return Open(0, Use::kResumedTraining, step);
  }
  std::string Mistake(Use use) {
    const Status status = Claim(use).status();
    EXPECT_EQ(status.code(), StatusCode::kUser);
    return status.message();
  }
  bool Exists(const std::string& name) { return std::filesystem::exists(directory_ + "/" + name); }

  std::string directory_;
  Experiment experiment_;
};

TEST_F(RunLogTest, WritesTheFilesOfARun) {
  experiment_.set_name("mine");
  auto log = Open(0);
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_THAT(Read("experiment.textproto"), HasSubstr("name: \"mine\""));
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
  // Neither an unfinished line nor one that is no record stays.
  std::ofstream(directory_ + "/metrics.jsonl", std::ios::app)
      << "{\"step\":\"10\"}\n[10]\n{\"event\":\"tra";
  {
    auto log = Continue(20);
    ASSERT_TRUE(log.ok()) << log.status().message();
    ASSERT_TRUE((*log)->Append(SpectrumRecord{.step = 25, .stage = "tokens"}).ok());
    EXPECT_THAT(Continue(20).status().message(), HasSubstr("another process is writing there"));
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
  EXPECT_FALSE(Exists("summary.json"));
}

TEST_F(RunLogTest, ContinuesWhereNothingWasYet) {
  ASSERT_TRUE(Continue(0).ok());
  EXPECT_EQ(Read("metrics.jsonl"), "");
}

TEST_F(RunLogTest, RefusesAUsedDirectory) {
  ASSERT_TRUE(Open(0).ok());
  const std::string used = "--output_dir=" + directory_ +
                           ": holds a run already (experiment.textproto); expected a new or empty "
                           "directory";
  EXPECT_EQ(Mistake(Use::kTraining), used + ", or --resume to continue the run");
  EXPECT_EQ(Mistake(Use::kInference), used);

  std::filesystem::remove(directory_ + "/experiment.textproto");
  EXPECT_THAT(Mistake(Use::kTraining), HasSubstr("(metrics.jsonl)"));
  std::filesystem::remove(directory_ + "/metrics.jsonl");
  std::filesystem::remove(directory_ + "/plan.txt");
  // Checkpoints of higher steps than the new run's, or somebody's models, must not be mixed with
  // it.
  for (const char* name : {"model", "checkpoints"}) {
    std::filesystem::create_directory(directory_ + "/" + name);
    EXPECT_THAT(Mistake(Use::kTraining), HasSubstr("(" + std::string(name) + ")"));
    std::filesystem::remove(directory_ + "/" + name);
  }
  EXPECT_TRUE(Open(0).ok());
}

TEST_F(RunLogTest, RefusesADirectoryWithOtherFiles) {
  std::filesystem::create_directories(directory_);
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/thesis.tex", "x").ok());
  const std::string holds = "--output_dir=" + directory_ + ": holds 'thesis.tex'";
  for (const Use use : {Use::kTraining, Use::kInference}) {
    EXPECT_EQ(Mistake(use), holds + "; expected a new or empty directory");
  }
  EXPECT_EQ(Mistake(Use::kResumedTraining),
            holds +
                " and no run; expected a run that --resume can continue, or a new or empty "
                "directory");
  EXPECT_EQ(Read("thesis.tex"), "x");
}

// Without a checkpoint only the file says whose run it is.
TEST_F(RunLogTest, AnotherExperimentDoesNotGoOn) {
  ResolveDefaults(&experiment_);
  ASSERT_TRUE(Open(0).ok());
  experiment_.mutable_training()->set_seed(4);
  EXPECT_THAT(Mistake(Use::kResumedTraining), HasSubstr("training.seed: 4; expected 0, as in " +
                                                        directory_ + "/experiment.textproto"));
}

TEST_F(RunLogTest, AFileInTheWayIsAUserError) {
  ASSERT_TRUE(WriteFileAtomically(directory_, "a file").ok());
  EXPECT_THAT(Mistake(Use::kTraining),
              HasSubstr("--output_dir=" + directory_ + ": cannot be made"));
  std::filesystem::remove(directory_);
}

TEST_F(RunLogTest, WhatIsRefusedLeavesNothingBehind) {
  const std::string top = directory_;
  directory_ = top + "/deep/er";
  {
    const auto log = Claim(Use::kInference);
    ASSERT_TRUE(log.ok());
    // A second process sees that the first one is there, though nothing is written yet.
    EXPECT_THAT(Mistake(Use::kInference), HasSubstr("another process is writing there"));
    EXPECT_TRUE(Exists("."));
  }
  EXPECT_FALSE(std::filesystem::exists(top));
  // What was there before stays, and what somebody has put there meanwhile.
  std::filesystem::create_directory(top);
  {
    const auto log = Claim(Use::kTraining);
    ASSERT_TRUE(log.ok());
    ASSERT_TRUE(WriteFileAtomically(top + "/deep/note", "x").ok());
  }
  EXPECT_FALSE(Exists("."));
  EXPECT_TRUE(std::filesystem::exists(top + "/deep/note"));
}

TEST_F(RunLogTest, ARefusedResumeChangesNothing) {
  testing::internal::CaptureStdout();
  ASSERT_TRUE((*Open(0))->Finish(Summary()).ok());
  testing::internal::GetCapturedStdout();
  experiment_.set_name("other");
  ASSERT_TRUE(Claim(Use::kResumedTraining, 10).ok());
  EXPECT_TRUE(Exists("summary.json"));
  EXPECT_THAT(Read("experiment.textproto"), Not(HasSubstr("other")));
}

// Results must not be scattered over two directories, nor be lost with a file that has no name.
TEST_F(RunLogTest, ADirectoryThatGoesAwayEndsTheRun) {
  const auto log = Open(0);
  ASSERT_TRUE(log.ok());
  EXPECT_TRUE((*log)->CheckInPlace().ok());
  const auto expect_lost = [&](const std::string& what) {
    for (const Status& status :
         {(*log)->CheckInPlace(), (*log)->Append(TrainRecord()), (*log)->Finish(Summary())}) {
      EXPECT_EQ(status.code(), StatusCode::kMachine);
      EXPECT_THAT(status.message(), HasSubstr(what));
    }
  };
  const std::string moved = directory_ + ".moved";
  std::filesystem::remove_all(moved);
  std::filesystem::rename(directory_, moved);
  expect_lost("--output_dir=" + directory_ + ": was removed or moved");
  EXPECT_FALSE(Exists("."));
  // Another one in its place is another one.
  std::filesystem::create_directory(directory_);
  expect_lost("--output_dir=" + directory_ + ": was removed or moved");
  std::filesystem::remove(directory_);
  std::filesystem::rename(moved, directory_);
  EXPECT_TRUE((*log)->Append(TrainRecord()).ok());
  std::filesystem::remove(directory_ + "/metrics.jsonl");
  expect_lost(directory_ + "/metrics.jsonl: was removed or replaced");
}

TEST_F(RunLogTest, AFullStdoutIsTold) {
  const auto log = Open(0);
  ASSERT_TRUE(log.ok());
  const int saved = dup(STDOUT_FILENO);
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_EQ(dup2(full, STDOUT_FILENO), STDOUT_FILENO);
  const Status status = (*log)->Finish(Summary());
  dup2(saved, STDOUT_FILENO);
  close(saved);
  close(full);
  EXPECT_EQ(status.code(), StatusCode::kMachine);
  EXPECT_EQ(status.message(),
            "stdout: cannot write: No space left on device; the run is whole, its results are in " +
                directory_ + "/summary.json");
  EXPECT_TRUE(Exists("summary.json"));
}

TEST_F(RunLogTest, TheExperimentCanBeUsedFromAnywhere) {
  experiment_.mutable_data()->set_path("some/data");
  ASSERT_TRUE(Open(0).ok());
  EXPECT_THAT(Read("experiment.textproto"),
              HasSubstr("path: \"" + std::filesystem::current_path().string() + "/some/data\""));
}

TEST_F(RunLogTest, OtherRanksWriteNothing) {
  auto log = Open(1);
  ASSERT_TRUE(log.ok());
  EXPECT_TRUE((*log)->CheckInPlace().ok());
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

// The time left is told from the steps that this process has done: of ten million steps, one after
// a resume is no reason to expect the end within a second.
TEST_F(RunLogTest, AResumedRunCountsItsOwnSteps) {
  const auto log = Continue(5'000'000);
  ASSERT_TRUE(log.ok());
  const Clock::time_point opened = Clock::now();
  while (SecondsSince(opened) < 0.002) continue;
  testing::internal::CaptureStderr();
  (*log)->ShowProgress({.step = 5'000'001}, 10'000'000);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(" h "));
}

}  // namespace
}  // namespace elastor
