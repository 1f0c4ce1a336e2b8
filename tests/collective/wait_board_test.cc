#include "collective/wait_board.h"

#include <chrono>
#include <cstdio>
#include <vector>

#include "gtest/gtest.h"

namespace elastor {
namespace {

constexpr auto kSecond = std::chrono::seconds(1);
const Clock::time_point kStart = Clock::now();

// A rank's report of the last of these calls.
WaitReport ReportOf(const std::vector<Call>& calls) {
  WaitReport report;
  for (Call call : calls) {
    call.number = report.call.number + 1;
    report.call = call;
    report.history = HistoryWith(report.history, call);
  }
  return report;
}

const Call kSum = {CallKind::kAllReduceSum, Phase::kScalars, 2, 16, 16, 2};
const Call kExchange = {CallKind::kAllToAllV, Phase::kIdExchange, 1, 8, 24};
const Call kOtherExchange = {CallKind::kAllToAllV, Phase::kIdExchange, 1, 80, 0};

// That it waits in the last of these calls.
WaitReport WaitsIn(const std::vector<Call>& calls, double seconds) {
  WaitReport report = ReportOf(calls);
  report.waits = true;
  report.seconds = seconds;
  return report;
}

WaitReport IsBusy(const std::vector<Call>& calls, Activity activity, double seconds) {
  WaitReport report = ReportOf(calls);
  report.activity = activity;
  report.seconds = seconds;
  return report;
}

TEST(WaitBoardTest, RanksAreLateUntilTheySayThatTheyWaitAndWhenTheyNoLongerDo) {
  WaitBoard board(4, true);
  EXPECT_EQ(board.LateSince(kStart), (std::vector<int>{0, 1, 2, 3}));
  board.Add(0, WaitsIn({kSum}, 1), kStart);
  board.Add(2, WaitsIn({kSum}, 1.5), kStart + kSecond);
  board.Add(3, IsBusy({kSum}, Activity::kCompute, 9), kStart + kSecond);
  EXPECT_EQ(board.LateSince(kStart), (std::vector<int>{1, 3}));
  EXPECT_EQ(board.LateSince(kStart + kSecond), (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(board.conflict(), "");
  // Until now; of what was said before `since` nothing counts.
  EXPECT_EQ(board.LongestWait(kStart, kStart + kSecond), 2);
  EXPECT_EQ(board.LongestWait(kStart + kSecond, kStart + kSecond), 1.5);
  EXPECT_EQ(board.LongestWait(kStart + 2 * kSecond, kStart + 2 * kSecond), 0);
}

TEST(WaitBoardTest, SaysWhoIsLateWithWhatAndWhatTheOthersWaitIn) {
  WaitBoard board(7, true);
  for (int rank = 0; rank < 7; ++rank) {
    WaitReport hello;
    hello.hello = true;
    std::snprintf(hello.host, sizeof hello.host, rank < 4 ? "a" : "b");
    board.Add(rank, hello, kStart);
  }
  EXPECT_EQ(board.Describe(kStart, kStart), "ranks 0-6 on a, b: no word, stopped or cut off");
  const auto add = [&](int rank, WaitReport report) {
    std::snprintf(report.host, sizeof report.host, rank < 4 ? "a" : "b");
    board.Add(rank, report, kStart);
  };
  for (const int rank : {0, 1, 3}) add(rank, WaitsIn({kSum, kExchange}, 2));
  add(6, WaitsIn({kSum}, 2));
  add(2, IsBusy({kSum}, Activity::kDataRead, 3));
  add(4, IsBusy({kSum}, Activity::kDataRead, 3.5));
  Call heard = kSum;
  heard.number = 1;
  board.Heard(5, heard);
  EXPECT_EQ(
      board.Describe(kStart, kStart + kSecond),
      "rank 5 on b: no word, stopped or cut off, heard of last in AllReduceSum (scalars, call "
      "1); ranks 2,4 on a, b: data_read for 4.5 s after AllReduceSum (scalars, call 1); rank 6 "
      "waits in AllReduceSum (scalars, call 1); ranks 0-1,3 wait in AllToAllV (id_exchange, "
      "call 2)");
}

TEST(WaitBoardTest, WithoutAWatchdogASilentRankMayBeBusy) {
  WaitBoard board(2, false);
  board.Add(0, WaitsIn({kSum}, 1), kStart);
  EXPECT_EQ(board.Describe(kStart, kStart),
            "rank 1: no word, busy, stopped or cut off; rank 0 waits in AllReduceSum (scalars, "
            "call 1)");
}

TEST(WaitBoardTest, WithoutALateRankALinkMayBeCut) {
  WaitBoard board(2, true);
  board.Add(0, WaitsIn({kSum}, 1), kStart);
  WaitReport files = WaitsIn({kSum}, 1);
  files.activity = Activity::kCheckpointPeers;
  board.Add(1, files, kStart);
  EXPECT_EQ(board.Describe(kStart, kStart),
            "no rank is late, is a link cut?; rank 1 waits for the files of other ranks; rank 0 "
            "waits in AllReduceSum (scalars, call 1)");
}

TEST(WaitBoardTest, NamesRanksWhoseCallsOfTheSameNumberDiffer) {
  WaitBoard board(4, true);
  board.Add(3, ReportOf({kSum, kExchange}), kStart);
  board.Add(0, ReportOf({kSum}), kStart);
  EXPECT_EQ(board.conflict(), "");
  board.Add(1, ReportOf({kSum, kSum}), kStart);
  EXPECT_EQ(board.conflict(),
            "rank 1 makes AllReduceSum (scalars, 32 bytes, call 2), rank 3 AllToAllV (id_exchange, "
            "32 bytes, call 2)");
}

TEST(WaitBoardTest, LengthsThatDependOnTheRankAreNoConflict) {
  WaitBoard board(2, true);
  board.Add(0, ReportOf({kSum, kExchange}), kStart);
  board.Add(1, ReportOf({kSum, kOtherExchange}), kStart);
  EXPECT_EQ(board.conflict(), "");
}

TEST(WaitBoardTest, LengthsThatMustBeAlikeAreOne) {
  Call longer = kSum;
  longer.alike = 3;
  WaitBoard board(2, true);
  board.Add(0, ReportOf({longer}), kStart);
  board.Add(1, ReportOf({kSum}), kStart);
  EXPECT_NE(board.conflict(), "");
}

TEST(WaitBoardTest, RemembersCallsBeforeThePresentOne) {
  WaitBoard board(2, true);
  board.Add(0, ReportOf({kExchange, kSum}), kStart);
  board.Add(1, ReportOf({kSum, kSum}), kStart);
  EXPECT_EQ(board.conflict(),
            "rank 0 makes AllReduceSum (scalars, 32 bytes, call 2), rank 1 the same, after other "
            "calls");
}

}  // namespace
}  // namespace elastor
