#include "trainer/prepare/bad_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

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
      chunk.header_lines = event.number == 0;
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

}  // namespace
}  // namespace elastor
