#ifndef ELASTOR_TESTS_TRAINER_PREPARE_ROWS_ROW_PARSER_TESTING_H_
#define ELASTOR_TESTS_TRAINER_PREPARE_ROWS_ROW_PARSER_TESTING_H_

#include <gtest/gtest.h>

#include <string>

#include "trainer/prepare/schema_file.h"

namespace elastor {

inline constexpr char kLabel[] = "fields { name: 'y' type: LABEL } ";

inline Schema SchemaOf(const std::string& text) {
  auto parsed = ParseSchema(text, "schema");
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return *parsed;
}

}  // namespace elastor

#endif  // ELASTOR_TESTS_TRAINER_PREPARE_ROWS_ROW_PARSER_TESTING_H_
