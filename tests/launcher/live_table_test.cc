#include "launcher/live_table.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/run_table.h"

namespace elastor {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

RunRow Row(const std::string& run, const std::string& state) {
  return {.run = run,
          .state = state,
          .dense_parameters = 1234,
          .steps = 200,
          .samples = 2000,
          .progress = {.step = 50, .samples_per_s = 30, .auc = 0.75, .logloss = 0.5},
          .attempts = 1};
}

TEST(RunTableTest, ColumnsAreShared) {
  const RunRow running = Row("a", "running");
  EXPECT_EQ(HeadingLine(LiveColumns(), 3),
            "run  state    step             auc     samples/s  left");
  EXPECT_EQ(RowLine(running, LiveColumns(), 3),
            "a    running  50/200           0.7500  30         50.0 s");
  EXPECT_EQ(
      RowLine(running, StatusColumns(), 3),
      "a    running  1234        50/200           0.7500  0.5000   30         -        50.0 s   "
      "1");
  RunRow failed = Row("a", "failed");
  failed.note = "diverged: at step 7";
  failed.seconds = 7200;
  EXPECT_THAT(RowLine(failed, StatusColumns(), 3),
              HasSubstr("2.0 h    -        1         diverged: at step 7"));
}

TEST(RunTableTest, LongNamesLoseTheirMiddle) {
  EXPECT_EQ(Elided("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(Elided("abcdefghij", 9), "abc...hij");
  EXPECT_EQ(Elided("abcdefghij", 8), "abc...ij");
  EXPECT_EQ(Elided("abcdefghij", 2), "ab");
}

// A screen of few lines.
class TableLinesTest : public testing::Test {
 protected:
  std::vector<std::string> Lines(int running, int ended, size_t lines, size_t columns = 80) {
    std::vector<RunRow> at_work;
    std::deque<RunRow> over;
    for (int i = 0; i < running; ++i) at_work.push_back(Row("r" + std::to_string(i), "running"));
    for (int i = 0; i < ended; ++i) over.push_back(Row("e" + std::to_string(i), "done"));
    return TableLines(at_work, over, {"first", "second"}, {lines, columns});
  }
  // What the lines begin with.
  std::vector<std::string> Runs(int running, int ended, size_t lines) {
    std::vector<std::string> names;
    for (const std::string& line : Lines(running, ended, lines)) {
      names.push_back(line.substr(0, line.find("  ")));
    }
    return names;
  }
};

TEST_F(TableLinesTest, RunsAtWorkGoFirst) {
  EXPECT_THAT(Runs(2, 1, 24), ElementsAre("run", "r0", "r1", "e0", "first", "second"));
  // One line of the screen is the cursor's.
  EXPECT_THAT(Runs(2, 9, 8), ElementsAre("run", "r0", "r1", "e0", "e1", "first", "second"));
  EXPECT_THAT(Runs(4, 9, 8), ElementsAre("run", "r0", "r1", "r2", "r3", "first", "second"));
  EXPECT_THAT(Runs(5, 9, 8),
              ElementsAre("run", "r0", "r1", "r2", "2 more are running", "first", "second"));
}

TEST_F(TableLinesTest, NoLineIsWiderThanTheScreenAndNoTableHigher) {
  for (size_t columns = 1; columns < 130; ++columns) {
    for (size_t lines = 2; lines < 12; ++lines) {
      const std::vector<std::string> table = Lines(3, 5, lines, columns);
      EXPECT_LT(table.size(), lines);
      EXPECT_THAT(table, Each(SizeIs(testing::Le(std::max<size_t>(1, columns - 1)))));
    }
  }
}

TEST_F(TableLinesTest, ANarrowScreenHasFewerColumns) {
  EXPECT_THAT(Lines(1, 0, 24, 80)[0], HasSubstr("left"));
  EXPECT_THAT(Lines(1, 0, 24, 60)[0], Not(HasSubstr("left")));
  EXPECT_THAT(Lines(1, 0, 24, 60)[0], HasSubstr("auc"));
}

// What a terminal gets, written by `use`.
template <typename Use>
std::string OnTerminal(const Use& use) {
  int screen, own;
  winsize size = {};
  size.ws_row = 10;
  size.ws_col = 70;
  EXPECT_EQ(openpty(&screen, &own, nullptr, nullptr, &size), 0);
  const int saved = dup(STDOUT_FILENO);
  dup2(own, STDOUT_FILENO);
  use();
  dup2(saved, STDOUT_FILENO);
  close(saved);
  fcntl(screen, F_SETFL, O_NONBLOCK);
  std::array<char, 4096> bytes;
  std::string text;
  for (ssize_t count; (count = read(screen, bytes.data(), bytes.size())) > 0;) {
    text.append(bytes.data(), count);
  }
  close(own);
  close(screen);
  return text;
}

int Occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

TEST(LiveTableTest, IsDrawnAgainInItsPlace) {
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  const std::string text = OnTerminal([] {
    LiveTable table;
    table.Draw({Row("a", "running")}, {"footer"});
    table.Say("something happened");
    table.Draw({}, {"footer"});
    table.Erase();
  });
  EXPECT_THAT(text, HasSubstr("\033[36m  running  \033[m"));
  EXPECT_THAT(text, HasSubstr("something happened\r\nrun"));
  EXPECT_THAT(text, testing::EndsWith("\r\033[2A\033[J\033[?25h"));
  // Three lines were there twice, two once; no frame leaves the cursor hidden.
  EXPECT_EQ(Occurrences(text, "\033[3A"), 2);
  EXPECT_EQ(Occurrences(text, "\033[2A"), 1);
  EXPECT_EQ(Occurrences(text, "\033[?25l"), 4);
  EXPECT_EQ(Occurrences(text, "\033[?25h"), 4);
  setenv("NO_COLOR", "1", 1);
  EXPECT_THAT(OnTerminal([] { LiveTable().Draw({Row("a", "running")}, {}); }),
              Not(HasSubstr("\033[36m")));
}

TEST(LiveTableTest, ElsewhereThereAreLinesAlone) {
  const auto use = [] {
    LiveTable table;
    table.Draw({Row("a", "running")}, {"footer"});
    table.Say("something happened");
    table.Erase();
  };
  setenv("TERM", "dumb", 1);
  EXPECT_THAT(OnTerminal(use), testing::MatchesRegex("..:..:.. something happened\r\n"));
  setenv("TERM", "xterm", 1);
  testing::internal::CaptureStdout();
  use();
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              testing::MatchesRegex("..:..:.. something happened\n"));
}

}  // namespace
}  // namespace elastor
