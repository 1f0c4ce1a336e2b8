#include "trainer/data/prefetch.h"

#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "trainer/data/dataset_writer.h"

namespace elastor {
namespace {

// 1000 rows whose only id is the row number.
std::string WriteNumberedRows(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(path);
  DatasetInfo info;
  info.categorical = {{"row", 1000, false, false}};
  info.rows_per_block = 100;
  auto writer = DatasetWriter::Create(path, info);
  EXPECT_TRUE(writer.ok());
  for (int64_t block = 0; block < 10; ++block) {
    Rows rows;
    rows.rows = 100;
    rows.labels.assign(100, 0);
    for (int64_t row = 0; row < 100; ++row) rows.ids.push_back(block * 100 + row);
    EXPECT_TRUE((*writer)->Append(Split::kTrain, rows).ok());
  }
  EXPECT_TRUE((*writer)->Commit({}).ok());
  return path;
}

class PrefetcherTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, PrefetcherTest, testing::Values(1, 4));

TEST_P(PrefetcherTest, GivesWhatReadGivesInOrderOfRequests) {
  auto dataset = Dataset::Open(WriteNumberedRows("prefetch.set"));
  ASSERT_TRUE(dataset.ok());
  const RowOrder order = {.shuffled = true, .seed = 3, .window_blocks = 4};
  std::deque<Rows> taken_rows;
  Prefetcher prefetcher(dataset->get(), Split::kTrain, order, GetParam());
  Rows expected;
  int64_t asked = 0;
  const auto range = [](int64_t i) { return Range{i * 37 % 900, i * 37 % 900 + i % 5 * 20}; };
  for (int64_t taken = 0; taken < 100; ++taken) {
    while (asked < 100 && asked < taken + 6) {
      Rows* const rows = &taken_rows.emplace_back();
      prefetcher.Request(asked / 50, range(asked), [rows](Rows* read) {
        std::swap(*rows, *read);
        return OkStatus();
      });
      ++asked;
    }
    EXPECT_EQ(prefetcher.pending(), asked - taken);
    ASSERT_TRUE(prefetcher.Next().ok());
    ASSERT_TRUE((*dataset)->Read(Split::kTrain, order, taken / 50, range(taken), &expected).ok());
    EXPECT_EQ(taken_rows[taken].rows, expected.rows);
    EXPECT_EQ(taken_rows[taken].ids, expected.ids);
  }
}

TEST_P(PrefetcherTest, StopsWithRequestsLeft) {
  auto dataset = Dataset::Open(WriteNumberedRows("prefetch_left.set"));
  ASSERT_TRUE(dataset.ok());
  Prefetcher prefetcher(dataset->get(), Split::kTrain, {}, GetParam());
  for (int i = 0; i < 10; ++i) prefetcher.Request(0, {0, 1000}, [](Rows*) { return OkStatus(); });
}

TEST_P(PrefetcherTest, PassesOnErrors) {
  const std::string path = WriteNumberedRows("prefetch_damaged.set");
  std::fstream(path + "/train.rows", std::ios::in | std::ios::out | std::ios::binary).put('\x55');
  auto dataset = Dataset::Open(path);
  ASSERT_TRUE(dataset.ok());
  Prefetcher prefetcher(dataset->get(), Split::kTrain, {.shuffled = false}, GetParam());
  prefetcher.Request(0, {0, 10}, [](Rows*) {
    ADD_FAILURE() << "damaged rows";
    return OkStatus();
  });
  int64_t first = -1;
  prefetcher.Request(0, {100, 110}, [&](Rows* rows) {
    first = rows->ids.front();
    return OkStatus();
  });
  prefetcher.Request(0, {100, 110}, [](Rows*) { return UserError("refused"); });
  EXPECT_EQ(prefetcher.Next().code(), StatusCode::kUser);
  EXPECT_TRUE(prefetcher.Next().ok());
  EXPECT_EQ(first, 100);
  EXPECT_EQ(prefetcher.Next().message(), "refused");
}

}  // namespace
}  // namespace elastor
