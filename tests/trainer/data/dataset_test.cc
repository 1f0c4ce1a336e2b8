#include "trainer/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/hash_text.h"
#include "core/base/json.h"
#include "trainer/data/block_format.h"
#include "trainer/data/dataset_writer.h"
#include "trainer/data/encoding.h"

namespace elastor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
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

std::string FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What an earlier build wrote of the same contents, or would have.
void MakeVersion2(const std::string& path) {
  Json meta = Json::parse(FileText(path + "/meta.json"));
  meta["version"] = 2;
  meta.erase("files");
  meta.erase("meta_xxh3");
  for (const char* split : {"train", "validation", "test"}) {
    Json& checksum = meta["splits"][split]["index_checksum"];
    checksum = uint64_t{std::stoull(checksum.get<std::string>(), nullptr, 16)};
  }
  for (Json& field : meta["categorical"]) {
    field.erase("encoding");
    field.erase("keeps");
  }
  std::ofstream(path + "/meta.json") << meta.dump(1) << "\n";
}

// Of a set of version 2 whose meta.json is changed: it has no hash that would tell first.
std::string ErrorOfVersion2(const std::string& path, const std::function<void(Json&)>& change) {
  MakeVersion2(path);
  Json meta = Json::parse(FileText(path + "/meta.json"));
  change(meta);
  std::ofstream(path + "/meta.json") << meta.dump(1) << "\n";
  const Status status = Dataset::Open(path).status();
  EXPECT_EQ(status.code(), StatusCode::kUser);
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  return status.message();
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

// A process that was killed while it wrote meta.json leaves its temporary file, which is written
// anew.
TEST(DatasetTest, APartOfMetaFromAKilledProcessIsNoFileOfTheSet) {
  const std::string path = FreshPath();
  auto writer = DatasetWriter::Create(path, SmallInfo());
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  ASSERT_TRUE((*writer)->Append(Split::kTrain, SmallRows(0, 10)).ok());
  std::ofstream(path + ".partial/meta.json.tmp") << "{";
  ASSERT_TRUE((*writer)->Commit({}).ok());
  const auto set = Dataset::Open(path);
  EXPECT_TRUE(set.ok()) << set.status().message();
}

TEST(DatasetTest, MultiHotBagsAndWideIds) {
  const std::string path = FreshPath();
  DatasetInfo info;
  info.categorical = {{"bag", int64_t{1} << 40, true, true}, {"one", 5, false, false}};
  info.rows_per_block = 2;
  auto writer = DatasetWriter::Create(path, info);
  ASSERT_TRUE(writer.ok());
  constexpr int64_t kBig = (int64_t{1} << 40) - 1;
  Rows first{2,  {1, 0}, {}, {kBig, 3, 4, 2}, {0, 2, 3, 3, 4}, {},
             {}, {},     {}};                                        // bags {kBig 3} {4}, {} {2}
  Rows second{1, {1}, {}, {7, 8, 9, 1}, {0, 3, 4}, {}, {}, {}, {}};  // {7 8 9} {1}
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

// Fields of 4 and of 8 bytes an id, single ones and bags of both.
TEST(DatasetTest, KeysStandBesideIdsOfTables) {
  const std::string path = FreshPath();
  DatasetInfo info;
  info.categorical = {{"user", 0, false, false, -1, "hashed_key"},
                      {"words", 9, true},
                      {"word", 5},
                      {"tags", 0, true, false, 0, "hashed_key", "last 3"}};
  info.categorical[0].keyed = info.categorical[3].keyed = true;
  info.rows_per_block = 2;
  constexpr int64_t kLast = -1;  // the key 2^64 - 1
  constexpr int64_t kOther = int64_t{-1} << 63;
  Rows rows;
  rows.rows = 2;
  rows.labels = {0, 1};
  rows.ids = {kLast, 8, 7, 4, kOther, 5, 0, 6, 3};
  rows.offsets = {0, 1, 3, 4, 6, 7, 8, 9, 9};
  // labels, word, user, ends of words and of tags, words, tags
  std::string expected(88, '\0');
  const auto put = [&](size_t at, auto value) {
    std::memcpy(expected.data() + at, &value, sizeof(value));
  };
  put(4, 1.0f);
  put(8, uint32_t{4});
  put(12, uint32_t{3});
  put(16, kLast);
  put(32, uint32_t{2});
  put(36, uint32_t{3});
  put(40, uint32_t{2});
  put(44, uint32_t{2});
  put(48, uint32_t{8});
  put(52, uint32_t{7});
  put(56, uint32_t{6});
  put(64, kOther);
  put(72, int64_t{5});
  expected.resize(80);
  std::string block = EncodeBlock(info, rows);
  EXPECT_EQ(block, expected);
  EXPECT_EQ(BlockMistake(info, block.data(), std::ssize(block), 2), "");

  auto writer = DatasetWriter::Create(path, info);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Append(Split::kTrain, rows).ok());
  ASSERT_TRUE((*writer)->Append(Split::kTest, rows).ok());
  ASSERT_TRUE((*writer)->Commit({}).ok());
  const auto dataset = OpenOrDie(path);
  EXPECT_EQ(dataset->version(), 4);
  EXPECT_TRUE(dataset->info().categorical[3].keyed);
  EXPECT_FALSE(dataset->info().categorical[1].keyed);
  Rows read;
  ASSERT_TRUE(dataset->Read(Split::kTrain, kFileOrder, 0, {0, 2}, &read).ok());
  EXPECT_EQ(read.ids, rows.ids);
  EXPECT_EQ(read.offsets, rows.offsets);
  ASSERT_TRUE(dataset->Read(Split::kTest, kFileOrder, 0, {1, 2}, &read).ok());
  EXPECT_THAT(read.ids, ElementsAre(0, 6, 3));
  EXPECT_THAT(read.offsets, ElementsAre(0, 1, 2, 3, 3));

  put(8, uint32_t{5});
  EXPECT_EQ(BlockMistake(info, expected.data(), std::ssize(expected), 2),
            "row 0 of the block, field word: found id 5; expected less than 5");
  put(8, uint32_t{4});
  put(52, uint32_t{9});
  EXPECT_EQ(BlockMistake(info, expected.data(), std::ssize(expected), 2),
            "row 0 of the block, field words: found id 9; expected less than 9");
  put(52, uint32_t{7});
  for (const size_t ends : {36, 44}) {
    std::string damaged = block;
    for (const uint32_t end : {uint32_t{1}, uint32_t{1} << 30}) {
      std::memcpy(damaged.data() + ends, &end, sizeof(end));
      EXPECT_THAT(BlockMistake(info, damaged.data(), std::ssize(damaged), 2),
                  HasSubstr("its bags do not fill"));
    }
  }

  const std::string meta = FileText(path + "/meta.json");
  const auto error_of = [&](const std::string& from, const std::string& to) {
    std::string edited = meta;
    edited.replace(edited.find(from), from.size(), to);
    edited.resize(edited.rfind("\": \"") + 4);
    std::ofstream(path + "/meta.json") << SealJson(edited);
    const std::string error = Dataset::Open(path).status().message();
    EXPECT_THAT(error, StartsWith(path + "/meta.json: "));
    return error.substr(path.size() + std::string("/meta.json: ").size());
  };
  EXPECT_EQ(error_of("\"id_bytes\": 8", "\"id_bytes\": 4"),
            "categorical[0].id_bytes: found 4; expected 8, by the ids of the fields");
  EXPECT_EQ(error_of("\"version\": 4", "\"version\": 3"),
            "version: found 3; expected 4, by its fields");
  EXPECT_EQ(error_of("\"keyed\": true", "\"keyed\": false"), "categorical[0].ids: missing");
  std::ofstream(path + "/meta.json") << meta;
  // Another kind of key is another set.
  DatasetInfo identity = info;
  identity.categorical[0].encoding = identity.categorical[3].encoding = "identity_key";
  const std::string other = path + ".other";
  std::filesystem::remove_all(other);
  writer = DatasetWriter::Create(other, identity);
  ASSERT_TRUE((*writer)->Append(Split::kTrain, rows).ok());
  ASSERT_TRUE((*writer)->Append(Split::kTest, rows).ok());
  ASSERT_TRUE((*writer)->Commit({}).ok());
  EXPECT_NE(OpenOrDie(other)->fingerprint(), dataset->fingerprint());
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
  EXPECT_THAT(ErrorOfVersion2(path, [](Json& meta) { meta["categorical"][0]["ids"] = 1048577; }),
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

// The middles of equal parts, as numpy's floor((2 p + 1) R / (2 S)) has them: of 57 rows, and of
// the first 20 of them.
TEST(DatasetTest, RowsThatAreSpreadEvenly) {
  const auto dataset = OpenOrDie(WriteSmall(57));
  const auto rows_of = [&](const RowOrder& order) {
    std::vector<int64_t> found;
    for (int64_t p = 0; p < dataset->rows(Split::kTrain, order); ++p) {
      found.push_back(dataset->RowAt(Split::kTrain, order, 0, p));
    }
    Rows rows;
    const auto count = static_cast<int64_t>(found.size());
    EXPECT_TRUE(dataset->Read(Split::kTrain, order, 0, {0, count}, &rows).ok());
    EXPECT_EQ(rows.rows, count);
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(rows.ids[2 * i], found[i]);
    return found;
  };
  using Found = std::vector<int64_t>;
  EXPECT_EQ(rows_of({.shuffled = false, .spread_rows = 5}), (Found{5, 17, 28, 39, 51}));
  EXPECT_EQ(rows_of({.shuffled = false, .first_rows = 20, .spread_rows = 3}), (Found{3, 10, 16}));
  const Found all = rows_of({.shuffled = false, .spread_rows = 60});
  ASSERT_EQ(all.size(), 57u);
  for (int64_t row = 0; row < 57; ++row) EXPECT_EQ(all[row], row);
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
  EXPECT_THAT(Dataset::Open(path).status().message(), HasSubstr("version 99, expected 2 to 4"));
  std::ofstream(path + "/meta.json") << "{";
  EXPECT_THAT(Dataset::Open(path).status().message(),
              HasSubstr("not a JSON text; the file is damaged or cut off"));
  std::ofstream(path + "/meta.json") << std::string(5000, '[') << std::string(5000, ']');
  EXPECT_THAT(Dataset::Open(path).status().message(), HasSubstr("brackets lie in each other"));
  std::ofstream(path + "/meta.json") << R"({"format": "elastor-prepared", "version": 2})";
  EXPECT_THAT(Dataset::Open(path).status().message(), HasSubstr("meta.json: name: missing"));
}

// A set of version 2 says the same of the same contents.
TEST(DatasetTest, TheFingerprintIsThatOfVersion2) {
  const std::string path = WriteSmall(57);
  const auto now = OpenOrDie(path);
  EXPECT_EQ(now->version(), 3);
  MakeVersion2(path);
  const auto then = OpenOrDie(path);
  EXPECT_EQ(then->version(), 2);
  EXPECT_EQ(then->fingerprint(), now->fingerprint());
  // As the earlier build computed it.
  const Json meta = Json::parse(FileText(path + "/meta.json"));
  EXPECT_EQ(then->fingerprint(), HashTextOf(meta.Sorted().dump()));
  EXPECT_TRUE(then->VerifyOtherFiles().ok());
}

// One digit or letter in any place.
TEST(DatasetTest, EveryChangeOfTheMetaFileIsFound) {
  const std::string path = WriteSmall(57);
  const std::string whole = FileText(path + "/meta.json");
  int changes = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    const bool digit = std::isdigit(static_cast<unsigned char>(whole[at])) != 0;
    changed[at] = digit ? (whole[at] == '9' ? '0' : static_cast<char>(whole[at] + 1))
                        : static_cast<char>(whole[at] ^ 1);
    std::ofstream(path + "/meta.json", std::ios::binary) << changed;
    const Status status = Dataset::Open(path).status();
    ASSERT_EQ(status.code(), StatusCode::kUser) << "byte " << at << ": " << changed.substr(at, 20);
    ASSERT_THAT(status.message(), StartsWith(path + "/meta.json: "));
    ++changes;
  }
  EXPECT_GT(changes, 500);
  std::ofstream(path + "/meta.json", std::ios::binary) << whole;
  EXPECT_TRUE(Dataset::Open(path).ok());
}

TEST(DatasetTest, EntriesAreCheckedByTypeAndRange) {
  const auto error_of = [](const std::function<void(Json&)>& change) {
    const std::string path = WriteSmall(57);
    const std::string error = ErrorOfVersion2(path, change);
    const std::string file = path + "/meta.json: ";
    EXPECT_THAT(error, StartsWith(file));
    return error.substr(file.size());
  };
  using Change = std::function<void(Json&)>;
  const std::pair<Change, std::string> mistakes[] = {
      {[](Json& m) { m["format"] = "other"; }, "not the meta file of a prepared data set"},
      {[](Json& m) { m.erase("format"); }, "not the meta file of a prepared data set"},
      {[](Json& m) { m["categorical"] = nullptr; }, "categorical: found null; expected an array"},
      {[](Json& m) { m["categorical"][1]["name"] = "a"; },
       "categorical[1].name: found \"a\"; expected a name that no field before has"},
      {[](Json& m) { m["categorical"][1]["ids"] = 0; },
       "categorical[1].ids: found 0; expected an integer from 1 to 281474976710656"},
      {[](Json& m) { m["categorical"][1]["ids"] = "7"; },
       "categorical[1].ids: found \"7\"; expected an integer from 1 to 281474976710656"},
      {[](Json& m) { m["categorical"][0]["multi_hot"] = 1; },
       "categorical[0].multi_hot: found 1; expected true or false"},
      {[](Json& m) { m["categorical"][0]["pooling"] = "max"; },
       "categorical[0].pooling: found \"max\"; expected sum or mean"},
      {[](Json& m) { m["categorical"][0]["shares"] = 0; },
       "categorical[0].shares: found 0; expected an integer from -1 to -1"},
      {[](Json& m) { m["id_bytes"] = 8; },
       "id_bytes: found 8; expected 4, by the ids of the fields"},
      {[](Json& m) { m["id_bytes"] = 3; }, "id_bytes: found 3; expected an integer from 4 to 8"},
      {[](Json& m) { m["numeric"][0]["stddev"] = 0; },
       "numeric[0].stddev: found 0; expected a number above 0"},
      {[](Json& m) { m["numeric"][0]["transform"] = "log3"; },
       "numeric[0].transform: found \"log3\"; expected none, log2, standardize or "
       "log2_standardize"},
      {[](Json& m) { m["numeric"][0].erase("mean"); }, "numeric[0].mean: missing"},
      {[](Json& m) { m["splits"]["train"]["rows"] = int64_t{9223372036854775807}; },
       "splits.train.rows: found 9223372036854775807; expected an integer from 0 to "
       "281474976710656"},
      {[](Json& m) { m["splits"]["train"]["rows"] = -57; },
       "splits.train.rows: found -57; expected an integer from 0 to 281474976710656"},
      {[](Json& m) { m["splits"]["test"]["index_checksum"] = 0.5; },
       "splits.test.index_checksum: found 0.5; expected an integer"},
      {[](Json& m) { m["rows_per_block"] = 0; },
       "rows_per_block: found 0; expected an integer from 1 to 2147483648"},
      {[](Json& m) { m["weights"] = "no"; }, "weights: found \"no\"; expected true or false"},
      {[](Json& m) { m["best_auc"] = 2; }, "best_auc: found 2; expected a number from 0 to 1"},
      {[](Json& m) {
         m["labels"] = {{{"name", "click"}}};
       },
       "labels: found [{\"name\":\"click\"}]; expected none, or two and more"},
      {[](Json& m) {
         m["labels"] = {{{"name", "click"}, {"best_auc", -1}}, {{"name", "a"}}};
       },
       "labels[0].best_auc: found -1; expected a number from 0 to 1"},
      {[](Json& m) {
         m["labels"] = {{{"name", "click"}}, {{"name", "a"}}};
       },
       "labels[1].name: found \"a\"; expected a name that no field before has"},
      {[](Json& m) {
         m["image"] = {{"height", 2}, {"width", 2}, {"mean", 0}, {"stddev", 0}};
       },
       "image.stddev: found 0; expected a number above 0"},
      {[](Json& m) {
         m["image"] = {{"height", 2}, {"width", 2}, {"mean", 0}, {"stddev", 1}};
       },
       "image: found {\"height\":2,\"width\":2,\"mean\":0,\"stddev\":1}; expected no fields beside "
       "it"},
      {[](Json& m) {
         m["image"] = {{"height", 2}, {"width", 2}, {"mean", 0}, {"stddev", 1}};
         m["numeric"] = m["categorical"] = Json::array();
       },
       "image: found {\"height\":2,\"width\":2,\"mean\":0,\"stddev\":1}; expected labels of "
       "classes "
       "beside it"},
      {[](Json& m) { m["meta_xxh3"] = "0123456789abcdef"; },
       "the text does not match its hash; the file is damaged or was edited"},
  };
  for (const auto& [change, message] : mistakes) EXPECT_EQ(error_of(change), message);
}

// Row r has the labels r % 2 and, but for every third row, r % 5 == 0.
TEST(DatasetTest, SeveralLabels) {
  DatasetInfo info = SmallInfo();
  info.labels = {{"click"}, {"conversion"}};
  const std::string path = FreshPath();
  auto writer = DatasetWriter::Create(path, info);
  ASSERT_TRUE(writer.ok());
  const auto rows_of = [](int64_t begin, int64_t end) {
    Rows rows = SmallRows(begin, end);
    rows.labels.clear();
    for (int64_t r = begin; r < end; ++r) {
      rows.labels.push_back(static_cast<float>(r % 2));
      rows.labels.push_back(r % 3 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                       : static_cast<float>(r % 5 == 0));
    }
    return rows;
  };
  ASSERT_TRUE((*writer)->Append(Split::kTrain, rows_of(0, 10)).ok());
  ASSERT_TRUE((*writer)->Append(Split::kTrain, rows_of(10, 17)).ok());
  (*writer)->set_best_auc({0.75, -1});
  ASSERT_TRUE((*writer)->Commit({}).ok());
  const auto dataset = Dataset::Open(path);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  ASSERT_EQ((*dataset)->info().label_count(), 2);
  EXPECT_EQ((*dataset)->info().labels[0].best_auc, 0.75);
  EXPECT_EQ((*dataset)->info().labels[1].name, "conversion");
  EXPECT_LT((*dataset)->info().labels[1].best_auc, 0);
  Rows rows;
  ASSERT_TRUE((*dataset)->Read(Split::kTrain, RowOrder(), 0, {3, 17}, &rows).ok());
  ASSERT_EQ(rows.labels.size(), 28u);
  for (size_t i = 0; i < 14; ++i) {
    const int64_t r = rows.ids[2 * i];
    EXPECT_EQ(rows.labels[2 * i], r % 2);
    EXPECT_EQ(std::isnan(rows.labels[2 * i + 1]), r % 3 == 0);
    if (r % 3 != 0) {
      EXPECT_EQ(rows.labels[2 * i + 1], r % 5 == 0);
    }
    EXPECT_EQ(rows.numeric[i], static_cast<float>(r) / 4);
  }
  DataEncoding one = EncodingOf(SmallInfo()), two = EncodingOf(info);
  EXPECT_EQ(LabelDifference(two, two, "M"), "");
  EXPECT_EQ(LabelDifference(one, two, "M"),
            "labels: are one without a name; M was trained on click, conversion");
}

// What meta.json of version 2 says wrongly and the rows show.
TEST(DatasetTest, RowsThatAreNotAsTheMetaFileSays) {
  const auto read = [](const std::string& path) {
    const auto dataset = Dataset::Open(path);
    if (!dataset.ok()) return dataset.status().message();
    Rows rows;
    const Status status =
        (*dataset)->Read(Split::kTrain, kFileOrder, 0, {0, (*dataset)->rows(Split::kTrain)}, &rows);
    EXPECT_EQ(status.code(), StatusCode::kUser);
    return status.message();
  };
  const auto changed = [](const std::function<void(Json&)>& change) {
    const std::string path = WriteSmall(57);
    MakeVersion2(path);
    Json meta = Json::parse(FileText(path + "/meta.json"));
    change(meta);
    std::ofstream(path + "/meta.json") << meta.dump();
    return path;
  };
  EXPECT_THAT(read(changed([](Json& m) { m["categorical"][1]["ids"] = 6; })),
              HasSubstr("/train.rows: block 0 at byte 0: row 6 of the block, field b: found id 6; "
                        "expected less than 6"));
  EXPECT_THAT(read(changed([](Json& m) { m["categorical"][0]["multi_hot"] = true; })),
              HasSubstr("/train.rows: block 5 does not fit meta.json"));
  EXPECT_THAT(read(changed([](Json& m) { m["splits"]["train"]["rows"] = 53; })),
              HasSubstr("/train.rows: block 5 at byte 800: its bags do not fill its "));
  EXPECT_THAT(read(changed([](Json& m) { m["splits"]["train"]["rows"] = 61; })),
              HasSubstr("/train.rows: "));
  EXPECT_THAT(read(changed([](Json& m) { m["weights"] = true; })),
              HasSubstr("/train.rows: block 0 does not fit meta.json"));
  EXPECT_THAT(read(changed([](Json& m) { m["splits"]["train"]["rows"] = 1000000; })),
              HasSubstr("/train.rows: too short for 100000 blocks"));
  // Eight bytes between the blocks and their index.
  const std::string wider = changed([](Json& m) {
    m["splits"]["train"]["bytes"] = m["splits"]["train"]["bytes"].get<int64_t>() + 8;
  });
  std::string bytes = FileText(wider + "/train.rows");
  bytes.insert(bytes.size() - 6 * sizeof(BlockEntry), 8, '\0');
  std::ofstream(wider + "/train.rows", std::ios::binary) << bytes;
  EXPECT_THAT(read(wider), HasSubstr("/train.rows: the blocks do not fill the file"));
}

// A bag that would end before it begins.
TEST(DatasetTest, BagsFollowOneAnother) {
  DatasetInfo info;
  info.categorical = {{"bag", 100, true, true}};
  info.rows_per_block = 2;
  Rows rows;
  rows.rows = 2;
  rows.labels = {0, 1};
  rows.ids = {7, 8};
  rows.offsets = {0, 1, 2};
  std::string block = EncodeBlock(info, rows);
  EXPECT_EQ(BlockMistake(info, block.data(), std::ssize(block), 2), "");
  const uint32_t first_end = 3;
  std::memcpy(block.data() + BlockSections(info, 2).ends_at[0], &first_end, sizeof(first_end));
  EXPECT_THAT(BlockMistake(info, block.data(), std::ssize(block), 2), HasSubstr("its bags do not"));
}

// Files that hold no rows are of the set all the same.
TEST(DatasetTest, OtherFilesAreVerified) {
  const std::string path = FreshPath();
  auto writer = DatasetWriter::Create(path, SmallInfo());
  ASSERT_TRUE(writer.ok());
  const std::string partial = (*writer)->partial_path();
  std::filesystem::create_directory(partial + "/vocabulary");
  std::ofstream(partial + "/vocabulary/b.tsv") << "x\t2\ny\t1\n";
  std::ofstream(partial + "/stats.json") << "{}\n";
  std::ofstream((*writer)->work_path() + "/chunks") << "removed at the end";
  ASSERT_TRUE((*writer)->Commit({}).ok());
  const auto error_of = [&] {
    const auto dataset = Dataset::Open(path);
    return dataset.ok() ? (*dataset)->VerifyOtherFiles().message() : dataset.status().message();
  };
  EXPECT_EQ(error_of(), "");
  // Edited by somebody who knows the hash.
  const std::string meta = FileText(path + "/meta.json");
  for (const std::string name : {"", "..", "../stats.json", "./stats.json", "/stats.json"}) {
    std::string edited = meta;
    edited.replace(edited.find("stats.json"), std::string("stats.json").size(), name);
    edited.resize(edited.rfind("\": \"") + 4);
    std::ofstream(path + "/meta.json") << SealJson(edited);
    EXPECT_EQ(error_of(), path + "/meta.json: files: found '" + name +
                              "'; expected the path of a file in the set");
  }
  std::ofstream(path + "/meta.json") << meta;
  FlipBit(path + "/vocabulary/b.tsv", 0);
  EXPECT_THAT(error_of(), StartsWith(path + "/vocabulary/b.tsv: found the hash "));
  FlipBit(path + "/vocabulary/b.tsv", 0);
  std::ofstream(path + "/stats.json") << "{ }\n";
  EXPECT_EQ(error_of(), path + "/stats.json: found 4 bytes, expected 3 (by meta.json)");
  std::filesystem::remove(path + "/stats.json");
  EXPECT_EQ(error_of(), path + "/stats.json: open: No such file or directory");
}

// A block is looked at again when its file was written to, and found to be as it was, or not.
TEST(DatasetTest, AFileThatIsWrittenToIsVerifiedAgain) {
  const std::string path = WriteSmall(57);
  const auto dataset = OpenOrDie(path);
  const std::string file = path + "/train.rows";
  const auto read = [&](int64_t begin, int64_t end) {
    Rows rows;
    return dataset->Read(Split::kTrain, kFileOrder, 0, {begin, end}, &rows);
  };
  ASSERT_TRUE(read(0, 57).ok());
  FlipBit(file, 300);
  EXPECT_TRUE(read(0, 10).ok()) << "another block";
  const Status changed = read(0, 57);
  EXPECT_EQ(changed.code(), StatusCode::kUser);
  EXPECT_THAT(changed.message(), StartsWith(file + ": block 1 at byte 160 does not match"));
  FlipBit(file, 300);
  EXPECT_TRUE(read(0, 57).ok()) << "as it was";
  // Who sets the time back is found out.
  const auto before = std::filesystem::last_write_time(file);
  FlipBit(file, 300);
  std::filesystem::last_write_time(file, before);
  EXPECT_EQ(read(10, 20).code(), StatusCode::kUser);
  FlipBit(file, 300);
  // A file in its place leaves the one that is read alone.
  std::filesystem::copy_file(file, file + ".new");
  FlipBit(file + ".new", 300);
  std::filesystem::rename(file + ".new", file);
  EXPECT_TRUE(read(0, 57).ok());
}

TEST(DatasetTest, AFileThatIsCutOffIsAMachineError) {
  for (const bool verified : {false, true}) {
    const std::string path = WriteSmall(5000);
    const auto dataset = OpenOrDie(path);
    Rows rows;
    if (verified) {
      ASSERT_TRUE(dataset->Read(Split::kTrain, kFileOrder, 0, {0, 5000}, &rows).ok());
    }
    std::filesystem::resize_file(path + "/train.rows", 10000);
    const Status status = dataset->Read(Split::kTrain, kFileOrder, 0, {4000, 5000}, &rows);
    EXPECT_EQ(status.code(), StatusCode::kMachine);
    EXPECT_THAT(
        status.message(),
        StartsWith(path + "/train.rows: cut off at byte 10000 while it was read; expected "));
  }
}

TEST(EncodingTest, TellsTheFirstFieldThatDiffers) {
  DatasetInfo data = SmallInfo();
  data.numeric = {{"n", "log2", 0, 1}, {"m", "standardize", 0.1, 2}};
  data.categorical = {{"a", 7, false, false, -1, "vocabulary", "", "0123456789abcdef"},
                      {"b", 7, true, true, 0, "vocabulary", "last 5"},
                      {"c", 50, false, false, -1, "hash"},
                      {"d", 24, false, false, -1, "hour identity"},
                      {"e", 0, false, false, -1, "hashed_key"}};
  data.categorical[4].keyed = true;
  const DataEncoding trained = EncodingOf(data);
  const auto difference = [&](const std::function<void(DataEncoding*)>& change) {
    DataEncoding changed = trained;
    change(&changed);
    return EncodingDifference(changed, trained, "M");
  };
  using Change = std::function<void(DataEncoding*)>;
  const std::pair<Change, std::string> differences[] = {
      {[](DataEncoding*) {}, ""},
      {[](DataEncoding* e) { e->numeric[0].transform = "none"; },
       "numeric field n: transform NONE; M was trained on LOG2"},
      {[](DataEncoding* e) { e->numeric[1].mean = 0.30000000000000004; },
       "numeric field m: mean 0.30000000000000004; M was trained on 0.1"},
      {[](DataEncoding* e) { e->numeric[1].stddev = 3; },
       "numeric field m: stddev 3.0; M was trained on 2.0"},
      {[](DataEncoding* e) { e->numeric.pop_back(); }, "1 numeric fields; M was trained on 2"},
      {[](DataEncoding* e) { e->numeric[0].name = "o"; }, "numeric field 1: o; M was trained on n"},
      {[](DataEncoding* e) { e->categorical[0].vocabulary = "fedcba9876543210"; },
       "categorical field a: vocabulary fedcba9876543210 of 7 ids; M was trained on "
       "0123456789abcdef of 7 ids"},
      {[](DataEncoding* e) { e->categorical[1].mean_pooling = false; },
       "categorical field b: pooling SUM; M was trained on MEAN"},
      {[](DataEncoding* e) { e->categorical[1].multi_hot = false; },
       "categorical field b: with single ids; M was trained on bags of ids"},
      {[](DataEncoding* e) { e->categorical[1].keeps = "first 5"; },
       "categorical field b: keeps the first 5; M was trained on last 5"},
      {[](DataEncoding* e) { e->categorical[1].shares = -1; },
       "categorical field b: the table of b; M was trained on a"},
      {[](DataEncoding* e) { e->categorical[2].ids = 51; },
       "categorical field c: buckets 51; M was trained on 50"},
      {[](DataEncoding* e) { e->categorical[3].ids = 25; },
       "categorical field d: ids 25; M was trained on 24"},
      {[](DataEncoding* e) { e->categorical[3].encoding = "identity"; },
       "categorical field d: encoding IDENTITY; M was trained on HOUR IDENTITY"},
      {[](DataEncoding* e) { e->categorical[4].encoding = "identity_key"; },
       "categorical field e: encoding IDENTITY_KEY; M was trained on HASHED_KEY"},
      {[](DataEncoding* e) {
         e->categorical[4] = {"e", 9, false, false, -1, "vocabulary", "", "0123456789abcdef"};
       },
       "categorical field e: encoding VOCABULARY; M was trained on HASHED_KEY"},
      // As a set of version 2 has it.
      {[](DataEncoding* e) { e->categorical[3].encoding = e->categorical[1].keeps = ""; }, ""},
  };
  for (const auto& [change, expected] : differences) EXPECT_EQ(difference(change), expected);
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

// In a folder that others may write to, they would decide where the set is written.
TEST(DatasetTest, ALinkInThePlaceOfTheUnfinishedSetIsNotFollowed) {
  const std::string path = FreshPath(), elsewhere = path + "_elsewhere";
  std::filesystem::create_directories(elsewhere);
  std::filesystem::remove(path + ".partial");
  std::filesystem::create_directory_symlink(elsewhere, path + ".partial");
  EXPECT_EQ(DatasetWriter::Create(path, SmallInfo()).status().message(),
            path + ".partial: a symbolic link; expected a folder, or nothing");
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere));
  std::filesystem::remove(path + ".partial");
}

}  // namespace
}  // namespace elastor
