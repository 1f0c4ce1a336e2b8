// How Slurm's programs are understood, and what they are asked.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/slurm_array.h"
#include "launcher/slurm_client.h"

namespace elastor {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(SlurmClientTest, SqueueIsALineAnElement) {
  const std::vector<SlurmJob> jobs = ParseSqueue(
      "12|0|RUNNING|node[1-2]|None|/d/slurm/array-1.sh\n"
      "12|1|PENDING||Resources|/d/slurm/array-1.sh\n"
      "slurm_load_jobs error: something\n"
      "13|N/A|PENDING||Dependency|/d a|b/slurm/advance.sh\n");
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs[0].id, "12");
  EXPECT_EQ(jobs[0].element, 0);
  EXPECT_EQ(jobs[0].state, "RUNNING");
  EXPECT_EQ(jobs[0].nodes, "node[1-2]");
  EXPECT_EQ(jobs[1].element, 1);
  EXPECT_EQ(jobs[1].reason, "Resources");
  EXPECT_EQ(jobs[2].element, -1);
  EXPECT_EQ(jobs[2].script, "/d a|b/slurm/advance.sh");
  EXPECT_THAT(ParseSqueue(""), IsEmpty());
}

// What Slurm may go on with is alive, also in a state that this program does not know.
TEST(SlurmClientTest, AliveIsWhatHasNotEnded) {
  for (const char* state : {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED",
                            "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "STAGE_OUT", "NEW_STATE"}) {
    EXPECT_TRUE(SlurmJob{.state = state}.IsAlive()) << state;
  }
  for (const char* state : {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED",
                            "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "REVOKED"}) {
    EXPECT_FALSE(SlurmJob{.state = state}.IsAlive()) << state;
  }
}

// The last line of an element counts; an id that another job has now does not.
TEST(SlurmClientTest, SacctIsOfJobsOfTheName) {
  EXPECT_THAT(ParseSacct("12_0|elastor-a|NODE_FAIL\n12_0|elastor-a|COMPLETED\n"
                         "12_1|elastor-a|CANCELLED by 1000\n12_2|other|FAILED\n"
                         "Slurm accounting storage is disabled\n",
                         "elastor-a"),
              UnorderedElementsAre(Pair("12_0", "COMPLETED"), Pair("12_1", "CANCELLED")));
}

TEST(SlurmClientTest, TheSiteSaysHowLargeArraysAre) {
  EXPECT_EQ(ParseMaxArraySize("MailProg                = /bin/mail\n"
                              "MaxArraySize            = 1001\nMaxDBDMsgs = 20008\n"),
            1001);
  EXPECT_EQ(ParseMaxArraySize("slurm_load_ctl_conf error\n"), 0);
}

TEST(SlurmClientTest, TenThousandElementsAreReadInNoTime) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) {
    text += "4711|" + std::to_string(i) +
            "|PENDING||JobArrayTaskLimit|/home/u/sweep/slurm/array-1.sh\n";
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(ParseSqueue(text).size(), 10'000u);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  RecordProperty("milliseconds", static_cast<int>(seconds.count() * 1000));
  EXPECT_LT(seconds.count(), 2);
}

PlannedRun MakeRun(const std::string& folder, int ranks, int64_t samples) {
  PlannedRun run;
  run.folder = folder;
  run.ranks = ranks;
  run.samples = samples;
  run.multiply_adds = 1;
  return run;
}

std::vector<std::string> Folders(const std::vector<const PlannedRun*>& runs) {
  std::vector<std::string> folders;
  for (const PlannedRun* run : runs) folders.push_back(run->folder);
  return folders;
}

// sbatch fills in names that begin with a percent sign, and takes two for one.
TEST(SlurmArrayTest, APercentSignInTheFoldersNameIsKept) {
  const std::vector<std::string> arguments =
      AdvanceArguments({"7"}, 1, SweepFiles{.root = "/runs/5%j"}, Slurm());
  EXPECT_THAT(arguments, Contains("--output=/runs/5%%j/slurm/advance.log"));
}

TEST(SlurmArrayTest, RunsOfLikeResourcesShareArrays) {
  const std::vector<PlannedRun> runs = {MakeRun("a", 1, 10), MakeRun("b", 2, 10),
                                        MakeRun("c", 1, 30), MakeRun("d", 1, 20),
                                        MakeRun("e", 2, 20)};
  std::vector<const PlannedRun*> left;
  for (const PlannedRun& run : runs) left.push_back(&run);
  const auto arrays = GroupIntoArrays(left, 2);
  ASSERT_EQ(arrays.size(), 3u);
  EXPECT_THAT(Folders(arrays[0]), ElementsAre("c", "d"));
  EXPECT_THAT(Folders(arrays[1]), ElementsAre("a"));
  EXPECT_THAT(Folders(arrays[2]), ElementsAre("e", "b"));
  EXPECT_THAT(GroupIntoArrays({}, 2), IsEmpty());
}

TEST(SlurmArrayTest, TheOptionsOfAnArray) {
  PlannedRun run = MakeRun("r", 8, 1);
  run.threads = 4;
  run.nodes = 2;
  run.gpus = 1;
  run.memory_gb = 5;
  run.minutes = 3;
  Slurm slurm;
  slurm.add_options("--partition=batch");
  slurm.add_options("--job-name=mine");
  slurm.set_throttle(7);
  const std::vector<const PlannedRun*> runs = {&run, &run};
  const std::vector<std::string> arguments = ArrayArguments(runs, 5, {"/d"}, slurm);
  for (const char* argument :
       {"--partition=batch", "--array=0-1%7", "--nodes=2", "--ntasks=8", "--ntasks-per-node=4",
        "--cpus-per-task=4", "--gres=gpu:4", "--mem=2560M", "--time=3", "--signal=B:USR1@90",
        "--requeue", "--open-mode=append"}) {
    EXPECT_THAT(arguments, Contains(argument));
  }
  // The last one counts.
  EXPECT_LT(std::ranges::find(arguments, "--job-name=mine"),
            std::ranges::find(arguments, "--job-name=" + JobName({"/d"})));
  EXPECT_EQ(arguments.back(), "/d/slurm/array-5.sh");
  EXPECT_NE(JobName({"/d"}), JobName({"/e"}));
  EXPECT_THAT(JobCommand(run, {"/d"}, "/t", slurm), Contains("ppr:4:node"));
  slurm.set_starter(Slurm::SRUN);
  EXPECT_THAT(JobCommand(run, {"/d"}, "/t", slurm),
              AllOf(Contains("--mpi=pmix"), Contains("--cpus-per-task=4"), Contains("/t")));
}

TEST(SlurmArrayTest, ATimeLimitIsNeeded) {
  Sweep sweep;
  EXPECT_THAT(CheckSlurm(sweep).message(), HasSubstr("resources.minutes: 0; expected"));
  sweep.mutable_slurm()->add_options("--time=1-00:00:00");
  EXPECT_TRUE(CheckSlurm(sweep).ok());
  sweep.mutable_resources()->set_minutes(1);
  EXPECT_TRUE(CheckSlurm(sweep).ok());
  sweep.mutable_slurm()->set_signal_seconds(60);
  EXPECT_THAT(CheckSlurm(sweep).message(), HasSubstr("signal_seconds: 60; expected less"));
}

// What elements and later launchers find of an array.
TEST(SlurmArrayTest, AnArrayIsOpenUntilItIsClosed) {
  const SweepFiles files = {testing::TempDir() + "/arrays"};
  ASSERT_TRUE(MakeDirectory(files.Slurm()).ok());
  const PlannedRun a = MakeRun("a", 1, 1), b = MakeRun("b", 1, 1);
  EXPECT_EQ(*NextArrayNumber(files), 1);
  ASSERT_TRUE(WriteArray(std::vector<const PlannedRun*>{&a, &b}, 1, files, "/t r", Slurm()).ok());
  ASSERT_EQ(ReadOpenArrays(files)->size(), 1u);
  EXPECT_EQ((*ReadOpenArrays(files))[0].job, "");
  ASSERT_TRUE(RecordJob(files, 1, "12").ok());
  EXPECT_EQ((*ReadOpenArrays(files))[0].job, "12");
  EXPECT_THAT((*ReadOpenArrays(files))[0].folders, ElementsAre("a", "b"));
  const auto element = ReadElement(files, 1, 1);
  ASSERT_TRUE(element.ok() && *element);
  EXPECT_EQ((*element)->folder, "b");
  EXPECT_EQ((*element)->command.front(), "/t r");
  EXPECT_THAT(ReadElement(files, 1, 2).status().message(), HasSubstr("line 3 is not there"));
  ASSERT_TRUE(CloseArray(files, 1).ok());
  EXPECT_THAT(*ReadOpenArrays(files), IsEmpty());
  EXPECT_FALSE(*ReadElement(files, 1, 1));
  EXPECT_EQ(*NextArrayNumber(files), 2);
}

TEST(SlurmArrayTest, ADamagedListIsOneLine) {
  const SweepFiles files = {testing::TempDir() + "/damaged"};
  ASSERT_TRUE(MakeDirectory(files.Slurm()).ok());
  const std::string path = files.Slurm() + "/array-1.jsonl";
  for (const char* line :
       {"{\"folder\":3,\"command\":[\"t\"]}", "{\"folder\":\"a\",\"command\":\"t\"}",
        "{\"folder\":\"a\",\"command\":[1]}", "{\"folder\":\"a\",\"command\":[]}", "[3]", "{"}) {
    ASSERT_TRUE(WriteFileAtomically(path, std::string(line) + "\n").ok());
    EXPECT_EQ((*ReadOpenArrays(files))[0].folders.size(), 1u) << line;
    EXPECT_THAT(ReadElement(files, 1, 0).status().message(), HasSubstr("line 1 is not there or"))
        << line;
  }
}

}  // namespace
}  // namespace elastor
