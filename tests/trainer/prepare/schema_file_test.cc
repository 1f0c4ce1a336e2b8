#include "trainer/prepare/schema_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "google/protobuf/text_format.h"
#include "xxhash.h"

namespace elastor {
namespace {

std::string MessageOf(const std::string& text) {
  const auto schema = ParseSchema(text, "s.textproto");
  EXPECT_FALSE(schema.ok());
  EXPECT_EQ(schema.status().code(), StatusCode::kUser);
  return schema.status().message();
}

TEST(SchemaFileTest, MistakesNameFileLineAndField) {
  EXPECT_EQ(
      MessageOf("layout: LIBSVM\n\nfield { }"),
      "s.textproto:3:7: Message type \"elastor.Schema\" has no field named \"field\". It has: "
      "name, layout, fields, max_bad_rows, split, synthetic, rows_per_block, delimiter, "
      "header, quoted, null, skip_lines, text, zero_based, sort_by_time, lookup, history, "
      "negatives; did you mean 'fields'?");
  EXPECT_EQ(MessageOf("fields { name: 'a' type: CATEGORY }"),
            "s.textproto:1:35: Unknown enumeration value of \"CATEGORY\" for field \"type\". "
            "Expected one of: NUMERIC, CATEGORICAL, MULTI_HOT, SEQUENCE, LABEL, WEIGHT, GROUP, "
            "TIME, IGNORED");
  EXPECT_EQ(MessageOf("layout: LIBSVM"), "s.textproto: no fields");
  EXPECT_EQ(MessageOf("fields { } fields { name: 'a' }"),
            "s.textproto: field number 1 has no name");
  EXPECT_EQ(MessageOf("fields { name: 'y' type: LABEL } fields { name: 'gr\xf6\xdf"
                      "e' }"),
            "s.textproto:1:43: name is not UTF-8; expected UTF-8 text");
  EXPECT_EQ(MessageOf("fields { name: 'a\\nb' }"),
            "s.textproto: field number 1 has a control character in its name");
  EXPECT_TRUE(
      ParseSchema("fields { name: 'gr\xc3\xb6\xc3\x9f\x65 \xe7\x94\xb7' type: LABEL }", "s").ok());
  EXPECT_EQ(MessageOf("fields { name: 'a' } fields { name: 'a' }"),
            "s.textproto: field a: is named twice");
  EXPECT_EQ(MessageOf("layout: SYNTHETIC synthetic { rows: 5 }"),
            "s.textproto: synthetic needs at least two fields");
}

// 1,500 copies of 1,500 names take 90 MB.
TEST(SchemaFileTest, MemoryGrowsWithTheNamesAlone) {
  std::string names = "'n'";
  for (int i = 0; i < 1500; ++i) StrAppend(&names, ", 'n", i, "'");
  const auto schema =
      ParseSchema("fields { name: 'y' type: LABEL } fields { names: [" + names + "] }", "s");
  ASSERT_TRUE(schema.ok()) << schema.status().message();
  EXPECT_EQ(schema->fields_size(), 1502);
  EXPECT_LT(schema->SpaceUsedLong(), size_t{4} << 20);
}

// The parser takes any number for an enum, and any bytes for a string.
TEST(SchemaFileTest, NumbersThatNoEnumHasAndTextsThatAreNotUtf8) {
  const std::string fields = "fields { name: 'y' type: LABEL } ";
  EXPECT_EQ(
      MessageOf("layout: 6"),
      "s.textproto:1:1: layout is 6; expected one of: DELIMITED, LIBSVM, SYNTHETIC, TEXT, IDX, "
      "LIBFFM");
  EXPECT_EQ(MessageOf(fields + "\nfields { name: 'a' type: 9 }").substr(0, 27),
            "s.textproto:2:20: type is 9");
  EXPECT_EQ(MessageOf(fields + "split { train: 1 by: 7 }"),
            "s.textproto:1:51: by is 7; expected one of: ORDER, HASH, TIME");
  EXPECT_EQ(MessageOf(fields + "fields { name: 'a' type: CATEGORICAL encoding: 5 buckets: 9 }"),
            "s.textproto:1:71: encoding is 5; expected one of: VOCABULARY, HASH, IDENTITY, "
            "HASHED_KEY, IDENTITY_KEY");
  EXPECT_EQ(MessageOf("name: '\\377' " + fields),
            "s.textproto:1:1: name is not UTF-8; expected UTF-8 text");
  EXPECT_EQ(MessageOf("delimiter: '\xff' " + fields),
            "s.textproto:1:1: delimiter is not UTF-8; expected UTF-8 text");
  EXPECT_EQ(MessageOf(fields + "fields { name: 'a' column: '\xe9' }"),
            "s.textproto:1:53: column is not UTF-8; expected UTF-8 text");
}

TEST(SchemaFileTest, NumbersOfPlantedDataThatNothingCanBeMadeOf) {
  const std::string plan = "layout: SYNTHETIC synthetic { rows: 5 numeric_fields: 2 ";
  for (const char* field : {"signal: nan", "signal: inf", "zipf_exponent: inf",
                            "categorical_fields: 2147483647 multi_hot_fields: 2147483647"}) {
    EXPECT_EQ(ParseSchema(plan + field + " }", "s").status().code(), StatusCode::kUser) << field;
  }
}

TEST(SchemaFileTest, AByteOrderMarkIsNoPartOfTheText) {
  const std::string mark = "\xef\xbb\xbf", fields = "fields { name: 'y' type: LABEL }";
  const auto schema = ParseSchema(mark + fields, "s");
  ASSERT_TRUE(schema.ok()) << schema.status().message();
  EXPECT_EQ(schema->fields(0).name(), "y");
  EXPECT_EQ(ParseSchema(mark + mark + fields, "s").status().code(), StatusCode::kUser);
}

TEST(SchemaFileTest, FilesThatAreNoSchema) {
  const auto message_of = [](const std::string& bytes) {
    const std::string path = testing::TempDir() + "/schema";
    std::ofstream(path, std::ios::binary) << bytes;
    const Status status = ReadSchemaFile(path).status();
    EXPECT_EQ(status.code(), StatusCode::kUser);
    return status.message().substr(path.size());
  };
  EXPECT_EQ(message_of("\x1f\x8b\x08"), ": found gzip data, expected a schema in protobuf text");
  EXPECT_EQ(message_of(std::string("\xff\xfel\0", 4)),
            ": found UTF-16 text, expected a schema in protobuf text");
  EXPECT_EQ(message_of(std::string((16 << 20) + 1, '1')),
            ": found 16777217 bytes, expected a schema of 16 MiB at most");
  EXPECT_LT(message_of("layout: " + std::string(1 << 20, '1')).size(), 400u);
}

// What one field, beside a label, has wrong with it.
std::string WrongField(const std::string& field, const std::string& lines = "") {
  const std::string message =
      MessageOf(lines + " fields { name: 'y' type: LABEL } fields { name: 'a' " + field + " }");
  const std::string begin = "s.textproto: field a: ";
  EXPECT_EQ(message.substr(0, begin.size()), begin);
  return message.substr(std::min(message.size(), begin.size()));
}

TEST(SchemaFileTest, MistakesInAField) {
  const struct {
    const char* field;
    const char* message;
  } kMistakes[] = {
      {"type: CATEGORICAL encoding: HASH",
       "buckets is 0; expected 1 to 2^48 for HASH and IDENTITY"},
      {"type: CATEGORICAL encoding: IDENTITY buckets: 281474976710657",
       "buckets is 281474976710657; expected 1 to 2^48 for HASH and IDENTITY"},
      {"type: CATEGORICAL buckets: 5", "buckets are for HASH and IDENTITY"},
      {"type: CATEGORICAL encoding: HASH buckets: 5 offset: 1", "offset is for IDENTITY"},
      {"type: CATEGORICAL encoding: HASH buckets: 5 min_count: 2", "min_count is for VOCABULARY"},
      {"type: CATEGORICAL encoding: HASHED_KEY buckets: 5",
       "buckets are for HASH and IDENTITY; `capacity` in the experiment's embedding.tables bounds "
       "a "
       "table of keys"},
      {"type: CATEGORICAL encoding: IDENTITY_KEY min_count: 2",
       "min_count is for VOCABULARY; a table of keys takes every key"},
      {"type: CATEGORICAL encoding: IDENTITY_KEY offset: 2", "offset is for IDENTITY"},
      {"type: NUMERIC encoding: HASHED_KEY",
       "encoding, min_count, buckets and offset are for categorical fields"},
      {"type: CATEGORICAL min_count: -1", "min_count is -1; expected 1 or more"},
      {"type: NUMERIC min_count: 2",
       "encoding, min_count, buckets and offset are for categorical fields"},
      {"type: CATEGORICAL transform: LOG2", "transform is LOG2; expected a NUMERIC field for it"},
      {"type: NUMERIC transform: HOUR", "transform is HOUR; expected a CATEGORICAL field for it"},
      {"type: MULTI_HOT transform: BUCKET boundaries: 1",
       "transform is BUCKET; expected a CATEGORICAL field for it"},
      {"type: CATEGORICAL transform: BUCKET",
       "boundaries is empty; expected at least one for BUCKET"},
      {"type: CATEGORICAL transform: BUCKET boundaries: [1, 3, 3]",
       "boundaries: number 3 is not above the one before it; expected ascending finite numbers"},
      {"type: CATEGORICAL transform: BUCKET boundaries: nan",
       "boundaries: number 1 is not above the one before it; expected ascending finite numbers"},
      {"type: CATEGORICAL boundaries: 1", "boundaries are for transform BUCKET"},
      {"type: CATEGORICAL time_format: YYMMDDHH",
       "time_format is for type TIME and transforms of a time"},
      {"type: CATEGORICAL max_length: 3",
       "max_length, separator, list, keep_missing and pooling are for MULTI_HOT and SEQUENCE"},
      {"type: NUMERIC list: BRACKETS",
       "max_length, separator, list, keep_missing and pooling are for MULTI_HOT and SEQUENCE"},
      {"type: SEQUENCE list: BRACKETS separator: ';'",
       "separator is for list PLAIN and TRIMMED; commas are between items of BRACKETS"},
      {"type: SEQUENCE list: TRIMMED separator: '\\t'",
       "separator is the delimiter of columns; expected another, or quoted values"},
      {"type: SEQUENCE max_length: -3", "max_length is -3; expected 1 or more"},
      {"type: SEQUENCE separator: '||'",
       "separator is '||'; expected one character, no quote and no line feed"},
      {"type: SEQUENCE separator: '\\t'",
       "separator is the delimiter of columns; expected another, or quoted values"},
      {"type: CATEGORICAL shares: 'z'",
       "shares is 'z'; expected an earlier categorical field that shares none itself"},
      {"type: CATEGORICAL shares: 'y'",
       "shares is 'y'; expected an earlier categorical field that shares none itself"},
      {"type: CATEGORICAL shares: 'a'",
       "shares is 'a'; expected an earlier categorical field that shares none itself"},
      {"type: CATEGORICAL shares: 'y' min_count: 2",
       "encoding, min_count, buckets and offset are those of y, which it shares; expected none "
       "here"},
      {"type: NUMERIC shares: 'y'", "shares is for categorical fields"},
      {"column: 'later'", "column is 'later'; expected an earlier field, as there is no header"},
  };
  for (const auto& mistake : kMistakes) {
    EXPECT_EQ(WrongField(mistake.field), mistake.message) << mistake.field;
  }
}

TEST(SchemaFileTest, MistakesOfLookups) {
  const auto wrong = [](const std::string& lookups, const std::string& rest) {
    return MessageOf("fields { name: 'y' type: LABEL } fields { name: 'm' } " + rest +
                     " lookup { " + lookups + " }");
  };
  const std::string file = "file: 'f' by: 'm' key: 'k' ";
  const std::string begin = "s.textproto: lookup f: ";
  EXPECT_EQ(wrong("by: 'm'", ""), "s.textproto: lookup: file is missing; expected a path");
  EXPECT_EQ(wrong("file: 'f' key: 'k'", ""),
            begin + "by is missing; expected a column of the rows");
  EXPECT_EQ(wrong("file: 'f' by: 'm'", ""),
            begin + "key is missing; expected a column of the file");
  EXPECT_EQ(wrong(file, ""), begin + "columns are missing; expected one or more");
  EXPECT_EQ(wrong(file + "columns: ['k', 'a\tb']", ""),
            begin + "a column is 'a?b'; expected a name");
  EXPECT_EQ(wrong(file + "columns: ['k', 'a', 'a']", ""),
            begin + "column 'a' stands twice in lookups; expected it once");
  EXPECT_EQ(wrong(file + "columns: ['k', 'a'] } lookup { file: 'g' by: 'm' key: 'k' "
                         "columns: ['k', 'a']",
                  ""),
            "s.textproto: lookup g: column 'a' stands twice in lookups; expected it once");
  EXPECT_EQ(wrong(file + "columns: ['k', 'm']", ""),
            begin +
                "column 'm' is also a field of the rows; expected another name, or column: 'm' "
                "in that field");
  EXPECT_EQ(wrong(file + "columns: 'a'", ""),
            begin +
                "key 'k' is not among columns; expected all columns of the file there, as it "
                "has no header");
  EXPECT_EQ(wrong(file + "columns: ['k', 'a'] header: true", ""),
            begin + "key 'k' is among columns; expected the others alone");
  EXPECT_EQ(wrong(file + "columns: ['k', 'a'] skip_lines: 2000", ""),
            begin + "skip_lines is 2000; expected 0 to 1000");
  EXPECT_EQ(wrong(file + "columns: ['k', 'a'] xxh3: 'x'", ""),
            begin + "xxh3 is 'x'; expected 16 hex digits");
  EXPECT_EQ(
      wrong(file + "columns: ['k', 'a']", "fields { name: 'b' column: 'c' }"),
      "s.textproto: field b: column is 'c'; expected an earlier field, as there is no header, "
      "or a column of a lookup");
  EXPECT_EQ(MessageOf("layout: LIBSVM fields { name: 'a' } lookup { " + file + "}"),
            "s.textproto: lookup is for layout DELIMITED");
}

TEST(SchemaFileTest, ASharedFieldMustNotBeLater) {
  EXPECT_EQ(MessageOf("fields { name: 'y' type: LABEL }"
                      "fields { name: 'a' type: SEQUENCE shares: 'b' }"
                      "fields { name: 'b' type: CATEGORICAL }"),
            "s.textproto: field a: shares is 'b'; expected an earlier categorical field that "
            "shares none itself");
}

TEST(SchemaFileTest, MistakesOfTheLayout) {
  const std::string fields = "fields { name: 'y' type: LABEL } fields { name: 'a' } ";
  EXPECT_EQ(MessageOf("fields { name: 'a' }"),
            "s.textproto: no field of type LABEL; expected one in layout DELIMITED, or `negatives` "
            "where all rows are positive");
  EXPECT_EQ(
      MessageOf(fields + "delimiter: '01234567890123456'"),
      "s.textproto: delimiter is '01234567890123456'; expected 1 to 16 characters, no quote and no "
      "line feed");
  EXPECT_EQ(MessageOf(fields + "delimiter: '\\n'").rfind("s.textproto: delimiter is", 0), 0u);
  EXPECT_EQ(MessageOf("layout: LIBSVM header: true fields { name: 'a' }"),
            "s.textproto: delimiter, header, quoted and null are for layout DELIMITED");
  EXPECT_EQ(MessageOf(fields + "zero_based: true"),
            "s.textproto: `zero_based` is for layouts LIBSVM and LIBFFM");
  EXPECT_EQ(MessageOf("layout: LIBSVM fields { name: 'a' type: WEIGHT }"),
            "s.textproto: field a: type is WEIGHT; expected NUMERIC, CATEGORICAL, MULTI_HOT, "
            "IGNORED, LABEL or GROUP in LIBSVM");
  EXPECT_EQ(MessageOf("layout: LIBFFM fields { name: 'y' type: LABEL }"),
            "s.textproto: no field reads pairs; expected one beside LABEL and GROUP");
  EXPECT_EQ(
      MessageOf("layout: LIBSVM fields { name: 'a' } fields { names: ['x', 'y'] type: LABEL }"),
      "s.textproto: field y: type is LABEL; expected one such field, and x is one");
  EXPECT_EQ(MessageOf("layout: LIBSVM fields { name: 'a' type: CATEGORICAL any_value: true }"),
            "s.textproto: field a: any_value is for MULTI_HOT in LIBSVM, as a pair with 0 has no "
            "place");
  EXPECT_EQ(MessageOf("layout: LIBFFM fields { name: 'a' type: MULTI_HOT list: BRACKETS }"),
            "s.textproto: field a: list is for layout DELIMITED");
  EXPECT_EQ(MessageOf("layout: LIBFFM fields { name: 'a' any_value: true }"),
            "s.textproto: field a: any_value is for CATEGORICAL and MULTI_HOT in layouts LIBSVM "
            "and LIBFFM");
  EXPECT_EQ(MessageOf("layout: LIBSVM fields { name: 'a' type: CATEGORICAL transform: HOUR }"),
            "s.textproto: field a: transform is HOUR; expected layout DELIMITED");
  EXPECT_EQ(MessageOf("layout: LIBSVM fields { name: 'a' type: MULTI_HOT } fields { name: 'b' }"),
            "s.textproto: field a: a MULTI_HOT field of LIBSVM takes all remaining pairs, so must "
            "be last");
  EXPECT_EQ(MessageOf("layout: LIBSVM null: '?' fields { name: 'a' }"),
            "s.textproto: delimiter, header, quoted and null are for layout DELIMITED");
  EXPECT_EQ(MessageOf(fields + "delimiter: ',' null: 'a,b'"),
            "s.textproto: null is 'a,b'; expected a text that can stand between two delimiters");
  EXPECT_EQ(MessageOf(fields + "skip_lines: 1001"),
            "s.textproto: skip_lines is 1001; expected 0 to 1000");
  EXPECT_EQ(MessageOf("layout: IDX skip_lines: 1"),
            "s.textproto: skip_lines is for layouts DELIMITED, LIBSVM and LIBFFM");
  EXPECT_EQ(MessageOf(fields + "sort_by_time: true"),
            "s.textproto: sort_by_time: no field of type TIME; expected one");
  EXPECT_EQ(MessageOf(fields + "text { length: 8 }"), "s.textproto: `text` is for layout TEXT");
  EXPECT_EQ(MessageOf("layout: TEXT synthetic { rows: 5 }"),
            "s.textproto: `synthetic` is for layout SYNTHETIC");
  EXPECT_EQ(MessageOf("layout: IDX fields { name: 'a' }"),
            "s.textproto: IDX makes its own fields; remove `fields`");
  EXPECT_EQ(MessageOf("layout: TEXT split { train: 1 by: HASH }"),
            "s.textproto: split: by is HASH; expected ORDER in layout TEXT");
}

TEST(SchemaFileTest, EveryLayoutHasOneRow) {
  constexpr auto rules = PartOfLayouts<&LayoutRow::rules>();
  ASSERT_EQ(static_cast<int>(rules.size()), Schema::Layout_descriptor()->value_count());
  for (int i = 0; i < Schema::Layout_descriptor()->value_count(); ++i) {
    Schema schema;
    schema.set_layout(static_cast<Schema::Layout>(Schema::Layout_descriptor()->value(i)->number()));
    EXPECT_EQ(RulesOf(schema).layout, schema.layout());
    const bool whole = RulesOf(schema).source == RowSource::kWholeFiles;
    EXPECT_EQ(MakesItsFields(schema), whole || schema.layout() == Schema::SYNTHETIC);
  }
}

TEST(SchemaFileTest, MistakesOfTheSplit) {
  const std::string fields = "fields { name: 'y' type: LABEL } fields { name: 'a' } ";
  EXPECT_EQ(MessageOf(fields + "split { train: 0.5 }"),
            "s.textproto: split: the shares sum to 0.500000; expected 1");
  EXPECT_EQ(MessageOf(fields + "split { train: 1.5 test: -0.5 }"),
            "s.textproto: split: a share is negative");
  EXPECT_EQ(MessageOf(fields + "split { by: HASH }"),
            "s.textproto: split: by is HASH; expected shares that sum to 1 beside it");
  EXPECT_EQ(
      MessageOf(fields + "split { train: 1 by: HASH hash_field: 'b' }"),
      "s.textproto: split: hash_field is 'b'; expected a field of layout DELIMITED, or of type "
      "GROUP");
  EXPECT_EQ(MessageOf(fields + "split { train: 1 hash_field: 'a' }"),
            "s.textproto: split: hash_field is for by: HASH");
  EXPECT_EQ(MessageOf(fields + "split { train: 1 whole_days: true }"),
            "s.textproto: split: validation_from, test_from and whole_days are for by: TIME");
  EXPECT_EQ(MessageOf(fields + "split { train: 1 by: TIME }"),
            "s.textproto: split: by is TIME; expected a field of type TIME");
  const auto of_time = [&](const std::string& split) {
    return MessageOf(fields + "fields { name: 't' type: TIME } split { by: TIME " + split + "}");
  };
  const std::string begin = "s.textproto: split: ";
  EXPECT_EQ(of_time(""), begin +
                             "by is TIME with neither shares nor validation_from or test_from; "
                             "expected one of them");
  EXPECT_EQ(of_time("train: 1 test_from: '2014-10-28'"),
            begin +
                "by is TIME with validation_from or test_from beside shares; expected one of "
                "them");
  EXPECT_EQ(of_time("test_from: '28.10.2014'"),
            begin +
                "test_from is '28.10.2014'; expected a time such as 2014-10-28 or 2014-10-28 "
                "12:00:00, in UTC");
  EXPECT_EQ(of_time("validation_from: '2014-10-28' test_from: '2014-10-28'"),
            begin + "validation_from is not before test_from");
  EXPECT_EQ(of_time("test_from: '2014-10-28' whole_days: true"),
            begin + "whole_days is for shares");
}

// What a user writes is taken or refused, never replaced.
TEST(SchemaFileTest, AWrittenZeroIsTakenOrRefused) {
  EXPECT_EQ(WrongField("type: CATEGORICAL min_count: 0"), "min_count is 0; expected 1 or more");
  EXPECT_EQ(WrongField("type: SEQUENCE max_length: 0"), "max_length is 0; expected 1 or more");
  const std::string fields = "fields { name: 'y' type: LABEL } fields { name: 'a' } ";
  EXPECT_EQ(MessageOf(fields + "rows_per_block: 0"),
            "s.textproto: rows_per_block must be 1 to 2^20");
  EXPECT_EQ(MessageOf(fields + "split { train: 0 }"),
            "s.textproto: split: the shares are all 0; expected shares that sum to 1, or none");
  const std::string plan = "layout: SYNTHETIC synthetic { rows: 5 numeric_fields: 2 ";
  EXPECT_EQ(MessageOf(plan + "rank: 0 }"), "s.textproto: synthetic.rank must be 1 to 256");
  EXPECT_EQ(MessageOf(plan + "drift: -1 }"), "s.textproto: synthetic.drift must be 0 to 1e6");
  EXPECT_EQ(MessageOf(plan + "drift: 1 }"),
            "s.textproto: synthetic.drift is for fields of ids, and for teachers other than "
            "HISTORY");
  EXPECT_EQ(MessageOf(plan + "labels: 0 }"), "s.textproto: synthetic.labels must be 1 to 64");
  EXPECT_EQ(MessageOf(plan + "base_rate: 0 }"),
            "s.textproto: synthetic.base_rate must be in (0, 1)");
  const auto taken = ParseSchema(plan + "signal: 0 zipf_exponent: 0 }", "s");
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  EXPECT_TRUE(taken->synthetic().has_signal() && taken->synthetic().has_zipf_exponent());
}

// Data sets hold this text, which their fingerprints see. Taken before numbers told a written 0
// from one left out.
TEST(SchemaFileTest, TextsOfTheRepositoryStay) {
  constexpr struct {
    const char *schema, *hash;
  } kSchemas[] = {
      {"avazu/schema", "6ff5c1375c46a4c1"},
      {"avazu/x4_schema", "4a32121b748dac5c"},
      {"criteo/schema", "f5af03bac76724a3"},
      {"criteo/terabyte_schema", "dc78c83aae3934e8"},
      {"criteo/x1_schema", "4612d683df4b6e01"},
      {"criteo/x4_schema", "9f5ed1ec5517dd1e"},
      {"frappe/schema", "d6870f1c8236ccdd"},
      {"frappe/x1_schema", "4023381f357009b7"},
      {"images/fashion_mnist_schema", "446a7ca37faff0cf"},
      {"kuaivideo/x1_schema", "1c03dff50023d727"},
      {"matrix_thinker/anarchism_schema", "65c4116b34a2e594"},
      {"movielens/x1_schema", "8ba52f9bb6dbfda7"},
      {"planted/coordinate_mixing_schema", "ebc78c197b2460c8"},
      {"planted/sequences_schema", "8d873368f1909406"},
      {"planted/two_labels_schema", "08d6dc2512e94386"},
      {"quickstart_schema", "2057ab52f9a2b8fb"},
      {"taobao/schema", "8b2e3f38ec4395f3"},
      {"taobao/x1_schema", "ca04c6f831c965bc"},
  };
  for (const auto& [name, hash] : kSchemas) {
    auto schema = ReadSchemaFile(std::string("configs/") + name + ".textproto");
    ASSERT_TRUE(schema.ok()) << schema.status().message();
    schema->clear_split();
    std::string text;
    ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(*schema, &text));
    EXPECT_EQ(
        Format("%016llx", static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size()))),
        hash)
        << name;
  }
}

TEST(SchemaFileTest, AFieldThatSharesHasTheOthersEncoding) {
  const auto schema = ParseSchema(
      "fields { name: 'y' type: LABEL }"
      "fields { name: 'a' type: CATEGORICAL encoding: IDENTITY buckets: 9 offset: 2 }"
      "fields { name: 'b' type: SEQUENCE shares: 'a' }",
      "s");
  ASSERT_TRUE(schema.ok()) << schema.status().message();
  EXPECT_EQ(schema->fields(2).encoding(), Field::IDENTITY);
  EXPECT_EQ(schema->fields(2).buckets(), 9);
  EXPECT_EQ(schema->fields(2).offset(), 2);
}

std::vector<std::string> NamesOf(const std::string& names) {
  const auto schema =
      ParseSchema("fields { name: 'y' type: LABEL } fields { names: " + names + " min_count: 3 " +
                      "type: CATEGORICAL } fields { name: 'end' }",
                  "s");
  EXPECT_TRUE(schema.ok()) << schema.status().message();
  std::vector<std::string> found;
  for (int i = 1; i + 1 < schema->fields_size(); ++i) {
    EXPECT_EQ(schema->fields(i).min_count(), 3);
    EXPECT_EQ(schema->fields(i).names_size(), 0);
    found.push_back(schema->fields(i).name());
  }
  return found;
}

TEST(SchemaFileTest, NamesStandForSeveralFields) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(NamesOf("['b', 'a']"), (Names{"b", "a"}));
  EXPECT_EQ(NamesOf("'C9..C11'"), (Names{"C9", "C10", "C11"}));
  EXPECT_EQ(NamesOf("'f08..f10'"), (Names{"f08", "f09", "f10"}));
  EXPECT_EQ(NamesOf("['0..2', 'x1y1..x1y2', 'a.b']"),
            (Names{"0", "1", "2", "x1y1", "x1y2", "a.b"}));
  for (const char* range : {"C3..C1", "C1..C1", "C..D", "C1..D3", "C1..3", "f01..f1", "f1..f02",
                            "..", "C1..", "C1..C99999999999999999999"}) {
    EXPECT_EQ(MessageOf("fields { name: 'y' type: LABEL } fields { names: '" + std::string(range) +
                        "' }"),
              "s.textproto: names is '" + std::string(range) +
                  "'; expected names, or a range such as \"C1..C26\", ascending");
  }
  EXPECT_EQ(MessageOf("fields { names: 'C1..C9999999' }"),
            "s.textproto: names is 'C1..C9999999'; expected a range of at most 65536 names");
  EXPECT_EQ(MessageOf("fields { name: 'y' type: LABEL } fields { names: ['C1..C5', 'C4..C9'] }"),
            "s.textproto: field C4: is named twice");
  EXPECT_EQ(MessageOf("fields { name: 'y' names: 'C1..C3' }"),
            "s.textproto: field 'C1..C3': names stand with name or column; expected them alone");
}

TEST(SchemaFileTest, MistakesOfLabels) {
  const struct {
    const char* label;
    const char* message;
  } kMistakes[] = {
      {"type: NUMERIC at_least: 4", "at_least, positive and negative are for type LABEL"},
      {"type: CATEGORICAL positive: 'a'", "at_least, positive and negative are for type LABEL"},
      {"type: LABEL at_least: 4 positive: 'a'",
       "at_least and positive are both given; expected one of them"},
      {"type: LABEL at_least: nan", "at_least is not finite"},
      {"type: LABEL negative: 'a'",
       "negative is given without positive; expected the texts that are 1, too"},
      {"type: LABEL positive: 'a' negative: ['b', 'a']",
       "'a' is positive and negative; expected one of them"},
      {"type: LABEL", "null '0' is also a value of this label"},
      {"type: LABEL at_least: 4", "null '0' is also a value of this label"},
      {"type: LABEL positive: ['x', '0']", "null '0' is also a value of this label"},
  };
  for (const auto& mistake : kMistakes) {
    EXPECT_EQ(MessageOf("null: ['', '0'] fields { name: 'a' " + std::string(mistake.label) + " }"),
              std::string("s.textproto: field a: ") + mistake.message);
  }
}

TEST(SchemaFileTest, MissingFile) {
  EXPECT_EQ(ReadSchemaFile("/no/such/schema").status().code(), StatusCode::kUser);
}

}  // namespace
}  // namespace elastor
