#include "trainer/data/batch_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/data/dataset_writer.h"

namespace elastor {
namespace {

constexpr int64_t kRows = 200;
constexpr int64_t kBatchRows = 48;  // the last batch of an epoch has 8 rows
constexpr int64_t kLeaves = 16;
constexpr int64_t kEpochs = 2;
constexpr RowOrder kOrder = {.shuffled = true, .seed = 3, .window_blocks = 4};

std::string DataPath() { return testing::TempDir() + "/batch_source.set"; }

// Rows whose only id and only numeric value are the row's number.
std::unique_ptr<Dataset> MakeNumberedRows() {
  std::filesystem::remove_all(DataPath());
  DatasetInfo info;
  info.numeric = {{"number"}};
  info.categorical = {{"row", kRows, false, false}};
  info.rows_per_block = 20;
  auto writer = DatasetWriter::Create(DataPath(), info);
  EXPECT_TRUE(writer.ok());
  for (int64_t begin = 0; begin < kRows; begin += info.rows_per_block) {
    Rows rows;
    rows.rows = info.rows_per_block;
    for (int64_t row = begin; row < begin + rows.rows; ++row) {
      rows.labels.push_back(static_cast<float>(row % 2));
      rows.numeric.push_back(static_cast<float>(row));
      rows.ids.push_back(row);
    }
    EXPECT_TRUE((*writer)->Append(Split::kTrain, rows).ok());
  }
  EXPECT_TRUE((*writer)->Commit({}).ok());
  return std::move(Dataset::Open(DataPath())).value();
}

BatchSource::Options Options(int rank, int ranks) {
  return {
      .batch_rows = kBatchRows, .leaves = kLeaves, .epochs = kEpochs, .rank = rank, .ranks = ranks};
}

TEST(BatchSourceTest, EveryEpochVisitsEveryRowOnceInAnOrderOfItsOwn) {
  const auto dataset = MakeNumberedRows();
  BatchSource source(dataset.get(), kOrder, Options(0, 1));
  ASSERT_EQ(source.steps_per_epoch(), 5);
  ASSERT_EQ(source.total_steps(), 10);
  std::vector<std::vector<int64_t>> epochs(kEpochs);
  LocalBatch batch;
  for (int64_t step = 0; step < source.total_steps(); ++step) {
    ASSERT_TRUE(source.Next(&batch).ok());
    EXPECT_EQ(batch.first_index, step % 5 * kBatchRows);
    EXPECT_EQ(batch.global_rows, step % 5 == 4 ? 8 : kBatchRows);
    auto& seen = epochs[step / 5];
    seen.insert(seen.end(), batch.sparse.ids.begin(), batch.sparse.ids.end());
  }
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<int64_t>& seen = epochs[epoch];
    ASSERT_EQ(static_cast<int64_t>(seen.size()), kRows);
    EXPECT_EQ(static_cast<int64_t>(std::set<int64_t>(seen.begin(), seen.end()).size()), kRows);
    for (int64_t i = 0; i < kRows; ++i) {
      EXPECT_EQ(seen[i], dataset->RowAt(Split::kTrain, kOrder, epoch, i));
    }
  }
  EXPECT_NE(epochs[0], epochs[1]);
}

// Neither whole blocks nor whole batches.
TEST(BatchSourceTest, AnOrderOfTheFirstRowsVisitsThemAlone) {
  const auto dataset = MakeNumberedRows();
  RowOrder order = kOrder;
  order.first_rows = 107;
  BatchSource source(dataset.get(), order, Options(0, 1));
  ASSERT_EQ(source.steps_per_epoch(), 3);
  LocalBatch batch;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    std::set<int64_t> seen;
    for (int64_t step = 0; step < source.steps_per_epoch(); ++step) {
      ASSERT_TRUE(source.Next(&batch).ok());
      seen.insert(batch.sparse.ids.begin(), batch.sparse.ids.end());
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), order.first_rows);
    EXPECT_EQ(*seen.rbegin(), order.first_rows - 1);
  }
}

TEST(BatchSourceTest, BeginsAtAnyStep) {
  const auto dataset = MakeNumberedRows();
  BatchSource whole(dataset.get(), kOrder, Options(1, 3));
  LocalBatch expected;
  LocalBatch found;
  for (int64_t step = 0; step < whole.total_steps(); ++step) {
    ASSERT_TRUE(whole.Next(&expected).ok());
    BatchSource::Options options = Options(1, 3);
    options.first_step = step;
    BatchSource later(dataset.get(), kOrder, options);
    ASSERT_TRUE(later.Next(&found).ok());
    EXPECT_EQ(found.sparse.ids, expected.sparse.ids) << step;
    EXPECT_EQ(found.first_index, expected.first_index) << step;
    EXPECT_EQ(found.global_rows, expected.global_rows) << step;
  }
}

// The ranks' batches, one after another, are the batch of one rank, and every leaf has the rows
// that it has there.
TEST(BatchSourceTest, RanksShareABatchByLeaves) {
  const auto dataset = MakeNumberedRows();
  for (const int ranks : {2, 3, 7, 16}) {
    BatchSource whole_source(dataset.get(), kOrder, Options(0, 1));
    std::vector<std::unique_ptr<BatchSource>> sources;
    for (int rank = 0; rank < ranks; ++rank) {
      sources.push_back(std::make_unique<BatchSource>(dataset.get(), kOrder, Options(rank, ranks)));
    }
    LocalBatch whole, part;
    for (int64_t step = 0; step < whole_source.total_steps(); ++step) {
      ASSERT_TRUE(whole_source.Next(&whole).ok());
      int64_t at = 0;
      for (const auto& source : sources) {
        ASSERT_TRUE(source->Next(&part).ok());
        EXPECT_EQ(part.global_rows, whole.global_rows);
        EXPECT_EQ(part.first_index, whole.first_index + at);
        ASSERT_LE(at + part.rows(), whole.rows());
        for (int64_t i = 0; i < part.rows(); ++i) {
          EXPECT_EQ(part.sparse.ids[i], whole.sparse.ids[at + i]);
          EXPECT_EQ(part.numeric[i], whole.numeric[at + i]);
          EXPECT_EQ(part.labels[i], whole.labels[at + i]);
        }
        const auto& offsets = part.sparse.leaf_offsets;
        for (size_t l = 0; l < offsets.size(); ++l) {
          EXPECT_EQ(at + offsets[l], whole.sparse.leaf_offsets[part.sparse.first_leaf + l]);
        }
        at += part.rows();
      }
      EXPECT_EQ(at, whole.rows());
    }
  }
}

// What a batch's ids were when they were staged.
struct CopiedIds : StagedIds {
  std::vector<int64_t> ids;
  std::vector<int64_t> leaf_offsets;
};

TEST(BatchSourceTest, StagesTheIdsOfEveryBatchWhereItIsRead) {
  const auto dataset = MakeNumberedRows();
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> made = 0, on_caller = 0;
  BatchSource::Options options = Options(1, 3);
  options.readers = 2;
  options.stage = [&](const SparseBatch& batch, std::unique_ptr<StagedIds> memory) {
    on_caller += std::this_thread::get_id() == caller;
    if (memory == nullptr) {
      ++made;
      memory = std::make_unique<CopiedIds>();
    }
    auto* const copied = static_cast<CopiedIds*>(memory.get());
    copied->ids = batch.ids;
    copied->leaf_offsets = batch.leaf_offsets;
    return memory;
  };
  BatchSource source(dataset.get(), kOrder, options);
  LocalBatch batch, kept;
  for (int64_t step = 0; step < source.total_steps(); ++step) {
    ASSERT_TRUE(source.Next(&batch).ok());
    const auto* const copied = static_cast<const CopiedIds*>(batch.sparse.staged.get());
    ASSERT_NE(copied, nullptr);
    EXPECT_EQ(copied->ids, batch.sparse.ids);
    EXPECT_EQ(copied->leaf_offsets, batch.sparse.leaf_offsets);
    std::swap(batch, kept);
  }
  EXPECT_EQ(on_caller.load(), 0);
  EXPECT_EQ(made.load(), 6);  // four ahead, and the two that the caller has
  // Other rows in the same memory are not those that were staged.
  Rows rows;
  FillLocalBatch(0, 0, 0, 1, kLeaves, 1, &rows, &kept);
  EXPECT_TRUE(kept.sparse.staged == nullptr);
}

// Row r has bags "pooled" and "encoded" of r mod 5 and r mod 4 ids, and a single id.
TEST(BatchSourceTest, LaysOutWhatThePreparedSetHasOfSequences) {
  constexpr int64_t kSetRows = 40;
  std::filesystem::remove_all(DataPath());
  DatasetInfo info;
  info.categorical = {{"pooled", 100, true, false}, {"item", 100}, {"encoded", 100, true, true, 1}};
  info.rows_per_block = kSetRows;
  auto writer = DatasetWriter::Create(DataPath(), info);
  ASSERT_TRUE(writer.ok());
  Rows rows;
  rows.rows = kSetRows;
  rows.offsets = {0};
  for (int64_t row = 0; row < kSetRows; ++row) {
    rows.labels.push_back(static_cast<float>(row % 2));
    const auto add = [&](int64_t count, int64_t first) {
      for (int64_t i = 0; i < count; ++i) rows.ids.push_back(first + i);
      rows.offsets.push_back(static_cast<int64_t>(rows.ids.size()));
    };
    add(row % 5, 10);
    add(1, row);
    add(row % 4, 20);
  }
  ASSERT_TRUE((*writer)->Append(Split::kTrain, rows).ok());
  ASSERT_TRUE((*writer)->Commit({}).ok());
  const auto dataset = std::move(Dataset::Open(DataPath())).value();
  BatchSource source(dataset.get(), {.shuffled = false},
                     {.batch_rows = kSetRows,
                      .leaves = 4,
                      .epochs = 1,
                      .sequences = {{"encoded", 2, 1, 2, false}, {"pooled", 0, 0, 3, true}}});
  LocalBatch batch;
  ASSERT_TRUE(source.Next(&batch).ok());
  ASSERT_EQ(batch.sparse.fields, 3 + 2);
  ASSERT_EQ(batch.lengths.size(), static_cast<size_t>(kSetRows));
  for (int64_t row = 0; row < kSetRows; ++row) {
    const auto bag = [&](int64_t field) {
      const int64_t* const ends = batch.sparse.offsets.data() + row * 5 + field;
      return std::vector<int64_t>(batch.sparse.ids.begin() + ends[0],
                                  batch.sparse.ids.begin() + ends[1]);
    };
    // The latest ids of `all` that begin with `first`, oldest first.
    const auto latest = [](int64_t all, int64_t first, int64_t most) {
      std::vector<int64_t> ids;
      for (int64_t i = std::max<int64_t>(0, all - most); i < all; ++i) ids.push_back(first + i);
      return ids;
    };
    EXPECT_EQ(bag(0), latest(row % 5, 10, 3));
    EXPECT_EQ(bag(1), std::vector<int64_t>{row});
    EXPECT_EQ(bag(2), std::vector<int64_t>{});
    const std::vector<int64_t> positions = latest(row % 4, 20, 2);
    EXPECT_EQ(batch.lengths[row], static_cast<int32_t>(positions.size()));
    for (size_t t = 0; t < 2; ++t) {
      EXPECT_EQ(bag(3 + static_cast<int64_t>(t)),
                t < positions.size() ? std::vector<int64_t>{positions[t]} : std::vector<int64_t>{});
    }
  }
}

TEST(BatchSourceTest, ParallelSequencesHaveAsManyIds) {
  const auto lay_out = [&](int64_t first_ids, int64_t positions, bool parallel) {
    LocalBatch batch;
    batch.sparse.rows = 1;
    batch.sparse.fields = 2;
    batch.sparse.ids = {1, 2, 3, 4, 5};
    batch.sparse.offsets = {0, first_ids, 5};
    const std::vector<SequenceShape> sequences = {
        {.name = "items", .field = 0, .positions = positions, .parallel = parallel},
        {.name = "actions", .field = 1, .positions = positions, .parallel = parallel}};
    return LayOutSequences(sequences, &batch).message();
  };
  EXPECT_EQ(lay_out(3, 3, true),
            "a row has 3 ids of 'items' and 2 of 'actions'; expected as many, as the model reads "
            "them side by side");
  EXPECT_EQ(lay_out(3, 2, true), "");  // the latest 2 of each
  EXPECT_EQ(lay_out(3, 3, false), "");
}

// As any damaged file: another attempt does not help.
TEST(BatchSourceTest, DamagedDataIsAUserError) {
  MakeNumberedRows();
  const std::string file = DataPath() + "/train.rows";
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(static_cast<std::streamoff>(std::filesystem::file_size(file)) / 2);
  stream.write("damage", 6);
  stream.close();
  const auto dataset = std::move(Dataset::Open(DataPath())).value();
  BatchSource source(dataset.get(), kOrder, Options(0, 1));
  LocalBatch batch;
  Status status;
  for (int64_t step = 0; step < source.steps_per_epoch() && status.ok(); ++step) {
    status = source.Next(&batch);
  }
  EXPECT_EQ(status.code(), StatusCode::kUser);
  EXPECT_NE(status.message().find(file), std::string::npos) << status.message();
}

}  // namespace
}  // namespace elastor
