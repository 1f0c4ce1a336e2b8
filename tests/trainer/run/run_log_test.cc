#include "trainer/run/run_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/base/file_limit.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/run/tensorboard_event.pb.h"

namespace elastor {
namespace {

using ::testing::ElementsAre;
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
    return RunLog::Open(directory_, experiment_, rank, use, step, std::nullopt, command_);
  }
  StatusOr<std::unique_ptr<RunLog>> Open(int rank, Use use = Use::kTraining, int64_t step = 0) {
    auto log = Claim(use, step, rank);
    if (!log.ok()) return log;
    ELASTOR_RETURN_IF_ERROR((*log)->Begin("a table\n", tensorboard_));
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
  std::string command_;
  bool tensorboard_ = false;
};

// Bit by bit.
uint32_t Crc32c(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78 : 0);
  }
  return ~crc;
}

// The events of a TFRecord file: length, its masked checksum, bytes, their masked checksum.
std::vector<tensorboard::Event> EventsOf(const std::string& file) {
  std::vector<tensorboard::Event> events;
  const auto number = [&](size_t at, auto value) {
    std::memcpy(&value, file.data() + at, sizeof(value));
    return value;
  };
  const auto masked = [](uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U; };
  for (size_t at = 0; at < file.size();) {
    const std::string_view rest = std::string_view(file).substr(at);
    const auto length = number(at, uint64_t{0});
    EXPECT_EQ(number(at + 8, uint32_t{0}), masked(Crc32c(rest.substr(0, 8))));
    EXPECT_LE(at + 16 + length, file.size());
    EXPECT_EQ(number(at + 12 + length, uint32_t{0}), masked(Crc32c(rest.substr(12, length))));
    EXPECT_TRUE(events.emplace_back().ParseFromString(std::string(rest.substr(12, length))));
    at += 16 + length;
  }
  return events;
}

// "tag=value" of every scalar, "tag: edges | weights" of every histogram.
std::vector<std::string> ValuesOf(const tensorboard::Event& event) {
  std::vector<std::string> values;
  for (const auto& value : event.summary().value()) {
    std::ostringstream text;
    text << value.tag();
    if (value.has_simple_value()) text << "=" << value.simple_value();
    if (value.has_histo()) {
      text << ": " << value.histo().min();
      for (const double limit : value.histo().bucket_limit()) text << " " << limit;
      text << " |";
      for (const double weight : value.histo().bucket()) text << " " << weight;
    }
    values.push_back(text.str());
  }
  return values;
}

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
  EXPECT_EQ(Json::parse(Read("summary.json"))["state_digest"], "00ff");
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
    steps.push_back(Json::parse(line)["step"].get<int>());
  }
  EXPECT_EQ(steps, (std::vector<int>{10, 20, 25}));
}

// metrics.jsonl has no hash: lines that are no records, or that are not there, are told.
TEST_F(RunLogTest, WarnsOfRecordsThatAreLost) {
  const std::string path = directory_ + "/metrics.jsonl";
  const std::string train = "{\"event\":\"train\",\"step\":10}\n";
  const std::string checkpoint = "{\"event\":\"checkpoint\",\"step\":10}\n";
  const std::string garbage(16, '\0');
  const std::string unread = "warning: " + path + ": line 2 is no record, and is left out\n";
  const std::string missing = "warning: " + path +
                              ": ends before the checkpoint of step 10 was recorded; records of "
                              "steps up to it may be missing\n";
  const auto warnings = [&](const std::string& text) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_ + "/checkpoints");
    if (!text.empty()) std::ofstream(path) << text;
    testing::internal::CaptureStderr();
    EXPECT_TRUE(Continue(10).ok());
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(warnings(train + checkpoint), "");
  EXPECT_EQ(warnings(train + "{\"event\":\"train\",\"step\":11}\n"), "");
  EXPECT_EQ(warnings(train + checkpoint + garbage), "");  // unfinished
  EXPECT_EQ(warnings(train + garbage + "\n" + checkpoint), unread);
  EXPECT_EQ(warnings(train), missing);
  EXPECT_EQ(warnings(""), missing);
  EXPECT_EQ(warnings(train + "{\"event\":10,\"step\":10}\n"), unread + missing);
  // Brackets in each other by the hundred thousand, which nobody could print.
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_EQ(warnings(train + "{\"event\":\"eval\",\"step\":3,\"id\":" + deep + "}\n" + checkpoint),
            unread);
}

// By column, what is not empty: "step=10 loss=0.5".
std::vector<std::string> TableLines(const std::string& csv) {
  const auto fields = [](const std::string& line) {
    std::vector<std::string> fields(1);
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') quoted = !quoted;
      if (c == ',' && !quoted) {
        fields.emplace_back();
      } else if (c != '"') {
        fields.back() += c;
      }
    }
    return fields;
  };
  std::istringstream text(csv);
  std::string line;
  std::getline(text, line);
  const std::vector<std::string> names = fields(line);
  std::vector<std::string> lines;
  while (std::getline(text, line)) {
    const std::vector<std::string> values = fields(line);
    EXPECT_EQ(values.size(), names.size()) << line;
    std::string& cells = lines.emplace_back();
    for (size_t i = 0; i < std::min(names.size(), values.size()); ++i) {
      if (!values[i].empty()) cells += (cells.empty() ? "" : " ") + names[i] + "=" + values[i];
    }
  }
  return lines;
}

// Records of a later build.
TEST_F(RunLogTest, PartsOfOtherKindsHaveNoLinesInTheTable) {
  std::filesystem::create_directories(directory_ + "/checkpoints");
  std::ofstream(directory_ + "/metrics.jsonl")
      << R"({"event":"later","step":1,"labels":[1,{"label":"a","slices":[2]},[]]})"
      << "\n"
      << R"({"event":"later","step":2,"slices":[1,"x",null]})"
      << "\n"
      << R"({"event":"later","step":3,"labels":4,"slices":5})"
      << "\n";
  ASSERT_TRUE(Continue(10).ok());
  EXPECT_THAT(TableLines(Read("metrics.csv")),
              ElementsAre("event=later step=1 label=a", "event=later step=2"));
}

TEST_F(RunLogTest, TheTableHasTheNumbersOfEveryRecord) {
  const std::string train =
      "event=train step=10 epoch=1 loss=0.5 l2=0.0 learning_rate=0.25 gradient_norm=0.0 "
      "samples_per_s=0.0";
  {
    const auto log = Open(0);
    ASSERT_TRUE(log.ok()) << log.status().message();
    ASSERT_TRUE(
        (*log)
            ->Append(TrainRecord{.step = 10, .epoch = 1, .loss = 0.5, .learning_rate = 0.25})
            .ok());
    // Each line is in the file as soon as Append returns.
    EXPECT_THAT(TableLines(Read("metrics.csv")), ElementsAre(train));
    EvalRecord eval = {.split = "validation", .step = 20};
    eval.metrics.rows = 7;
    eval.metrics.logloss = 0.5;
    eval.metrics.auc = 0.75;
    SliceValues slice;
    slice.field = "page";
    slice.id = 3;
    slice.value = "a, \"b\"";
    slice.rows = 2;
    slice.logloss = 0.25;
    eval.metrics.slices = {slice};
    ASSERT_TRUE((*log)->Append(eval).ok());
    eval.metrics.slices.clear();
    eval.metrics.label = "click";
    eval.labels = {eval.metrics, eval.metrics};
    eval.labels[1].label = "buy";
    eval.labels[1].auc.reset();
    ASSERT_TRUE((*log)->Append(eval).ok());
    SpectrumRecord spectrum = {.step = 30, .split = "validation", .stage = "tokens", .samples = 4};
    spectrum.stable.mean = 1.5;
    ASSERT_TRUE((*log)->Append(spectrum).ok());
    ASSERT_TRUE((*log)->Append(ScoringRecord{.step = 30, .matrices = 2, .stable = 1.5}).ok());
    ASSERT_TRUE((*log)->Append(CheckpointRecord{.step = 30, .digest = "0f", .path = "p"}).ok());
  }
  const std::string eval = "event=eval step=20 split=validation ";
  const std::string counts = "scheduled=false rows=7 positives=0 ";
  EXPECT_THAT(
      TableLines(Read("metrics.csv")),
      ElementsAre(train, eval + counts + "auc=0.75 logloss=0.5",
                  eval + "field=page id=3 value=a, b scheduled=false rows=2 positives=0 "
                         "logloss=0.25",
                  eval + "label=click " + counts + "auc=0.75 logloss=0.5",
                  eval + "label=buy " + counts + "logloss=0.5",
                  "event=spectrum step=30 split=validation stage=tokens samples=4 max_rank=0 "
                  "stable_rank_mean=1.5 stable_rank_stddev=0.0 entropy_rank_mean=0.0 "
                  "entropy_rank_stddev=0.0",
                  "event=scoring step=30 max_rank=0 stable_rank_mean=1.5 entropy_rank_mean=0.0 "
                  "matrices=2",
                  "event=checkpoint step=30 path=p digest=0f blocked_s=0.0 write_s=0.0"));
  EXPECT_THAT(Read("metrics.csv"), HasSubstr(",\"a, \"\"b\"\"\","));

  // A run that goes on has the records up to its step, also where an earlier build wrote no table.
  const std::string whole = Read("metrics.csv");
  std::filesystem::remove(directory_ + "/metrics.csv");
  ASSERT_TRUE(Continue(30).ok());
  EXPECT_EQ(Read("metrics.csv"), whole);
  ASSERT_TRUE(Continue(10).ok());
  EXPECT_THAT(TableLines(Read("metrics.csv")), ElementsAre(train));
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
  EXPECT_EQ(TableLines(Read("metrics.csv")).size(), 0u);
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
  std::filesystem::remove(directory_ + "/metrics.csv");
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

// Predicting takes long, and a process that was killed meanwhile leaves a temporary file alone.
TEST_F(RunLogTest, TheSameModeWorksAgainAfterADeath) {
  std::filesystem::create_directories(directory_);
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/predictions.csv.tmp", "0,1").ok());
  EXPECT_EQ(Mistake(Use::kTraining), "--output_dir=" + directory_ +
                                         ": holds 'predictions.csv.tmp'; expected a new or empty "
                                         "directory");
  EXPECT_TRUE(Claim(Use::kInference).ok());
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/predictions.csv", "0,1").ok());
  EXPECT_THAT(Mistake(Use::kInference), HasSubstr("holds 'predictions.csv'"));
}

// One that was killed while it filled its folder: before its first record, before its summary, or
// just behind it.
TEST_F(RunLogTest, AnInferenceTakesUpWhatADeathHasLeft) {
  ResolveDefaults(&experiment_);
  EvalRecord record;
  record.step = 7;
  command_ = "mode predict, model m";
  for (int records = 0; records < 3; ++records) {
    const auto dies = Claim(Use::kInference);
    ASSERT_TRUE(dies.ok()) << dies.status().message();
    ASSERT_TRUE((*dies)->BeginFilling().ok());
    ASSERT_TRUE(WriteFileAtomically(directory_ + "/predictions.csv", "0,1").ok());
    if (records == 0) continue;
    ASSERT_TRUE((*dies)->Begin("a table\n").ok());
    for (int i = 0; i < records; ++i) ASSERT_TRUE((*dies)->Append(record).ok());
    ASSERT_TRUE(WriteFileAtomically(directory_ + "/summary.json", "{}").ok());
  }
  EXPECT_THAT(Mistake(Use::kTraining), HasSubstr("holds a run already"));
  command_ = "mode predict, model n";
  const std::string another = "--output_dir=" + directory_ +
                              ": holds what another command has left (unfinished.txt); expected "
                              "the same command, or a new or empty directory";
  EXPECT_EQ(Mistake(Use::kInference), another);
  command_ = "mode predict, model m";
  experiment_.mutable_evaluation()->set_iterations(3);
  EXPECT_EQ(Mistake(Use::kInference), another);
  experiment_.mutable_evaluation()->clear_iterations();

  const auto log = Open(0, Use::kInference);
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_FALSE(Exists("summary.json"));
  ASSERT_TRUE((*log)->Append(record).ok());
  ASSERT_TRUE((*log)->Finish(Summary()).ok());
  const std::string metrics = Read("metrics.jsonl");
  EXPECT_EQ(std::ranges::count(metrics, '\n'), 1) << metrics;
  EXPECT_FALSE(Exists("unfinished.txt"));
  EXPECT_THAT(Mistake(Use::kInference), HasSubstr("is writing there"));
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

// A supervisor, or a launcher, that asks whether a trainer is at work there.
TEST_F(RunLogTest, WaitsForALockThatIsHeldForAMoment) {
  std::filesystem::create_directory(directory_);
  const int lock = open(directory_.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  const Clock::time_point start = Clock::now();
  std::thread asking([lock] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    close(lock);
  });
  const auto log = Claim(Use::kTraining);
  asking.join();
  EXPECT_TRUE(log.ok()) << log.status().message();
  EXPECT_GE(SecondsSince(start), 0.02);
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

// A run that was killed before its first checkpoint measures step 0 once more.
TEST_F(RunLogTest, ARunThatBeginsAnewKeepsNoRecords) {
  ResolveDefaults(&experiment_);
  ASSERT_TRUE((*Open(0))->Append(TrainRecord{.step = 0}).ok());
  const auto again = Continue(0);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(Read("metrics.jsonl"), "");
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
  (*log)->ShowProgress({});
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
  (*log)->ShowProgress({.step = 10, .epoch = 1, .loss = 0.5});
  (*log)->ShowProgress({.step = 20, .epoch = 1, .loss = 0.25});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "step 10  epoch 2  loss 0.5000  0 samples/s  0:00 elapsed\n"
            "step 20  epoch 2  loss 0.2500  0 samples/s  0:00 elapsed\n");
}

TEST_F(RunLogTest, RecordsForTensorBoard) {
  ASSERT_EQ(Crc32c("123456789"), 0xE3069283);  // RFC 3720
  tensorboard_ = true;
  experiment_.mutable_data()->set_path("data");
  experiment_.mutable_model()->mutable_mlp()->set_batch_norm(true);
  experiment_.mutable_optimizer()->set_learning_rate(0.25);
  ResolveDefaults(&experiment_);
  const auto records_in = [&](const std::string& file) { return EventsOf(Read(file)); };
  const auto event_files = [&] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("events.out.tfevents.")) names.insert(name);
    }
    return names;
  };
  {
    const auto log = Open(0);
    ASSERT_TRUE(log.ok()) << log.status().message();
    TrainRecord train = {.step = 10, .loss = 0.5, .learning_rate = 0.25};
    train.samples_per_s = 100;
    ASSERT_TRUE((*log)->Append(train).ok());
    EvalRecord eval = {.split = "validation", .step = 20};
    eval.metrics.label = "click";
    eval.metrics.logloss = 0.5;
    eval.metrics.auc = 0.75;
    eval.labels = {eval.metrics, eval.metrics};
    eval.labels[1].label = "buy";
    eval.labels[1].gauc = 0.625;
    ASSERT_TRUE((*log)->Append(eval).ok());
    SpectrumRecord spectrum = {.step = 20, .stage = "tokens", .samples = 4, .max_rank = 2};
    spectrum.stable.mean = 1.5;
    spectrum.stable.stddev = 0.5;
    spectrum.stable.histogram.resize(kRankBins);
    spectrum.stable.histogram[512] = 3;
    spectrum.stable.histogram[600] = 1;
    spectrum.profile = {1, 0.5};
    ASSERT_TRUE((*log)->Append(spectrum).ok());
    ASSERT_TRUE((*log)->Append(ScoringRecord{.step = 20, .stable = 1.5, .entropy = 2.5}).ok());
    // Each is in the file as soon as Append returns.
    ASSERT_EQ(event_files().size(), 1U);
    const std::vector<tensorboard::Event> events = records_in(*event_files().begin());
    ASSERT_EQ(events.size(), 7U);
    EXPECT_THAT(ValuesOf(events[6]),
                ElementsAre("scoring_rank/stable=1.5", "scoring_rank/entropy=2.5"));
    EXPECT_EQ(events[0].file_version(), "brain.Event:2");
    EXPECT_EQ(events[1].session_log().status(), tensorboard::SessionLog::START);
    EXPECT_EQ(events[1].step(), 1);
    const tensorboard::Summary::Value& settings = events[2].summary().value(0);
    EXPECT_EQ(settings.metadata().plugin_data().plugin_name(), "hparams");
    tensorboard::HParams shown;
    ASSERT_TRUE(shown.ParseFromString(settings.metadata().plugin_data().content()));
    const auto& hparams = shown.session_start_info().hparams();
    EXPECT_EQ(hparams.at("optimizer.learning_rate").number_value(), 0.25);
    EXPECT_EQ(hparams.at("model").string_value(), "MLP");
    EXPECT_EQ(hparams.at("model.mlp.batch_norm").bool_value(), true);
    EXPECT_FALSE(hparams.contains("data.path"));
    EXPECT_EQ(events[3].step(), 10);
    EXPECT_GT(events[3].wall_time(), 1.7e9);
    EXPECT_THAT(ValuesOf(events[3]),
                ElementsAre("train/loss=0.5", "train/l2=0", "train/learning_rate=0.25",
                            "train/gradient_norm=0", "train/samples_per_s=100"));
    EXPECT_THAT(
        ValuesOf(events[4]),
        ElementsAre("validation/auc=0.75", "validation/logloss=0.5", "validation/click/auc=0.75",
                    "validation/click/logloss=0.5", "validation/buy/auc=0.75",
                    "validation/buy/logloss=0.5", "validation/buy/gauc=0.625"));
    EXPECT_THAT(
        ValuesOf(events[5]),
        ElementsAre("stable_rank/tokens=1.5",
                    "stable_rank_of_rows/tokens: 1 1.0625 1.125 1.1875 | 3 0 1",
                    "entropy_rank/tokens=0", "singular_values/tokens: 0.5 1.5 2.5 | 1 0.5"));
    const tensorboard::Histogram& ranks = events[5].summary().value(1).histo();
    EXPECT_EQ(ranks.num(), 4);
    EXPECT_EQ(ranks.sum(), 6);
    EXPECT_EQ(ranks.sum_squares(), 4 * (1.5 * 1.5 + 0.5 * 0.5));
  }
  // A run that goes on has a file after the first, however soon; records up to its step count.
  ASSERT_TRUE(Continue(10).ok());
  ASSERT_EQ(event_files().size(), 2U);
  const std::vector<tensorboard::Event> events = records_in(*event_files().rbegin());
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[1].step(), 11);
  tensorboard_ = false;
  ASSERT_TRUE(Continue(10).ok());
  EXPECT_EQ(event_files().size(), 2U);
}

TEST_F(RunLogTest, AFullDiskUnderTensorBoardIsTold) {
  std::filesystem::create_directory(directory_);
  const auto file = TensorBoardFile::Create(directory_, 1, {});
  ASSERT_TRUE(file.ok()) << file.status().message();
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit low = before;
  low.rlim_cur = 10;
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &low);
  const Status status = (*file)->Append(TrainRecord());
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(status.code(), StatusCode::kMachine);
  EXPECT_THAT(status.message(), HasSubstr(directory_ + "/events.out.tfevents."));
  EXPECT_THAT(status.message(), HasSubstr(": cannot write: File too large"));
}

// Whatever it is that the system refuses to open, another attempt may find it otherwise.
TEST_F(RunLogTest, NoMoreOpenFilesIsTheMachines) {
  ResolveDefaults(&experiment_);
  ASSERT_TRUE(Open(0).ok());
  int refused = 0;
  for (;; ++refused) {
    const FileLimit limit(refused);
    const Status status = Open(0, Use::kResumedTraining).status();
    if (status.ok()) break;
    EXPECT_EQ(status.code(), StatusCode::kMachine);
    EXPECT_THAT(status.message(), HasSubstr(directory_));
  }
  EXPECT_GT(refused, 3);
}

}  // namespace
}  // namespace elastor
