#include "trainer/prepare/schema_file.h"

#include <gtest/gtest.h>

#include <string>

namespace elastor {
namespace {

std::string MessageOf(const std::string& text) {
  const auto schema = ParseSchema(text, "s.textproto");
  EXPECT_FALSE(schema.ok());
  EXPECT_EQ(schema.status().code(), StatusCode::kUser);
  return schema.status().message();
}

TEST(SchemaFileTest, MistakesNameFileLineAndField) {
  EXPECT_EQ(MessageOf("layout: CRITEO_TSV\n\nfield { }"),
            "s.textproto:3:7: Message type \"elastor.Schema\" has no field named \"field\".");
  EXPECT_EQ(MessageOf("fields { name: 'a' type: WORD }").rfind("s.textproto:1:", 0), 0u);
  EXPECT_EQ(MessageOf("layout: LIBSVM"), "s.textproto: no fields");
  EXPECT_EQ(MessageOf("fields { name: 'a' } fields { name: 'a' }"),
            "s.textproto: field a is named twice");
  EXPECT_EQ(MessageOf("fields { name: 'a' type: CATEGORICAL encoding: HASH }"),
            "s.textproto: field a: buckets is 0, expected 1 to 2^48 for HASH and IDENTITY");
  EXPECT_EQ(MessageOf("fields { name: 'a' } split { train: 0.5 }"),
            "s.textproto: split: the shares sum to 0.500000, expected 1");
  EXPECT_EQ(MessageOf("layout: LIBSVM fields { name: 'a' type: MULTI_HOT } fields { name: 'b' }"),
            "s.textproto: field a: a MULTI_HOT field of LIBSVM takes all remaining pairs, so must "
            "be last");
  EXPECT_EQ(MessageOf("layout: SYNTHETIC synthetic { rows: 5 }"),
            "s.textproto: synthetic needs at least two fields");
}

TEST(SchemaFileTest, MissingFile) {
  EXPECT_EQ(ReadSchemaFile("/no/such/schema").status().code(), StatusCode::kUser);
}

}  // namespace
}  // namespace elastor
