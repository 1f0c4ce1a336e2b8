#include "launcher/run_folder.h"

#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/rehearsal.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/overrides.h"

namespace elastor {
namespace {

// The hash of the paper's Criteo model with changes.
std::string HashOf(const std::vector<std::string>& changes, const std::string& data = "d",
                   const std::string& numerics = "n") {
  Experiment experiment;
  experiment.mutable_model()->mutable_rank_elastor()->set_tokens(15);
  experiment.mutable_model()->mutable_rank_elastor()->set_token_width(26);
  experiment.mutable_embedding()->set_width(20);
  experiment.mutable_training()->set_batch_size(4096);
  const Status status = ApplyOverrides(changes, &experiment);
  EXPECT_TRUE(status.ok()) << status.message();
  ResolveDefaults(&experiment);
  return RunHash(experiment, data, numerics);
}

// The folders of sweeps that users have: a field that is added, or a new way to write a default,
// must not rename them.
TEST(RunFolderTest, TheHashStays) { EXPECT_EQ(HashOf({}), "13b300d7e54c52f4"); }

TEST(RunFolderTest, TheHashIsOfWhatChangesResults) {
  const std::string hash = HashOf({});
  for (const char* change :
       {"training.seed=1", "model.blocks=3", "optimizer.learning_rate=2e-3", "training.max_steps=5",
        "optimizer.beta1=0", "model.kind=RANK_MIXER", "training.warm_start.path=m"}) {
    EXPECT_NE(HashOf({change}), hash) << change;
  }
  EXPECT_NE(HashOf({}, "other"), hash);
  EXPECT_NE(HashOf({}, "d", "other"), hash);
  for (const char* same :
       {"name=x", "data.path=elsewhere", "parallel.threads=4", "spectrum.disabled=true",
        // Defaults, written out.
        "training.seed=0", "model.blocks=2", "optimizer.learning_rate=0.001",
        "model.tokenizer.kind=GROUPED", "model.feed_forward.expansion=3"}) {
    EXPECT_EQ(HashOf({same}), hash) << same;
  }
}

TEST(RunFolderTest, NamesNeedNoQuotes) {
  EXPECT_EQ(FolderName({"a b/c", "rate1e-3"}, "0123456789abcdef"),
            "a-b-c_rate1e-3-0123456789abcdef");
  EXPECT_EQ(FolderName({}, "0123456789abcdef"), "run-0123456789abcdef");
  EXPECT_EQ(HashOfFolder("a_b-0123456789abcdef"), "0123456789abcdef");
  EXPECT_EQ(HashOfFolder("lost+found"), "");
}

// The state of a run whose attempts ended with these codes.
RunState StateAfter(const std::string& name, const std::vector<int>& exit_codes,
                    bool stopped_by_launcher = false) {
  const std::string path = testing::TempDir() + "/" + name;
  for (const int exit_code : exit_codes) {
    EXPECT_TRUE(AppendStart(path, 1, {.cores = {0}}).ok());
    EXPECT_TRUE(AppendEnd(path, exit_code, stopped_by_launcher, 1.0, "why").ok());
  }
  return StateOf(ReadAttempts(path), /*has_result=*/false);
}

TEST(RunFolderTest, RetriesByCause) {
  EXPECT_EQ(StateAfter("none", {}), RunState::kWaiting);
  EXPECT_EQ(StateAfter("mistake", {2}), RunState::kFailed);
  EXPECT_EQ(StateAfter("diverged", {4}), RunState::kFailed);
  EXPECT_EQ(StateAfter("program_error", {134}), RunState::kFailed);
  EXPECT_EQ(StateAfter("machine", {3, 3}), RunState::kCutOff);
  EXPECT_EQ(StateAfter("machine_again", {3, 3, 3}), RunState::kFailed);
  EXPECT_EQ(StateAfter("killed", {137, 1}), RunState::kCutOff);
  EXPECT_EQ(StateAfter("killed_again", {137, 1, 0}), RunState::kFailed);
  const std::vector<int> stops(kMostStops, 75);
  EXPECT_EQ(StateAfter("stopped", stops), RunState::kCutOff);
  EXPECT_EQ(StateAfter("stopped", {75}), RunState::kFailed);
  // By the launcher itself: as often as it is stopped.
  EXPECT_EQ(StateAfter("by_launcher", stops, true), RunState::kCutOff);
  EXPECT_EQ(StateAfter("by_launcher", {75, 137}, true), RunState::kCutOff);
}

TEST(RunFolderTest, AFailureCanBeForgiven) {
  const std::string path = testing::TempDir() + "/forgiven";
  EXPECT_EQ(StateAfter("forgiven", {3, 3, 4}), RunState::kFailed);
  EXPECT_EQ(ReadAttempts(path).last_line, "why");
  EXPECT_TRUE(AppendForgiveness(path).ok());
  EXPECT_EQ(StateOf(ReadAttempts(path), false), RunState::kCutOff);
  EXPECT_EQ(ReadAttempts(path).started, 3);
  EXPECT_EQ(StateAfter("forgiven", {3, 3}), RunState::kCutOff);
}

// A launcher that was killed wrote no end, perhaps half a line.
TEST(RunFolderTest, AnAttemptWithoutAnEndWasCutOff) {
  const std::string path = testing::TempDir() + "/open";
  EXPECT_TRUE(AppendStart(path, 1, {.cores = {0}}).ok());
  EXPECT_TRUE(ReadAttempts(path).open);
  EXPECT_EQ(StateOf(ReadAttempts(path), false), RunState::kCutOff);
  EXPECT_EQ(StateOf(ReadAttempts(path), true), RunState::kDone);
  const StatusOr<std::string> text = ReadFile(path);
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(WriteFileAtomically(path, *text + "{\"event\":\"en").ok());
  EXPECT_EQ(StateOf(ReadAttempts(path), false), RunState::kCutOff);
}

// Values of other kinds than a launcher writes tell nothing.
TEST(RunFolderTest, AttemptsOfOtherKindsTellNothing) {
  const std::string path = testing::TempDir() + "/kinds";
  for (const char* value : {"1", "\"true\"", "null", "[true]", "{}"}) {
    const std::string end = "{\"event\":\"end\",\"exit_code\":3,\"stopped_by_launcher\":";
    ASSERT_TRUE(WriteFileAtomically(path, end + value + ",\"last_line\":7}\n").ok());
    EXPECT_EQ(ReadAttempts(path).machine, 1) << value;
    EXPECT_EQ(ReadAttempts(path).last_line, "") << value;
  }
}

// What a full disk takes of a line spoils none that is written when there is room again.
TEST(RunFolderTest, AFullDiskLeavesNoHalfLine) {
  const std::string path = testing::TempDir() + "/full";
  EXPECT_TRUE(AppendStart(path, 1, {.cores = {0}}).ok());
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit low = before;
  low.rlim_cur = std::filesystem::file_size(path) + 10;
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &low);
  const Status status = AppendEnd(path, 3, false, 1.0, "why");
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(status.code(), StatusCode::kMachine);
  EXPECT_EQ(status.message(), path + ": write: disk full");
  EXPECT_TRUE(AppendStart(path, 1, {.cores = {0}}).ok());
  EXPECT_EQ(ReadAttempts(path).started, 2);
}

TEST(RunFolderTest, ARehearsalCostsNoAttempt) {
  const std::string path = testing::TempDir() + "/rehearsed";
  for (int i = 0; i < kMostStops + 2; ++i) {
    EXPECT_TRUE(AppendStart(path, 1, {.cores = {0}}).ok());
    EXPECT_TRUE(AppendRehearsal(path).ok());
    EXPECT_TRUE(AppendEnd(path, 75, /*stopped_by_launcher=*/false, 1.0, "why").ok());
  }
  EXPECT_EQ(ReadAttempts(path).rehearsed, kMostStops + 2);
  EXPECT_EQ(ReadAttempts(path).stopped, 0);
  EXPECT_EQ(StateOf(ReadAttempts(path), false), RunState::kCutOff);
  // The next attempt is stopped by somebody else.
  EXPECT_TRUE(AppendStart(path, 1, {.cores = {0}}).ok());
  EXPECT_TRUE(AppendEnd(path, 75, false, 1.0, "why").ok());
  EXPECT_EQ(ReadAttempts(path).stopped, 1);
  // One that ended before the signal came was not stopped.
  const std::string late = testing::TempDir() + "/rehearsed_late";
  EXPECT_TRUE(AppendStart(late, 1, {.cores = {0}}).ok());
  EXPECT_TRUE(AppendRehearsal(late).ok());
  EXPECT_TRUE(AppendEnd(late, 0, false, 1.0, "why").ok());
  EXPECT_EQ(ReadAttempts(late).rehearsed, 0);
}

TEST(RehearsalTest, IsOnceInMidRun) {
  EXPECT_EQ(RehearsalStep("run-0123456789abcdef", 1), 0);
  std::set<int64_t> steps;
  for (char digit = '0'; digit <= '9'; ++digit) {
    const std::string folder = std::string("run-0123456789abcde") + digit;
    EXPECT_EQ(RehearsalStep(folder, 2), 1);
    const int64_t step = RehearsalStep(folder, 1000);
    EXPECT_GE(step, 100);
    EXPECT_LT(step, 900);
    EXPECT_EQ(step, RehearsalStep("another_label" + folder.substr(3), 1000));
    steps.insert(step);
  }
  EXPECT_EQ(steps.size(), 10U);

  const PlannedRun run = {.folder = "run-0000000000000000", .columns = {}, .steps = 1000};
  const int64_t step = RehearsalStep(run.folder, run.steps);
  EXPECT_FALSE(RehearsalDue(run, {}, {.step = step - 1}));
  EXPECT_TRUE(RehearsalDue(run, {}, {.step = step}));
  EXPECT_TRUE(RehearsalDue(run, {}, {.step = 999}));
  EXPECT_FALSE(RehearsalDue(run, {}, {.step = 1000}));
  EXPECT_FALSE(RehearsalDue(run, {.started = 1, .rehearsed = 1}, {.step = step}));
}

TEST(ProgressReaderTest, FollowsARun) {
  const std::string run = testing::TempDir() + "/followed";
  const std::string path = run + "/metrics.jsonl";
  EXPECT_TRUE(MakeDirectory(run).ok());
  ProgressReader reader(run);
  EXPECT_EQ(reader.Read().step, 0);
  const auto append = [&](const std::string& text) { std::ofstream(path, std::ios::app) << text; };
  const auto train = [](int step) {
    return "{\"event\":\"train\",\"step\":" + std::to_string(step) +
           ",\"samples_per_s\":" + std::to_string(10 * step) + ".5}\n";
  };
  const std::string evaluation =
      "{\"event\":\"eval\",\"split\":\"validation\",\"step\":3,\"auc\":0.75,\"logloss\":0.5}\n";
  // The evaluation is far from the end, in the first line that is not read at once.
  append(train(2) + evaluation);
  for (int step = 4; step < 4000; ++step) append(train(step));
  EXPECT_EQ(reader.Read().step, 3999);
  EXPECT_EQ(reader.Read().samples_per_s, 39990.5);
  EXPECT_EQ(reader.Read().auc, 0.75);
  EXPECT_EQ(reader.Read().logloss, 0.5);
  // A line counts when it is whole; what was said before stays.
  const std::string line = train(4000);
  append(line.substr(0, 30));
  EXPECT_EQ(reader.Read().step, 3999);
  append(line.substr(30) + "{\"event\":\"spectrum\",\"step\":5000}\n");
  EXPECT_EQ(reader.Read().step, 4000);
  EXPECT_EQ(reader.Read().auc, 0.75);
  // A run that goes on at an earlier step.
  EXPECT_TRUE(WriteFileAtomically(path, train(2)).ok());
  EXPECT_EQ(reader.Read().step, 2);
  EXPECT_FALSE(reader.Read().auc);
  EXPECT_EQ(ProgressReader(run).Read().step, 2);
}

// What Slurm takes away without an end is bounded like a stop; a launcher of this machine that is
// killed is not.
TEST(RunFolderTest, LostAttemptsInSlurmAreCounted) {
  const std::string path = testing::TempDir() + "/lost";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(AppendStart(path, 1, {.slurm = "7_0 on h"}).ok());
  EXPECT_EQ(ReadAttempts(path).stopped, 2);
  EXPECT_EQ(ReadAttempts(path).started, 3);
  for (int i = 0; i < kMostStops; ++i) {
    EXPECT_TRUE(AppendStart(path, 1, {.slurm = "7_0 on h"}).ok());
  }
  EXPECT_EQ(StateOf(ReadAttempts(path), false), RunState::kFailed);
  const std::string local = testing::TempDir() + "/lost_here";
  for (int i = 0; i < 2 * kMostStops; ++i) {
    EXPECT_TRUE(AppendStart(local, 1, {.cores = {0}}).ok());
  }
  EXPECT_EQ(StateOf(ReadAttempts(local), false), RunState::kCutOff);
}

// Also before the first attempt. Only the user starts it again.
TEST(RunFolderTest, ACancelledRunWaitsForTheUser) {
  const std::string path = testing::TempDir() + "/cancelled";
  EXPECT_TRUE(AppendCancelled(path).ok());
  EXPECT_EQ(StateOf(ReadAttempts(path), false), RunState::kFailed);
  EXPECT_EQ(CauseOfAttempt(ReadAttempts(path).exit_code), "its job was cancelled");
  EXPECT_TRUE(AppendForgiveness(path).ok());
  EXPECT_EQ(StateOf(ReadAttempts(path), false), RunState::kWaiting);
}

TEST(RunFolderTest, OnlyAWholeSummaryIsAResult) {
  const std::string run = testing::TempDir() + "/run";
  EXPECT_TRUE(MakeDirectory(run).ok());
  EXPECT_FALSE(ReadResult(run));
  EXPECT_TRUE(WriteFileAtomically(run + "/summary.json", R"({"auc": 0.75, "log)").ok());
  EXPECT_FALSE(ReadResult(run));
  EXPECT_TRUE(WriteFileAtomically(run + "/summary.json",
                                  R"({"auc": null, "logloss": 0.5, "state_digest": "ab"})")
                  .ok());
  const auto result = ReadResult(run);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->auc);
  EXPECT_EQ(result->logloss, 0.5);
}

}  // namespace
}  // namespace elastor
