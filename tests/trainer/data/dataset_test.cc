#include "trainer/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "trainer/data/dataset_writer.h"

namespace elastor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr RowOrder kFileOrder = {.shuffled = false};

// A fresh path for a data set of the running test.
std::string FreshPath() {
  const std::string path = testing::TempDir() + "/" +
                           testing::UnitTest::GetInstance()->current_test_info()->name() + ".set";
  std::filesystem::remove_all(path);
  std::filesystem::remove_all(path + ".partial");
  return path;
}

DatasetInfo SmallInfo() {
  DatasetInfo info;
  info.name = "small";
  info.numeric = {{"n"}};
  info.categorical = {{"a", 1 << 20, false, false}, {"b", 7, false, false}};
  info.rows_per_block = 10;
  return info;
}

// Row r of the small set: label r % 2, numeric r / 4, ids r and r % 7.
Rows SmallRows(int64_t begin, int64_t end) {
  Rows rows;
  rows.rows = end - begin;
  for (int64_t r = begin; r < end; ++r) {
    rows.labels.push_back(static_cast<float>(r % 2));
    rows.numeric.push_back(static_cast<float>(r) / 4);
    rows.ids.push_back(r);
    rows.ids.push_back(r % 7);
  }
  return rows;
}

std::string WriteSmall(int64_t train_rows) {
  const std::string path = FreshPath();
  auto writer = DatasetWriter::Create(path, SmallInfo());
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  for (int64_t row = 0; row < train_rows; row += 10) {
    EXPECT_TRUE(
        (*writer)->Append(Split::kTrain, SmallRows(row, std::min(row + 10, train_rows))).ok());
  }
  EXPECT_TRUE((*writer)->Append(Split::kTest, SmallRows(500, 503)).ok());
  const Status committed = (*writer)->Commit({});
  EXPECT_TRUE(committed.ok()) << committed.message();
  return path;
}

std::unique_ptr<Dataset> OpenOrDie(const std::string& path) {
  auto dataset = Dataset::Open(path);
  EXPECT_TRUE(dataset.ok()) << dataset.status().message();
  return std::move(dataset).value();
}

void FlipBit(const std::string& path, int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char flipped = static_cast<char>(file.get() ^ 1);
  file.seekp(at);
  file.put(flipped);
}

TEST(DatasetTest, ReadsBackWhatWasWritten) {
  const auto dataset = OpenOrDie(WriteSmall(57));
  EXPECT_EQ(dataset->info().name, "small");
  EXPECT_EQ(dataset->rows(Split::kTrain), 57);
  EXPECT_EQ(dataset->rows(Split::kValidation), 0);
  EXPECT_EQ(dataset->rows(Split::kTest), 3);
  EXPECT_EQ(dataset->info().categorical[0].ids, 1 << 20);
  Rows rows;
  ASSERT_TRUE(dataset->Read(Split::kTrain, kFileOrder, 0, {8, 57}, &rows).ok());
  const Rows expected = SmallRows(8, 57);
  EXPECT_EQ(rows.rows, 49);
  EXPECT_EQ(rows.labels, expected.labels);
  EXPECT_EQ(rows.numeric, expected.numeric);
  EXPECT_EQ(rows.ids, expected.ids);
  EXPECT_TRUE(rows.offsets.empty());
  ASSERT_TRUE(dataset->Read(Split::kTest, kFileOrder, 0, {1, 2}, &rows).ok());
  EXPECT_THAT(rows.ids, ElementsAre(501, 501 % 7));
  ASSERT_TRUE(dataset->Read(Split::kValidation, kFileOrder, 0, {0, 0}, &rows).ok());
  EXPECT_EQ(rows.rows, 0);
}

TEST(DatasetTest, MultiHotBagsAndWideIds) {
  const std::string path = FreshPath();
  DatasetInfo info;
  info.categorical = {{"bag", int64_t{1} << 40, true, true}, {"one", 5, false, false}};
  info.rows_per_block = 2;
  auto writer = DatasetWriter::Create(path, info);
  ASSERT_TRUE(writer.ok());
  constexpr int64_t kBig = (int64_t{1} << 40) - 1;
  Rows first{2,  {1, 0}, {}, {kBig, 3, 4, 2}, {0, 2, 3, 3, 4},
             {}, {},     {}};                                    // bags {kBig 3} {4}, {} {2}
  Rows second{1, {1}, {}, {7, 8, 9, 1}, {0, 3, 4}, {}, {}, {}};  // {7 8 9} {1}
  ASSERT_TRUE((*writer)->Append(Split::kTrain, first).ok());
  ASSERT_TRUE((*writer)->Append(Split::kTrain, second).ok());
  ASSERT_TRUE((*writer)->Commit({}).ok());
  const auto dataset = OpenOrDie(path);
  EXPECT_TRUE(dataset->info().categorical[0].multi_hot);
  EXPECT_TRUE(dataset->info().categorical[0].mean_pooling);
  Rows rows;
  ASSERT_TRUE(dataset->Read(Split::kTrain, kFileOrder, 0, {0, 3}, &rows).ok());
  EXPECT_THAT(rows.ids, ElementsAre(kBig, 3, 4, 2, 7, 8, 9, 1));
  EXPECT_THAT(rows.offsets, ElementsAre(0, 2, 3, 3, 4, 7, 8));
  ASSERT_TRUE(dataset->Read(Split::kTrain, kFileOrder, 0, {1, 2}, &rows).ok());
  EXPECT_THAT(rows.ids, ElementsAre(2));
  EXPECT_THAT(rows.offsets, ElementsAre(0, 0, 1));
}

// Every optional column, on odd numbers of rows, in every combination.
TEST(DatasetTest, WeightsGroupsAndTimes) {
  for (int columns = 0; columns < 8; ++columns) {
    const std::string path = FreshPath();
    DatasetInfo info = SmallInfo();
    info.has_weights = columns & 1;
    info.has_groups = columns & 2;
    info.has_times = columns & 4;
    auto writer = DatasetWriter::Create(path, info);
    ASSERT_TRUE(writer.ok());
    Rows all = SmallRows(0, 17);
    for (int64_t begin : {0, 10}) {
      Rows rows = SmallRows(begin, begin == 0 ? 10 : 17);
      for (int64_t row = begin; row < begin + rows.rows; ++row) {
        if (info.has_weights) rows.weights.push_back(0.5f * static_cast<float>(row));
        if (info.has_groups) rows.groups.push_back(~uint64_t{0} - row);
        if (info.has_times) rows.times.push_back((int64_t{-1} << 40) + row);
      }
      ASSERT_TRUE((*writer)->Append(Split::kTrain, rows).ok());
      all.weights.insert(all.weights.end(), rows.weights.begin(), rows.weights.end());
      all.groups.insert(all.groups.end(), rows.groups.begin(), rows.groups.end());
      all.times.insert(all.times.end(), rows.times.begin(), rows.times.end());
    }
    ASSERT_TRUE((*writer)->Commit({}).ok());
    const auto dataset = OpenOrDie(path);
    EXPECT_EQ(dataset->info().has_weights, info.has_weights);
    EXPECT_EQ(dataset->info().has_groups, info.has_groups);
    EXPECT_EQ(dataset->info().has_times, info.has_times);
    Rows rows;
    rows.weights = {7, 7};  // what an earlier read has left
    rows.times = {7};
    ASSERT_TRUE(dataset->Read(Split::kTrain, kFileOrder, 0, {0, 17}, &rows).ok());
    EXPECT_EQ(rows.weights, all.weights);
    EXPECT_EQ(rows.groups, all.groups);
    EXPECT_EQ(rows.times, all.times);
    EXPECT_EQ(rows.numeric, all.numeric);
    EXPECT_EQ(rows.ids, all.ids);
  }
}

TEST(DatasetTest, FieldsThatShareATable) {
  const std::string path = FreshPath();
  DatasetInfo info = SmallInfo();
  info.categorical.push_back({"a2", 1 << 20, true, true, 0});
  auto writer = DatasetWriter::Create(path, info);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Commit({}).ok());
  EXPECT_EQ(OpenOrDie(path)->info().categorical[2].shares, 0);
  EXPECT_EQ(OpenOrDie(path)->info().categorical[1].shares, -1);
  std::string meta;
  std::getline(std::ifstream(path + "/meta.json"), meta, '\0');
  meta.replace(meta.find("1048576"), 7, "1048577");
  std::ofstream(path + "/meta.json") << meta;
  EXPECT_THAT(Dataset::Open(path).status().message(),
              HasSubstr("meta.json: field a2 shares no earlier field with as many ids"));
}

TEST(DatasetTest, FingerprintIsOfTheContents) {
  const std::string path = WriteSmall(57);
  const std::string first = OpenOrDie(path)->fingerprint();
  EXPECT_EQ(first.size(), 16u);
  const std::string copy = path + ".copy";
  std::filesystem::remove_all(copy);
  std::filesystem::copy(path, copy);
  EXPECT_EQ(OpenOrDie(copy)->fingerprint(), first);
  EXPECT_EQ(OpenOrDie(WriteSmall(57))->fingerprint(), first);
  EXPECT_NE(OpenOrDie(WriteSmall(58))->fingerprint(), first);
  // One other value in one row, all sizes being equal.
  auto writer = DatasetWriter::Create(path + ".other", SmallInfo());
  ASSERT_TRUE(writer.ok());
  for (int64_t row = 0; row < 57; row += 10) {
    Rows rows = SmallRows(row, std::min<int64_t>(row + 10, 57));
    if (row == 40) rows.numeric[3] += 1;
    ASSERT_TRUE((*writer)->Append(Split::kTrain, rows).ok());
  }
  ASSERT_TRUE((*writer)->Append(Split::kTest, SmallRows(500, 503)).ok());
  ASSERT_TRUE((*writer)->Commit({}).ok());
  EXPECT_NE(OpenOrDie(path + ".other")->fingerprint(), first);
  std::filesystem::remove_all(path + ".other");
}

TEST(DatasetTest, ShuffledOrderVisitsEachRowOnceAndIsSeekable) {
  const auto dataset = OpenOrDie(WriteSmall(1237));
  const RowOrder order = {.shuffled = true, .seed = 5, .window_blocks = 8};
  std::set<int64_t> seen;
  std::vector<int64_t> rows_of_epoch;
  for (int64_t position = 0; position < 1237; ++position) {
    rows_of_epoch.push_back(dataset->RowAt(Split::kTrain, order, 3, position));
    seen.insert(rows_of_epoch.back());
  }
  EXPECT_EQ(seen.size(), 1237u);
  EXPECT_EQ(*seen.begin(), 0);
  EXPECT_EQ(*seen.rbegin(), 1236);
  // A read in the middle gives the rows of the whole walk.
  Rows rows;
  ASSERT_TRUE(dataset->Read(Split::kTrain, order, 3, {70, 250}, &rows).ok());
  for (int64_t i = 0; i < 180; ++i) EXPECT_EQ(rows.ids[2 * i], rows_of_epoch[70 + i]);
  // Rows of the short last block stay in the last window.
  for (int64_t position = 0; position < 1200; ++position) {
    EXPECT_LT(rows_of_epoch[position], 1230);
  }
}

TEST(DatasetTest, WindowsHoldWholeBlocks) {
  const auto dataset = OpenOrDie(WriteSmall(400));
  const RowOrder order = {.shuffled = true, .seed = 9, .window_blocks = 4};
  for (int64_t window = 0; window < 10; ++window) {
    std::set<int64_t> blocks;
    for (int64_t i = 0; i < 40; ++i) {
      blocks.insert(dataset->RowAt(Split::kTrain, order, 0, window * 40 + i) / 10);
    }
    EXPECT_EQ(blocks.size(), 4u) << window;
  }
}

TEST(DatasetTest, OrderDependsOnEpochAndSeed) {
  const auto dataset = OpenOrDie(WriteSmall(400));
  const RowOrder order = {.shuffled = true, .seed = 1, .window_blocks = 64};
  const RowOrder other = {.shuffled = true, .seed = 2, .window_blocks = 64};
  int same_epoch = 0, same_seed = 0, in_place = 0;
  for (int64_t position = 0; position < 400; ++position) {
    const int64_t row = dataset->RowAt(Split::kTrain, order, 0, position);
    same_epoch += row == dataset->RowAt(Split::kTrain, order, 1, position);
    same_seed += row == dataset->RowAt(Split::kTrain, other, 0, position);
    in_place += row == position;
  }
  EXPECT_LT(same_epoch, 20);
  EXPECT_LT(same_seed, 20);
  EXPECT_LT(in_place, 20);
}

TEST(DatasetTest, FlippedBitsAreFound) {
  const std::string path = WriteSmall(57);
  FlipBit(path + "/train.rows", 300);
  const auto dataset = OpenOrDie(path);
  Rows rows;
  EXPECT_TRUE(dataset->Read(Split::kTrain, kFileOrder, 0, {0, 10}, &rows).ok());
  const Status status = dataset->Read(Split::kTrain, kFileOrder, 0, {0, 57}, &rows);
  EXPECT_EQ(status.code(), StatusCode::kUser);
  EXPECT_THAT(status.message(), HasSubstr("train.rows: block 1"));

  const int64_t bytes = static_cast<int64_t>(std::filesystem::file_size(path + "/test.rows"));
  FlipBit(path + "/test.rows", bytes - 5);
  EXPECT_THAT(Dataset::Open(path).status().message(), HasSubstr("block index"));
}

TEST(DatasetTest, RefusesWhatIsNotAWholeDataset) {
  const std::string path = WriteSmall(57);
  EXPECT_THAT(Dataset::Open(path + "/none").status().message(), HasSubstr("prepare"));
  std::filesystem::resize_file(path + "/train.rows", 200);
  const Status truncated = Dataset::Open(path).status();
  EXPECT_EQ(truncated.code(), StatusCode::kUser);
  EXPECT_THAT(truncated.message(), HasSubstr("found 200 bytes"));
  std::ofstream(path + "/meta.json") << R"({"format": "elastor-prepared", "version": 99})";
  EXPECT_THAT(Dataset::Open(path).status().message(), HasSubstr("version 99, expected 2"));
  std::ofstream(path + "/meta.json") << "{";
  EXPECT_FALSE(Dataset::Open(path).ok());
  std::ofstream(path + "/meta.json") << R"({"format": "elastor-prepared", "version": 2})";
  EXPECT_THAT(Dataset::Open(path).status().message(), HasSubstr("meta.json"));
}

TEST(DatasetTest, UncommittedDatasetsDoNotExist) {
  const std::string path = FreshPath();
  {
    auto writer = DatasetWriter::Create(path, SmallInfo());
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Append(Split::kTrain, SmallRows(0, 10)).ok());
    EXPECT_FALSE(Dataset::Open(path).ok());
    EXPECT_THAT(DatasetWriter::Create(path, SmallInfo()).status().message(),
                HasSubstr("another process"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST(DatasetTest, UsedOutputIsRefusedAndLeftoversAreCleared) {
  const std::string path = WriteSmall(5);
  EXPECT_THAT(DatasetWriter::Create(path, SmallInfo()).status().message(), HasSubstr("not empty"));
  const std::string killed = path + "2";
  std::filesystem::remove_all(killed);
  std::filesystem::create_directories(killed + ".partial");
  std::ofstream(killed + ".partial/junk") << "left by a killed process";
  auto writer = DatasetWriter::Create(killed, SmallInfo());
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Commit({}).ok());
  EXPECT_FALSE(std::filesystem::exists(killed + "/junk"));
  EXPECT_TRUE(Dataset::Open(killed).ok());
}

}  // namespace
}  // namespace elastor
