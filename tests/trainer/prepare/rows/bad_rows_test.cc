#include "trainer/prepare/rows/bad_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/text.h"

namespace elastor {
namespace {

using testing::ElementsAre;

TEST(BadRowLedgerTest, InFileOrderWhateverOrderChunksArriveIn) {
  // Of two inputs, three chunks and one; all but the second have a bad row, in their line 1 (from
  // 0) behind a header in chunk 0.
  struct Event {
    uint32_t input, number;
    bool end;
  };
  std::vector<Event> events = {{0, 0, false}, {0, 1, false}, {0, 2, false},
                               {0, 3, true},  {1, 0, false}, {1, 1, true}};
  std::vector<int> order = {0, 1, 2, 3, 4, 5};
  do {
    std::vector<std::string> warnings;
    BadRowLedger ledger({"a", "b"}, 2, [&](const std::string& text) { warnings.push_back(text); });
    std::string error;
    for (const int i : order) {
      const Event& event = events[i];
      BadRowLedger::Chunk chunk;
      chunk.lines_taken = event.number == 0;
      chunk.lines = 10;
      if (event.number != 1) {
        chunk.bad_rows = 1;
        chunk.bad = {{1, "what"}};
      }
      const Status status = event.end ? ledger.EndInput(event.input, event.number)
                                      : ledger.Add(event.input, event.number, chunk);
      if (!status.ok()) error = status.message();
    }
    EXPECT_THAT(warnings, ElementsAre("bad row: a:3: what", "bad row: a:22: what"));
    EXPECT_EQ(error, "b:3: what; 3 bad rows so far, max_bad_rows is 2");
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(BadRowLedgerTest, RowsUpToTheLimitAreToldAndTheNextIsTheError) {
  for (const int64_t limit : {0, 1, 2}) {
    std::vector<std::string> told;
    BadRowLedger ledger({"a"}, limit, [&](const std::string& text) { told.push_back(text); });
    const Status status = ledger.Add(0, 0, {9, 3, {{1, "x"}, {2, "y"}, {4, "z"}}, 0});
    EXPECT_EQ(told.size(), static_cast<size_t>(limit));
    EXPECT_THAT(status.message(), testing::HasSubstr(StrCat("; ", limit + 1, " bad rows so far")));
    told.push_back(status.message().substr(0, 6));
    const std::vector<std::string> rows = {"bad row: a:2: x", "bad row: a:3: y"};
    for (int64_t i = 0; i < limit; ++i) EXPECT_EQ(told[i], rows[i]);
    EXPECT_EQ(told.back(), limit == 0 ? "a:2: x" : limit == 1 ? "a:3: y" : "a:5: z");
  }
}

// Of a run that goes on, what was bad in the chunks of the earlier one is only counted.
TEST(BadRowLedgerTest, TooManyInAChunkThatWasReadBefore) {
  BadRowLedger ledger({"a"}, 1, nullptr);
  EXPECT_EQ(ledger.Add(0, 0, {9, 3, {}, 0}).message(), "a; 3 bad rows so far, max_bad_rows is 1");
}

}  // namespace
}  // namespace elastor
