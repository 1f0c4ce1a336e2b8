#include "trainer/run/pass_watch.h"

#include <string>

#include "gtest/gtest.h"

namespace elastor {
namespace {

TableSpec Table(const RowRules& rules) { return {.name = "user", .keyed = true, .rules = rules}; }

// Calls it for the steps [1, steps], of which every `every`-th has a pass. Returns the lines.
std::string Lines(const RowRules& rules, int64_t steps, int64_t every) {
  PassWatch watch;
  std::string lines;
  for (int64_t step = 1; step <= steps; ++step) {
    const std::string line = watch.AfterStep(Table(rules), step, 90, step % every == 0 ? 5 : 0);
    if (!line.empty()) lines += std::to_string(step) + " " + line + "\n";
  }
  return lines;
}

constexpr RowRules kFull = {
    .policy = RowRules::Policy::kLru, .capacity = 100, .evicts_when_full = true, .evict_to = 95};

TEST(PassWatchTest, TellsOnceOfPassesAtNearlyEveryStep) {
  EXPECT_EQ(Lines(kFull, 500, 1),
            "48 warning: embedding.tables: table 'user' was full, and lost rows, at 48 of the last "
            "64 steps; lower eviction.evict_to, 95, or raise capacity, 100\n");
  EXPECT_EQ(Lines(kFull, 500, 2), "");
}

TEST(PassWatchTest, PassesThatTheRulesAskForAreWanted) {
  RowRules rules = kFull;
  rules.evict_every_steps = 1;
  EXPECT_EQ(Lines(rules, 500, 1), "");
}

TEST(PassWatchTest, TellsOnceOfATableWithoutRows) {
  PassWatch watch;
  RowRules rules = {.policy = RowRules::Policy::kL2, .evict_every_steps = 10, .min_l2 = 9};
  EXPECT_EQ(watch.AfterStep(Table(rules), 1, 0, 0), "");
  EXPECT_EQ(watch.AfterStep(Table(rules), 10, 0, 7),
            "warning: embedding.tables: table 'user' has no row left after the pass of step 10; "
            "lower eviction.min_l2");
  EXPECT_EQ(watch.AfterStep(Table(rules), 20, 0, 7), "");
  rules = {.policy = RowRules::Policy::kTtlEventTime, .evict_every_steps = 10, .ttl_seconds = 1};
  EXPECT_EQ(PassWatch().AfterStep(Table(rules), 30, 0, 7),
            "warning: embedding.tables: table 'user' has no row left after the pass of step 30; "
            "raise eviction.ttl_seconds");
}

}  // namespace
}  // namespace elastor
