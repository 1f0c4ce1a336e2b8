// Side tables: columns of another file that stand beside the rows, found by a key.

#include "trainer/prepare/side_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tests/trainer/prepare/scratch.h"

namespace elastor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string LookupText(const std::string& file, const std::string& rest) {
  return "lookup { file: '" + file + "' " + rest + " } ";
}

PrepareReport PrepareIt(const PrepareOptions& options) {
  const auto report = Prepare(options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? *report : PrepareReport();
}

constexpr char kRatings[] =
    "label,user,movie\n"
    "1,u1,m1\n"
    "0,u1,m2\n"
    "1,u2,m3\n"
    "0,u3,-\n"
    "1,u3,\"m,4\"\n";
constexpr char kMovies[] =
    "title,movieId,genres,released,price,unread\n"
    "\"Heat, the\",m2,Action|Crime,1995-12-15,2.5,x\n"
    "Toy,m1,Comedy,1995-11-22,-,\n"
    "\"say \"\"hi\"\"\",\"m,4\",Crime,1996-11-02,7,\"two\nlines\"\n";
constexpr char kFormat[] = "delimiter: ',' header: true quoted: true null: '-' ";
constexpr char kMovieFields[] =
    "fields { name: 'label' type: LABEL } fields { name: 'title' type: CATEGORICAL }"
    "fields { name: 'genres' type: MULTI_HOT } fields { name: 'price' type: NUMERIC }"
    "fields { name: 'month' column: 'released' type: CATEGORICAL transform: MONTH"
    "  time_format: YYYY_MM_DD_HH_MM_SS } ";
constexpr char kByMovie[] =
    "by: 'movie' key: 'movieId' columns: ['title', 'genres', 'released', 'price', 'unread']";

TEST(SideTablesTest, ColumnsOfAllTypesStandBesideTheRows) {
  const std::string movies = WriteScratch("movies.csv", kMovies);
  const PrepareOptions options =
      OptionsOf(std::string(kFormat) + kMovieFields + LookupText(movies, kByMovie),
                {WriteScratch("ratings.csv", kRatings)}, "out");
  const PrepareReport report = PrepareIt(options);
  EXPECT_EQ(report.bad_rows, 0);
  EXPECT_THAT(report.missing_keys, ElementsAre(std::pair("movie_in_" + movies, 2)));
  const Rows rows = ReadAll(*OpenOrDie(options.output_dir), Split::kTrain);
  EXPECT_THAT(rows.labels, ElementsAre(1, 0, 1, 0, 1));
  ASSERT_EQ(rows.numeric.size(), 5u);
  for (const int missing : {0, 2, 3}) EXPECT_TRUE(std::isnan(rows.numeric[missing])) << missing;
  EXPECT_EQ(rows.numeric[1], 2.5f);
  EXPECT_EQ(rows.numeric[4], 7.0f);
  // Titles: "Heat, the" 1, "Toy" 2, "say ..." 3. Genres: Crime 1, Action 2, Comedy 3. Months: 11 1,
  // 12 2.
  EXPECT_THAT(rows.ids, ElementsAre(2, 3, 1, 1, 2, 1, 2, 0, 0, 0, 0, 3, 1, 1));
  EXPECT_THAT(rows.offsets, ElementsAre(0, 1, 2, 3, 4, 6, 7, 8, 8, 9, 10, 10, 11, 12, 13, 14));
}

// Another delimiter, no header; the split, a weight, a group and the time from the side table.
TEST(SideTablesTest, FilesWithoutHeadersAndOtherFormats) {
  const std::string users =
      WriteScratch("users", "a title\nx::u1::100::0.5::eu\ny::u2::50::2::us\nz::u3::75::1::eu\n");
  const std::string rows = WriteScratch("rows", "1\tu2\tu1\n0\tu1\tu2\n1\tu4\tu3\n1\tu3\tu3\n");
  PrepareOptions options = OptionsOf(
      LookupText(users,
                 "by: 'user' key: 'id' columns: ['name', 'id', 'at', 'weight', 'place'] "
                 "delimiter: '::' skip_lines: 1") +
          LookupText(users,
                     "by: 'friend' key: 'f' columns: ['friend_name', 'f', 'a', 'w', 'p'] "
                     "delimiter: '::' skip_lines: 1") +
          "sort_by_time: true max_bad_rows: 1 "
          "fields { name: 'y' type: LABEL } fields { name: 'user' type: CATEGORICAL }"
          "fields { name: 'friend' type: IGNORED } fields { name: 't' column: 'at' type: TIME }"
          "fields { name: 'importance' column: 'weight' type: WEIGHT }"
          "fields { name: 'g' column: 'place' type: GROUP }"
          "fields { name: 'who' column: 'friend_name' type: CATEGORICAL }",
      {rows}, "out");
  std::string warning;
  options.warn = [&](const std::string& line) { warning += line + "\n"; };
  const PrepareReport report = PrepareIt(options);
  EXPECT_EQ(report.bad_rows, 1);  // u4 has no time
  EXPECT_THAT(warning, HasSubstr(rows + ":3: field t: found '', expected a time, "));
  EXPECT_THAT(warning, HasSubstr(" (column at of " + users + ")"));
  EXPECT_THAT(report.missing_keys,
              ElementsAre(std::pair("user_in_" + users, 0), std::pair("friend_in_" + users, 0)));
  const Rows read = ReadAll(*OpenOrDie(options.output_dir), Split::kTrain);
  EXPECT_THAT(read.times, ElementsAre(50, 75, 100));
  EXPECT_THAT(read.weights, ElementsAre(2, 1, 0.5));
  EXPECT_EQ(read.groups[1], read.groups[2]);
  EXPECT_NE(read.groups[0], read.groups[1]);
  // user, who: u2 x, u3 z, u1 y.
  EXPECT_THAT(read.ids, ElementsAre(2, 1, 3, 3, 1, 2));
}

// The same rows, joined by this program: the same bytes, for any threads, segments and packing.
TEST(SideTablesTest, EqualsRowsThatArePlainlyJoined) {
  constexpr int kRows = 60000, kKeys = 3000;
  const auto cells = [](uint64_t key) {
    std::string list;
    for (uint64_t i = 0; i < key * 7919 % 6; ++i) {
      list += (i == 0 ? "" : ", ") + std::to_string(key * 31 % (17 + i));
    }
    return "\"name " + std::to_string(key * key % 257) + std::string(key % 40, 'x') + "\",\"[" +
           list + "]\",a" + std::to_string(key % 7) + "|b" + std::to_string(key % 3) + "," +
           (key % 9 == 0 ? "" : std::to_string(key % 100) + ".5") + "," +
           std::to_string(1400000000 + key * 977);
  };
  std::string table = "name,list,tags,price,at,id\n", rows = "y,key\n",
              joined = "y,key,name,list,tags,price,at\n";
  for (uint64_t i = 0; i < kKeys; ++i) {
    const uint64_t key = i * 1999 % kKeys;
    table += cells(key) + ",k" + std::to_string(key) + "\n";
  }
  int64_t missing = 0;
  for (uint64_t i = 0; i < kRows; ++i) {
    const uint64_t key = i * i % (kKeys + 100);
    const std::string row = std::to_string(i % 3 == 0) + ",k" + std::to_string(key);
    rows += row + "\n";
    joined += row + "," + (key < kKeys ? cells(key) : ",,,,") + "\n";
    missing += key >= kKeys;
  }
  const std::string schema =
      "delimiter: ',' header: true quoted: true rows_per_block: 512 "
      "split { by: HASH hash_field: 'name' train: 0.7 validation: 0.1 test: 0.2 } "
      "fields { name: 'y' type: LABEL } fields { name: 'key' type: CATEGORICAL }"
      "fields { name: 'name' type: CATEGORICAL min_count: 2 }"
      "fields { name: 'list' type: SEQUENCE list: BRACKETS max_length: 3 }"
      "fields { name: 'tags' type: MULTI_HOT } fields { name: 'price' type: NUMERIC }"
      "fields { name: 'hour' column: 'at' type: CATEGORICAL transform: HOUR }"
      "fields { name: 'hash' column: 'name' type: CATEGORICAL encoding: HASH buckets: 50 } ";
  const PrepareOptions expected = OptionsOf(schema, {WriteScratch("joined", joined)}, "expected");
  PrepareIt(expected);
  for (const int threads : {1, 3}) {
    const std::string file = WriteScratch("table", threads == 1 ? table : Gzip(table));
    PrepareOptions options =
        OptionsOf(schema + LookupText(file,
                                      "by: 'key' key: 'id' "
                                      "columns: ['name', 'list', 'tags', 'price', 'at']"),
                  {WriteScratch("rows", rows)}, "out");
    options.threads = threads;
    options.segment_bytes = threads == 1 ? 1 : 1 << 30;
    EXPECT_EQ(PrepareIt(options).missing_keys[0].second, missing);
    EXPECT_EQ(OpenOrDie(options.output_dir)->fingerprint(),
              OpenOrDie(expected.output_dir)->fingerprint());
    for (const char* part : {"/train.rows", "/validation.rows", "/test.rows",
                             "/vocabulary/name.tsv", "/vocabulary/tags.tsv"}) {
      EXPECT_FALSE(FileBytes(expected.output_dir + part).empty()) << part;
      EXPECT_EQ(FileBytes(options.output_dir + part), FileBytes(expected.output_dir + part))
          << part;
    }
  }
}

TEST(SideTablesTest, MistakesAreOneLine) {
  const std::string ratings = WriteScratch("ratings.csv", kRatings);
  const std::string path = ScratchPath("movies.csv");
  const auto message_of = [&](const std::string& table, const std::string& lookup) {
    if (!table.empty()) WriteScratch("movies.csv", table);
    PrepareOptions options =
        OptionsOf(kFormat + std::string(kMovieFields) + LookupText(path, lookup), {ratings}, "out");
    options.memory_bytes = 32 << 20;
    const Status status = Prepare(options).status();
    EXPECT_EQ(status.code(), StatusCode::kUser) << lookup;
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(options.output_dir + ".partial"));
    return status.message();
  };
  const std::string movies = kMovies;
  EXPECT_THAT(message_of("", kByMovie), HasSubstr(path + ": stat: No such file"));
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(message_of("", kByMovie),
              HasSubstr(path + ": is a pipe or a device, expected a file"));
  EXPECT_THAT(message_of(movies + "Toy 2,m1,,,,\n", kByMovie),
              path + ":6: movieId 'm1' stands in line 3, too; expected every key once");
  EXPECT_THAT(message_of(movies + "Toy 2,,,,,\n", kByMovie),
              path + ":6: the key movieId is missing; expected one in every row");
  EXPECT_THAT(message_of(movies + "Toy 2,m5,,,,,\n", kByMovie),
              path + ":6: found 7 columns, expected 6; a side table has no bad rows");
  EXPECT_THAT(message_of("title\nToy\n", kByMovie), HasSubstr(path + ":1: field movieId: found"));
  EXPECT_THAT(message_of(movies, "by: 'movie' key: 'movieId' columns: ['title', 'year']"),
              HasSubstr(path + ":1: field year: found columns 'title', "));
  EXPECT_THAT(message_of(movies,
                         "by: 'film' key: 'movieId' columns: ['title', 'genres', 'price', "
                         "'released']"),
              HasSubstr(ratings + ":1: lookup " + path +
                        ": found columns 'label', 'user', 'movie'; expected one 'film'"));
  EXPECT_THAT(message_of("title,movieId,genres,released,price,label\n", kByMovie),
              HasSubstr(": field unread: found"));
  EXPECT_THAT(message_of("movieId,label,title\nm1,1,Toy\n",
                         "by: 'movie' key: 'movieId' columns: ['label', 'title']"),
              HasSubstr(ratings + ":1: column 'label' is also one of lookup " + path));
  EXPECT_THAT(message_of(movies,
                         "by: 'price' key: 'movieId' columns: ['title', 'genres', "
                         "'released', 'price']"),
              HasSubstr("by is 'price', which a lookup has; expected a column of the rows"));
  EXPECT_THAT(message_of("title,movieId,genres,released,price,unread\n", kByMovie),
              path + ": has no rows");
  EXPECT_THAT(message_of(movies, std::string(kByMovie) + " xxh3: '0123456789abcdef'"),
              HasSubstr("; expected 0123456789abcdef, the file as it was"));
  std::string large = "title,movieId,genres,released,price,unread\n";
  for (int i = 0; i < 200000; ++i)
    large += std::string(80, 'a') + "," + std::to_string(i) + ",,,,\n";
  EXPECT_THAT(message_of(large, kByMovie),
              HasSubstr("the side tables up to this line take more than 16 MiB, half of "
                        "--memory_gib; expected a larger --memory_gib"));
}

// A cell of more than a piece, keys that begin alike, and every size of texts.
TEST(SideTablesTest, FindsEveryKeyAndNoOther) {
  Lookup lookup;
  SideTable table(lookup, {"a", "b"});
  std::map<std::string, std::string> texts;
  for (size_t i = 0; i < 3000; ++i) {
    const std::string key = std::string(i % 300, 'k') + std::to_string(i);
    texts[key] = std::string(i == 7 ? 3 << 20 : i * i % 1000, 'c') + key;
    const std::string_view cells[] = {texts[key], ""};
    table.Add(key, cells);
  }
  EXPECT_FALSE(table.Index().has_value());
  for (const auto& [key, text] : texts) {
    std::string_view cells[2];
    ASSERT_TRUE(table.Find(key, cells)) << key;
    EXPECT_EQ(cells[0], text);
    EXPECT_EQ(cells[1], "");
    EXPECT_FALSE(table.Find(key + "k", cells));
    EXPECT_EQ(cells[0], "");
  }
}

}  // namespace
}  // namespace elastor
