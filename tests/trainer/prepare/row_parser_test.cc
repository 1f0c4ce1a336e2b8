#include "trainer/prepare/row_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "trainer/prepare/schema_file.h"

namespace elastor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ParsedChunk ParseText(const std::string& schema, const std::string& text) {
  auto parsed = ParseSchema(schema, "schema");
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  ParsedChunk chunk;
  chunk.text = text;
  RowParser(*parsed).Parse(&chunk);
  return chunk;
}

constexpr char kNumber[] = "layout: CRITEO_TSV fields { name: 'n' type: NUMERIC }";

TEST(RowParserTest, Numbers) {
  const ParsedChunk chunk = ParseText(
      kNumber, "0\t-12\n1\t0\n0\t999999999999999\n1\t1234567890123456789\n0\t1.5e3\n1\t-.25\r\n");
  EXPECT_EQ(chunk.rows, 6);
  EXPECT_THAT(chunk.numeric,
              ElementsAre(-12, 0, 999999999999999, 1234567890123456789.0, 1500, -0.25));
}

TEST(RowParserTest, NotNumbers) {
  for (const char* text : {"-", "1x", "x", " 1", "1 ", "nan", "inf", "1e39", "--1", "0x10", "+"}) {
    const ParsedChunk chunk = ParseText(kNumber, std::string("0\t") + text + "\n1\t2\n");
    EXPECT_EQ(chunk.bad_rows, 1) << text;
    EXPECT_THAT(chunk.numeric, ElementsAre(2)) << text;
    EXPECT_THAT(chunk.labels, ElementsAre(1)) << text;
  }
}

TEST(RowParserTest, ColumnsAndEmptyLines) {
  const ParsedChunk chunk = ParseText(kNumber, "0\t1\n\n0\t1\t2\n0\n1\t\n");
  EXPECT_EQ(chunk.lines, 5);
  EXPECT_EQ(chunk.rows, 2);
  EXPECT_EQ(chunk.bad_rows, 3);
  EXPECT_EQ(chunk.bad[0].line, 1);
  EXPECT_EQ(chunk.bad[1].line, 2);
  EXPECT_THAT(chunk.bad[1].what, HasSubstr("found 3 columns, expected 2"));
  EXPECT_TRUE(std::isnan(chunk.numeric[1]));
}

// Rows of every length around the eight bytes that are searched at a time.
TEST(RowParserTest, SeparatorsAtEveryAlignment) {
  const std::string schema =
      "layout: CRITEO_TSV fields { name: 'a' type: CATEGORICAL }"
      "fields { name: 'b' type: CATEGORICAL }";
  for (int a = 0; a < 20; ++a) {
    const std::string first(a, '\x89'), second(19 - a, '\x0b');  // bytes one bit off tab and feed
    const ParsedChunk chunk =
        ParseText(schema, "1\t" + first + "\t" + second + "\n0\t" + second + "\t\n");
    ASSERT_EQ(chunk.rows, 2);
    EXPECT_EQ(chunk.TextOf(chunk.ids[0]), first);
    EXPECT_EQ(chunk.TextOf(chunk.ids[1]), second);
    EXPECT_EQ(chunk.TextOf(chunk.ids[2]), second);
    EXPECT_EQ(chunk.TextOf(chunk.ids[3]), "");
  }
}

TEST(RowParserTest, LibsvmMistakes) {
  const std::string schema = R"(layout: LIBSVM
      fields { name: "a" type: CATEGORICAL encoding: IDENTITY offset: 5 buckets: 2 }
      fields { name: "b" type: CATEGORICAL })";
  const ParsedChunk chunk =
      ParseText(schema,
                "1 5:1 x:1\n1 4:1 x:1\n1 7:1 x:1\n1 5:1\n1 5:1 x:1 y:1\n1 5 x:1\n1 5:2 x:1\n"
                "-1  6:1\tx:1 \n7 5:1 x:1\n");
  EXPECT_EQ(chunk.rows, 2);
  EXPECT_EQ(chunk.bad_rows, 7);
  EXPECT_THAT(chunk.labels, ElementsAre(1, 0));
  EXPECT_EQ(chunk.ids[0], 0u);
  EXPECT_EQ(chunk.ids[2], 1u);
  EXPECT_EQ(chunk.bad[0].what, "column 2 (a): found '4', expected an id in [5, 7)");
  EXPECT_EQ(chunk.bad[2].what, "found 1 pairs, expected 2");
  EXPECT_EQ(chunk.bad[3].what, "column 4: found 'y:1', expected only 2 pairs");
  EXPECT_EQ(chunk.bad[4].what, "column 2 (a): found '5', expected index:number");
}

TEST(RowParserTest, Log2Transform) {
  EXPECT_EQ(Log2Transform(-5), -5);
  EXPECT_EQ(Log2Transform(2), 2);
  EXPECT_EQ(Log2Transform(3), 1);        // ln(3)^2 = 1.207
  EXPECT_EQ(Log2Transform(8), 4);        // 4.324
  EXPECT_EQ(Log2Transform(23255), 101);  // 101.08
  EXPECT_TRUE(std::isnan(Log2Transform(NAN)));
}

}  // namespace
}  // namespace elastor
