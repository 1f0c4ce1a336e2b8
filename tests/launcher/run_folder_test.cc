#include "launcher/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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
#include "launcher/folder_lock.h"
#include "launcher/machine.h"
#include "launcher/rehearsal.h"
#include "trainer/experiment/config.h"
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

// A lock's file says whom --stop ends, and everybody who can write the folder can write it.
TEST(FolderLockTest, StopsNobodyButTheLauncherAtWork) {
  const SweepFiles files = {testing::TempDir() + "/bystanders"};
  ASSERT_TRUE(MakeDirectory(files.root).ok());
  const pid_t bystander = fork();
  if (bystander == 0) {
    while (true) pause();
  }
  setpgid(bystander, bystander);
  const std::string host = " on host " + ReadMachine().host + "\n";
  const std::string number = std::to_string(bystander);
  for (const std::string& text : {number + host, "-" + number + host, number + "\n", "x" + host}) {
    ASSERT_TRUE(WriteFileAtomically(files.Lock(), text).ok());
    const int lock = open(files.Lock().c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(flock(lock, LOCK_EX), 0);
    EXPECT_THAT(StopLauncher(files).message(), testing::EndsWith("; nothing was stopped")) << text;
    close(lock);
    EXPECT_THAT(StopLauncher(files).message(), testing::EndsWith("no launcher is at work there"));
  }
  EXPECT_EQ(waitpid(bystander, nullptr, WNOHANG), 0);
  kill(bystander, SIGKILL);
  waitpid(bystander, nullptr, 0);
}

TEST(FolderLockTest, ALinkInItsPlaceIsNotFollowed) {
  const SweepFiles files = {testing::TempDir() + "/planted_lock"};
  const std::string target = testing::TempDir() + "/planted_target";
  ASSERT_TRUE(MakeDirectory(files.root).ok());
  ASSERT_TRUE(WriteFileAtomically(target, "precious").ok());
  ASSERT_EQ(symlink(target.c_str(), files.Lock().c_str()), 0);
  FolderLock lock;
  EXPECT_EQ(lock.Take(files).message(),
            files.Lock() + ": a symbolic link; expected the file itself");
  EXPECT_EQ(*ReadFile(target), "precious");
}

TEST(RunFolderTest, OnlyAWholeSummaryIsAResult) {
  const SweepFiles files = {testing::TempDir() + "/results"};
  const std::string run = files.Run("a");
  EXPECT_TRUE(MakeDirectory(run).ok());
  EXPECT_FALSE(ReadResult(files, "a"));
  EXPECT_TRUE(WriteFileAtomically(run + "/summary.json", R"({"auc": 0.75, "log)").ok());
  EXPECT_FALSE(ReadResult(files, "a"));
  EXPECT_TRUE(WriteFileAtomically(run + "/summary.json",
                                  R"({"auc": null, "logloss": 0.5, "state_digest": "ab"})")
                  .ok());
  const auto result = ReadResult(files, "a");
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->metrics.auc);
  EXPECT_EQ(result->metrics.logloss, 0.5);
  EXPECT_EQ(result->wall_s, 0);
}

// Somebody has copied one run's files into the folder of another.
TEST(RunFolderTest, FilesOfAnotherRunAreNoResult) {
  const SweepFiles files = {testing::TempDir() + "/copied"};
  const auto experiment = [](const std::string& rate) {
    Experiment made =
        ParseExperiment("model { mlp { hidden: 4 } } optimizer { learning_rate: " + rate + " }", "")
            .value();
    ResolveDefaults(&made);
    return made;
  };
  const Experiment own = experiment("0.5"), other = experiment("0.25");
  const std::string run = files.Run("a");
  for (const std::string& folder : {run, files.root + "/experiments"}) {
    EXPECT_TRUE(MakeDirectory(folder).ok());
  }
  const auto write = [&](const Experiment& in_run, const Experiment& in_summary) {
    EXPECT_TRUE(WriteFileAtomically(run + "/experiment.textproto", ExperimentText(in_run)).ok());
    EXPECT_TRUE(WriteFileAtomically(
                    run + "/summary.json",
                    R"({"state_digest": "ab", "numeric_hash": ")" + NumericHash(in_summary) + "\"}")
                    .ok());
  };
  EXPECT_TRUE(WriteFileAtomically(files.Experiment("a"), ExperimentText(own)).ok());
  write(own, own);
  EXPECT_TRUE(ReadResult(files, "a"));
  // What changes no bit may differ: it is the same run.
  Experiment renamed = own;
  renamed.set_name("renamed");
  write(renamed, own);
  EXPECT_TRUE(ReadResult(files, "a"));
  // All files, and the summary alone.
  write(other, other);
  EXPECT_FALSE(ReadResult(files, "a"));
  EXPECT_EQ(ReadOwnResult(files, "a").status().message(),
            run + "/experiment.textproto: optimizer.learning_rate: 0.25; expected 0.5, as in " +
                files.Experiment("a") + ": the folder holds another run");
  write(own, other);
  EXPECT_FALSE(ReadResult(files, "a"));
  EXPECT_EQ(ReadOwnResult(files, "a").status().message(),
            run + "/summary.json: found another run's; expected numeric_hash " + NumericHash(own) +
                ", as of experiment.textproto beside it");
}

}  // namespace
}  // namespace elastor
