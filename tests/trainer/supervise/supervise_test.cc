#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/process/job_process.h"
#include "gtest/gtest.h"
#include "tests/core/base/file_limit.h"
#include "trainer/supervise/hosts.h"
#include "trainer/supervise/mpirun_report.h"

namespace elastor {
namespace {

TEST(HostsTest, ReadsHostsAndFillsThemInOrder) {
  const auto hosts = ParseHosts("localhost:8,127.0.0.1");
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_EQ(ToText(*hosts), "localhost:8,127.0.0.1:1");
  EXPECT_EQ(RanksOf(*hosts), 9);
  EXPECT_EQ(ToText(Fill(*hosts, 9)), "localhost:8,127.0.0.1:1");
  EXPECT_EQ(ToText(Fill(*hosts, 8)), "localhost:8");
  EXPECT_EQ(ToText(Fill(*hosts, 3)), "localhost:3");
}

TEST(HostsTest, ReadsAHostfile) {
  const std::string path = testing::TempDir() + "/hosts";
  ASSERT_TRUE(WriteFileAtomically(path, "# ours\nlocalhost slots=4  # fast\n\n127.0.0.1\n").ok());
  const auto hosts = ReadHostfile(path);
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_EQ(ToText(*hosts), "localhost:4,127.0.0.1:1");
  ASSERT_TRUE(WriteFileAtomically(path, "localhost max_slots=4\n").ok());
  EXPECT_EQ(ReadHostfile(path).status().message(),
            "--hostfile=" + path + ": 'max_slots=4'; expected HOST slots=N");
  ASSERT_TRUE(WriteFileAtomically(path, "# none yet\n").ok());
  EXPECT_EQ(ReadHostfile(path).status().message(),
            "--hostfile=" + path + ": names no host; expected one at least");
  EXPECT_EQ(ReadHostfile(path + "x").status().message(),
            "--hostfile: " + path + "x: open: No such file or directory");
}

TEST(HostsTest, RefusesWhatIsNone) {
  const auto message = [](const std::string& text) { return ParseHosts(text).status().message(); };
  EXPECT_EQ(message("localhost:0"),
            "--hosts=localhost:0: '0' ranks; expected a number of at least 1");
  EXPECT_EQ(message("localhost:2x"),
            "--hosts=localhost:2x: '2x' ranks; expected a number of at least 1");
  EXPECT_EQ(message("localhost,localhost:2"),
            "--hosts=localhost,localhost:2: localhost is there twice");
  EXPECT_EQ(message("localhost,,"), "--hosts=localhost,,: an empty name; expected a host");
  EXPECT_EQ(message("localhost:900000,127.0.0.1:900000"),
            "--hosts=localhost:900000,127.0.0.1:900000: more than 1000000 ranks");
  EXPECT_TRUE(message("no..host").starts_with("--hosts=no..host: no..host: "))
      << message("no..host");
}

const std::string kDashes(74, '-');

// The paragraphs as Open MPI 4.1.4 prints them.
std::string Framed(const std::string& text) { return kDashes + "\n" + text + kDashes + "\n"; }

TEST(MpirunReportTest, PassesOnWhatRanksPrint) {
  MpirunReport report;
  EXPECT_EQ(report.Pass("step 1\nelastor: ra"), "step 1\n");
  EXPECT_EQ(report.Pass("nk 0 waits\n---\n"), "elastor: rank 0 waits\n---\n");
  EXPECT_EQ(report.Pass("half"), "");
  EXPECT_EQ(report.Rest(), "half");
  EXPECT_EQ(report.cause(), "");
}

TEST(MpirunReportTest, KnowsWhoWasKilled) {
  MpirunReport report;
  EXPECT_EQ(report.Pass(Framed("mpirun noticed that process rank 3 with PID 0 on node b exited on "
                               "signal 9 (Killed).\n") +
                        "after\n"),
            "after\n");
  EXPECT_EQ(report.cause(), "rank 3 on b was killed by signal 9");
}

TEST(MpirunReportTest, KnowsWhoseExitCodeItWas) {
  MpirunReport report;
  const std::string first = Framed(
      "Primary job  terminated normally, but 1 process returned\na non-zero exit code. Per "
      "user-direction, the job has been aborted.\n");
  const std::string second = Framed(
      "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
      "the job to be terminated. The first process to do so was:\n\n  Process name: "
      "[[51107,1],2]\n  Exit code:    3\n");
  EXPECT_EQ(report.Pass(first + second), "");
  EXPECT_EQ(report.cause(), "rank 2 ended with code 3");
}

TEST(MpirunReportTest, KnowsALostHost) {
  MpirunReport report;
  EXPECT_EQ(
      report.Pass(Framed("ORTE has lost communication with a remote daemon.\n\n  HNP daemon   "
                         ": [[9,0],0] on node a\n  Remote daemon: [[9,0],1] on node b\n\nThis "
                         "is usually due to either a failure of the TCP network\n")),
      "");
  EXPECT_EQ(report.cause(), "host b was lost");
}

TEST(MpirunReportTest, LeavesOtherParagraphsAndOurLinesInThem) {
  MpirunReport report;
  const std::string unknown = "There are not enough slots available\n";
  EXPECT_EQ(report.Pass(Framed(unknown)), unknown);
  EXPECT_EQ(report.Pass(kDashes + "\nMPI_ABORT was invoked on rank 0\ntrainer: a disk\n" +
                        "with errorcode 3.\n" + kDashes + "\n"),
            "trainer: a disk\n");
  EXPECT_EQ(report.Pass("[h:1] 3 more processes have sent help message help-mpi-api.txt / x\n"),
            "");
  EXPECT_EQ(report.cause(), "");
}

// A rank may print lines of any length between two of mpirun's.
TEST(MpirunReportTest, BearsLongLines) {
  MpirunReport report;
  const std::string line = "Process name: [[" + std::string(1 << 22, 'x') + "\n";
  EXPECT_EQ(report.Pass(Framed(line)), line);
  EXPECT_EQ(report.Pass(Framed(line + "Exit code: 3\n")), "");
  EXPECT_EQ(report.cause(), "a rank ended with code 3");
}

// What cannot be looked at is not taken for gone, and what nobody has waited for is known to have
// been there.
TEST(JobProcessTest, KnowsWhetherThisProgramRunsBelow) {
  EXPECT_EQ(ThisProgramBelow(getpid()), ProgramBelow::kNone);
  const pid_t child = fork();
  if (child == 0) {
    while (true) pause();
  }
  EXPECT_EQ(ThisProgramBelow(getpid()), ProgramBelow::kAlive);
  EXPECT_EQ(ThisProgramBelow(child), ProgramBelow::kNone);
  for (const int room : {0, 1}) {
    const FileLimit limit(room);
    EXPECT_EQ(ThisProgramBelow(getpid()), std::nullopt) << room;
  }
  kill(child, SIGKILL);
  siginfo_t info;
  waitid(P_PID, child, &info, WEXITED | WNOWAIT);
  EXPECT_EQ(ThisProgramBelow(getpid()), ProgramBelow::kEnded);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(ThisProgramBelow(getpid()), ProgramBelow::kNone);
}

TEST(JobProcessTest, KnowsWhetherAFolderIsLocked) {
  const std::string folder = testing::TempDir() + "/locked";
  EXPECT_EQ(IsLocked(folder), false);
  ASSERT_TRUE(MakeDirectory(folder).ok());
  EXPECT_EQ(IsLocked(folder), false);
  const int lock = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  EXPECT_EQ(IsLocked(folder), true);
  {
    const FileLimit limit(0);
    EXPECT_EQ(IsLocked(folder), std::nullopt);
  }
  close(lock);
}

TEST(JobProcessTest, AnEndIsJudgedAlikeByAllWhoStartJobs) {
  for (const int code : {0, 1, 3, 128 + SIGKILL, 128 + SIGSEGV, 205, 255}) {
    EXPECT_EQ(EndOf(code), JobEnd::kMachine) << code;
  }
  for (const int code : {2, 4, 128 + SIGABRT, 7, -1})
    EXPECT_EQ(EndOf(code), JobEnd::kFinal) << code;
  EXPECT_EQ(EndOf(75), JobEnd::kStopped);
  EXPECT_EQ(CauseOf(137), "killed by signal 9");
  EXPECT_EQ(CauseOf(205), "exit code 205");
  std::vector<int64_t> pauses;
  for (const int n : {0, 1, 2, 3, 4, 7, 8, 1000}) pauses.push_back(PauseBeforeTry(n).count());
  EXPECT_EQ(pauses, (std::vector<int64_t>{0, 0, 1, 2, 4, 32, 60, 60}));
}

}  // namespace
}  // namespace elastor
