#include "core/process/stop_signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "gtest/gtest.h"

namespace elastor {
namespace {

constexpr int kStoppedCode = 75;

TEST(StopSignalsTest, RemembersTheFirstSignal) {
  RememberStopSignals();
  EXPECT_EQ(StopSignal(), 0);
  std::raise(SIGUSR1);
  EXPECT_FALSE(Terminated());
  std::raise(SIGTERM);
  EXPECT_EQ(StopSignal(), SIGUSR1);
  EXPECT_TRUE(Terminated());
}

TEST(StopSignalsDeathTest, TheSecondSignalOfAKindEndsTheProcess) {
  EXPECT_EXIT(
      {
        RememberStopSignals();
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(StopSignalsDeathTest, WorkWithNothingToSaveEndsAtOnce) {
  EXPECT_EXIT(
      {
        RememberStopSignals();
        ExitOnStopSignals(/*speaks=*/true);
        std::raise(SIGTERM);
      },
      testing::ExitedWithCode(kStoppedCode), "^trainer: stopped by SIGTERM; [^\n]*\n$");
  // Also where nobody reads stderr any more.
  EXPECT_EXIT(
      {
        int ends[2];
        if (pipe2(ends, O_NONBLOCK) != 0) std::_Exit(1);
        while (write(ends[1], "x", 1) == 1) continue;
        fcntl(ends[1], F_SETFL, 0);
        dup2(ends[1], STDERR_FILENO);
        RememberStopSignals();
        ExitOnStopSignals(/*speaks=*/true);
        std::raise(SIGTERM);
      },
      testing::ExitedWithCode(kStoppedCode), "^$");
  for (const int signal : {SIGTERM, SIGINT}) {
    EXPECT_EXIT(
        {
          RememberStopSignals();
          ExitOnStopSignals(/*speaks=*/true, /*speaks_of_sigterm=*/false);
          std::raise(signal);
        },
        testing::ExitedWithCode(kStoppedCode),
        signal == SIGTERM ? "^$" : "^trainer: stopped by SIGINT; [^\n]*\n$");
  }
  EXPECT_EXIT(
      {
        RememberStopSignals();
        std::raise(SIGUSR1);
        ExitOnStopSignals(/*speaks=*/false);
      },
      testing::ExitedWithCode(kStoppedCode), "^$");
}

}  // namespace
}  // namespace elastor
