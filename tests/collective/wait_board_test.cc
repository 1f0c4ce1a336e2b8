#include "collective/wait_board.h"

#include <chrono>
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

const Call kSum = {CallKind::kAllReduceSum, Phase::kScalars, 16, 16, 2};
const Call kExchange = {CallKind::kAllToAllV, Phase::kIdExchange, 8, 24};
const Call kOtherExchange = {CallKind::kAllToAllV, Phase::kIdExchange, 80, 0};

TEST(WaitBoardTest, RanksAreLateUntilTheyReportAndWhenTheyNoLongerDo) {
  WaitBoard board(3);
  EXPECT_EQ(board.SilentSince(kStart), (std::vector<int>{0, 1, 2}));
  board.Add(0, ReportOf({kSum}), kStart);
  board.Add(2, ReportOf({kSum}), kStart + kSecond);
  EXPECT_EQ(board.SilentSince(kStart), (std::vector<int>{1}));
  EXPECT_EQ(board.SilentSince(kStart + kSecond), (std::vector<int>{0, 1}));
  EXPECT_EQ(board.conflict(), "");
}

TEST(WaitBoardTest, NamesRanksWhoseCallsOfTheSameNumberDiffer) {
  WaitBoard board(4);
  board.Add(3, ReportOf({kSum, kExchange}), kStart);
  board.Add(0, ReportOf({kSum}), kStart);
  EXPECT_EQ(board.conflict(), "");
  board.Add(1, ReportOf({kSum, kSum}), kStart);
  EXPECT_EQ(board.conflict(),
            "rank 1 makes AllReduceSum (scalars, 32 bytes, call 2), rank 3 AllToAllV (id_exchange, "
            "32 bytes, call 2)");
}

TEST(WaitBoardTest, LengthsThatDependOnTheRankAreNoConflict) {
  WaitBoard board(2);
  board.Add(0, ReportOf({kSum, kExchange}), kStart);
  board.Add(1, ReportOf({kSum, kOtherExchange}), kStart);
  EXPECT_EQ(board.conflict(), "");
}

TEST(WaitBoardTest, LengthsThatMustBeAlikeAreOne) {
  Call longer = kSum;
  longer.alike = 3;
  WaitBoard board(2);
  board.Add(0, ReportOf({longer}), kStart);
  board.Add(1, ReportOf({kSum}), kStart);
  EXPECT_NE(board.conflict(), "");
}

TEST(WaitBoardTest, RemembersCallsBeforeThePresentOne) {
  WaitBoard board(2);
  board.Add(0, ReportOf({kExchange, kSum}), kStart);
  board.Add(1, ReportOf({kSum, kSum}), kStart);
  EXPECT_EQ(board.conflict(),
            "rank 0 makes AllReduceSum (scalars, 32 bytes, call 2), rank 1 the same, after other "
            "calls");
}

}  // namespace
}  // namespace elastor
