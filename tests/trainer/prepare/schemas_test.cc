// The schemas in configs/ against the headers of the layouts they are for, and against real files
// where these are (docs/use/data.md); skipped elsewhere.

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/trainer/prepare/real_data.h"
#include "trainer/prepare/rows/row_parser.h"
#include "trainer/prepare/schema_file.h"

namespace elastor {
namespace {

namespace fs = std::filesystem;

std::string Unpacked(const std::string& file) {
  gzFile packed = gzopen((DataFolder() + "/" + file).c_str(), "rb");
  std::string text, piece(1 << 20, '\0');
  for (int got; (got = gzread(packed, piece.data(), 1 << 20)) > 0;) text.append(piece, 0, got);
  gzclose(packed);
  return text;
}

Schema SchemaOf(const std::string& path) {
  const auto schema = ReadSchemaFile("configs/" + path);
  EXPECT_TRUE(schema.ok()) << schema.status().message();
  return *schema;
}

// Parses `text`, taking its first line for the header when the schema has one.
struct Parsed {
  Parsed(const std::string& schema_path, std::string text) : schema(SchemaOf(schema_path)) {
    std::string header;
    if (schema.header()) {
      header = text.substr(0, text.find('\n') + 1);
      text.erase(0, header.size());
    }
    auto parser = RowParser::Create(schema, header, schema_path);
    EXPECT_TRUE(parser.ok()) << parser.status().message();
    chunk.text = std::move(text);
    (*parser)->Parse(&chunk);
    singles = (*parser)->single_fields();
    EXPECT_EQ(chunk.bad_rows, 0) << (chunk.bad.empty() ? "" : chunk.bad.front().what);
  }
  int64_t Positives() const {
    int64_t positives = 0;
    for (const float label : chunk.labels) positives += label == 1;
    return positives;
  }
  // How often each value of a CATEGORICAL field occurs.
  std::map<std::string, int64_t> Values(const std::string& name) const {
    int64_t place = 0;
    for (const Field& field : schema.fields()) {
      if (field.name() == name) break;
      place += field.type() == Field::CATEGORICAL;
    }
    std::map<std::string, int64_t> values;
    for (int64_t row = 0; row < chunk.rows; ++row) {
      ++values[std::string(chunk.TextOf(chunk.ids[row * singles + place]))];
    }
    return values;
  }

  const Schema schema;
  ParsedChunk chunk;
  int64_t singles = 0;
};

TEST(SchemasTest, EverySchemaIsValid) {
  int schemas = 0;
  for (const auto& entry : fs::recursive_directory_iterator("configs")) {
    const std::string path = entry.path().string();
    if (path.find("schema.textproto") == std::string::npos) continue;
    const auto schema = ReadSchemaFile(path);
    EXPECT_TRUE(schema.ok()) << schema.status().message();
    ++schemas;
  }
  EXPECT_GE(schemas, 12);
}

// The first lines of the published files, with a made row.
TEST(SchemasTest, PublishedHeaders) {
  std::string numbers, categories, number_values, category_values;
  for (int i = 1; i <= 13; ++i) numbers += ",I" + std::to_string(i);
  for (int i = 1; i <= 13; ++i) number_values += ",0." + std::to_string(i);
  for (int i = 1; i <= 26; ++i) categories += ",C" + std::to_string(i);
  for (int i = 1; i <= 26; ++i) category_values += "," + std::to_string(100 * i);
  const Parsed x1("criteo/x1_schema.textproto",
                  "label" + numbers + categories + "\n1" + number_values + category_values + "\n");
  ASSERT_EQ(x1.chunk.rows, 1);
  EXPECT_EQ(x1.chunk.numeric.size(), 13u);
  EXPECT_EQ(x1.chunk.numeric[11], 0.12);
  EXPECT_EQ(x1.chunk.TextOf(x1.chunk.ids[25]), "2600");

  const Parsed x4("criteo/x4_schema.textproto", "Label" + numbers + categories + "\n0,23255,-1,,0" +
                                                    std::string(9, ',') + category_values + "\n");
  ASSERT_EQ(x4.chunk.rows, 1);
  EXPECT_EQ(x4.chunk.TextOf(x4.chunk.ids[0]), "101");
  EXPECT_EQ(x4.chunk.TextOf(x4.chunk.ids[1]), "-1");
  EXPECT_EQ(x4.chunk.TextOf(x4.chunk.ids[2]), "");
  EXPECT_EQ(x4.chunk.TextOf(x4.chunk.ids[3]), "0");

  const Parsed frappe("frappe/x1_schema.textproto",
                      "label,user,item,daytime,weekday,isweekend,homework,cost,weather,country,city"
                      "\n1,451,4149,5041,5046,5053,5055,5058,5060,5069,5149\n");
  EXPECT_EQ(frappe.chunk.ids.size(), 10u);
  EXPECT_EQ(frappe.chunk.TextOf(frappe.chunk.ids[9]), "5149");

  const Parsed movielens("movielens/x1_schema.textproto",
                         "label,user_id,item_id,tag_id\n-1,90120,32,73327\n");
  EXPECT_EQ(movielens.chunk.TextOf(movielens.chunk.ids[2]), "73327");
  EXPECT_EQ(movielens.chunk.labels[0], 0);
}

// The fields of Avazu_x4 are those of Kaggle's file.
TEST(SchemasTest, AvazuTwice) {
  Schema kaggle = SchemaOf("avazu/schema.textproto");
  kaggle.set_name("avazu_x4");
  kaggle.clear_split();
  EXPECT_EQ(kaggle.SerializeAsString(), SchemaOf("avazu/x4_schema.textproto").SerializeAsString());
}

TEST(SchemasTest, Avazu) {
  const std::string file = "avazu_23k.csv.gz";
  SKIP_WITHOUT(file);
  const Parsed avazu("avazu/schema.textproto", Unpacked(file));
  EXPECT_EQ(avazu.chunk.rows, 23299);
  EXPECT_NEAR(static_cast<double>(avazu.Positives()) / 23299, 0.1709, 5e-5);
  EXPECT_EQ(avazu.singles, 24);
  // 24 hours of Tuesday, 21 October 2014, and 10 of Wednesday.
  const auto hours = avazu.Values("hour");
  EXPECT_EQ(hours.size(), 24u);
  EXPECT_EQ(hours.at("9"), 848 + 1671);
  EXPECT_EQ(hours.at("23"), 279);
  const auto weekdays = avazu.Values("weekday");
  EXPECT_EQ(weekdays.size(), 2u);
  EXPECT_EQ(weekdays.at("1"), 15237);
  EXPECT_EQ(weekdays.at("2"), 8062);
  EXPECT_EQ(avazu.Values("weekend").at("0"), 23299);
  EXPECT_EQ(avazu.chunk.split_hashes.size(), 23299u);
  // Rows are hashed whole, so nearly all hashes differ.
  EXPECT_GT(
      std::set<uint64_t>(avazu.chunk.split_hashes.begin(), avazu.chunk.split_hashes.end()).size(),
      23290u);
}

TEST(SchemasTest, Taobao) {
  const std::string file = "taobao_ad_10k.csv.gz";
  SKIP_WITHOUT(file);
  const Parsed taobao("taobao/schema.textproto", Unpacked(file));
  EXPECT_EQ(taobao.chunk.rows, 9999);
  EXPECT_EQ(taobao.Positives(), 435);
  EXPECT_EQ(taobao.Values("cate_id").size(), 630u);
  EXPECT_EQ(taobao.Values("age_level").at(""), 567);
  const auto& groups = taobao.chunk.groups;
  EXPECT_EQ(std::set<uint64_t>(groups.begin(), groups.end()).size(), 8328u);
  const auto [first, last] =
      std::minmax_element(taobao.chunk.times.begin(), taobao.chunk.times.end());
  EXPECT_EQ(*first, 1494000271);
  EXPECT_EQ(*last, 1494690886);
  int64_t filled = 0;
  for (int64_t row = 0; row < 9999; ++row) {
    const uint32_t begin = row == 0 ? 0 : taobao.chunk.bag_ends[2 * row - 1];
    filled += taobao.chunk.bag_ends[2 * row] > begin;
  }
  EXPECT_EQ(filled, 5266);
}

TEST(SchemasTest, CriteoTerabyte) {
  const std::string file = "criteo_1tb_day0_10k.tsv.gz";
  SKIP_WITHOUT(file);
  for (const char* schema : {"criteo/schema.textproto", "criteo/terabyte_schema.textproto"}) {
    const Parsed criteo(schema, Unpacked(file));
    EXPECT_EQ(criteo.chunk.rows, 10000);
    EXPECT_EQ(criteo.Positives(), 265);
    EXPECT_EQ(criteo.chunk.numeric.size(), 130000u);
    EXPECT_EQ(criteo.chunk.ids.size(), 260000u);
  }
}

}  // namespace
}  // namespace elastor
