#include "trainer/run/stop_signals.h"

#include <csignal>

#include "gtest/gtest.h"

namespace elastor {
namespace {

TEST(StopSignalsTest, RemembersTheFirstSignal) {
  StopSignals signals;
  EXPECT_EQ(signals.received(), 0);
  std::raise(SIGUSR1);
  std::raise(SIGTERM);
  EXPECT_EQ(signals.received(), SIGUSR1);
}

TEST(StopSignalsTest, ANewObjectHasForgotten) {
  { StopSignals signals; }
  StopSignals signals;
  EXPECT_EQ(signals.received(), 0);
}

TEST(StopSignalsDeathTest, TheSecondSignalOfAKindEndsTheProcess) {
  EXPECT_EXIT(
      {
        StopSignals signals;
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(StopSignalsDeathTest, WithoutAnObjectSignalsActAsEver) {
  { StopSignals signals; }
  EXPECT_EXIT(std::raise(SIGUSR1), testing::KilledBySignal(SIGUSR1), "");
}

}  // namespace
}  // namespace elastor
