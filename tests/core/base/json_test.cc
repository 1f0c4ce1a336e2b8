#include "core/base/json.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace elastor {
namespace {

TEST(JsonTest, BracesMakeArraysAndObjects) {
  const Json pair = {"a", 1};
  EXPECT_EQ(pair.dump(), R"(["a",1])");
  EXPECT_EQ((Json{{"a", 1}, {"b", {1, 2}}, {"c", {{"d", nullptr}}}}).dump(),
            R"({"a":1,"b":[1,2],"c":{"d":null}})");
  EXPECT_EQ((Json{{"a", 1}, 2}).dump(), R"([["a",1],2])");
  EXPECT_EQ(Json::array({{"a", 1}}).dump(), R"([["a",1]])");
  EXPECT_EQ((Json{{"a", 1}, {"a", 2}}).dump(), R"({"a":2})");
  EXPECT_EQ(Json(std::vector<int64_t>{1, -2}).dump(), "[1,-2]");
  EXPECT_EQ(Json().dump(), "null");
  EXPECT_EQ(Json::object().dump(), "{}");
}

// Every line as the library writes and reads it.
TEST(JsonTest, TextsAreTheLibrarys) {
  for (const std::string text : {"null",
                                 "true",
                                 "-0.0",
                                 "0",
                                 "-9223372036854775808",
                                 "18446744073709551615",
                                 "1e400",
                                 "1e-7",
                                 "123456789012345678901234567890",
                                 "0.1",
                                 "2.5e-324",
                                 "1E5",
                                 "[]",
                                 "{}",
                                 "[1,[2,[]],{\"a\":{}}]",
                                 R"({"b":1,"a":{"y":1,"x":2},"b":3})",
                                 R"({"a":[1],"b":null,"a":{"c":[2]}})",
                                 R"("\u00e9\n\"\ud83d\ude00")",
                                 R"("a)",
                                 "[1,]",
                                 "",
                                 " 1 ",
                                 "{\"a\"}",
                                 "nan",
                                 "\"\xff\""}) {
    const auto expected = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
    const Json found = Json::parse(text);
    EXPECT_EQ(found.is_null(), expected.is_null() || expected.is_discarded()) << text;
    if (expected.is_discarded()) {
      EXPECT_THROW(ParseJson(text), std::string) << text;
      continue;
    }
    for (const int indent : {-1, 0, 2})
      EXPECT_EQ(found.dump(indent), expected.dump(indent)) << text;
    EXPECT_EQ(found.AsciiText(), expected.dump(-1, ' ', true));
    EXPECT_EQ(found.Sorted().dump(), nlohmann::json::parse(text).dump());
    EXPECT_TRUE(found == ParseJson(text));
  }
  EXPECT_EQ(Json(std::numeric_limits<double>::quiet_NaN()).dump(), "null");
  EXPECT_EQ(Json("\xff").dump(), "\"\uFFFD\"");
  const std::string steering = "a\u202e\u009b\x7f\u061c\\u202e\u2060\u00e9\u0640";
  EXPECT_EQ(Json(steering).dump(), "\"a\\u202e\\u009b\\u007f\\u061c\\\\u202e\u2060\u00e9\u0640\"");
  EXPECT_TRUE(Json::parse(Json(steering).dump()) == Json(steering));
  const auto nested = [](size_t depth) {
    return Json::parse(std::string(depth, '[') + std::string(depth, ']'));
  };
  EXPECT_EQ(nested(100).size(), 1u);
  EXPECT_TRUE(nested(101).is_null());
}

TEST(JsonTest, NumbersAreEqualByValue) {
  EXPECT_TRUE(Json(1) == Json(1u));
  EXPECT_TRUE(Json(1) == Json(1.0));
  EXPECT_FALSE(Json(-1) == Json(std::numeric_limits<uint64_t>::max()));
  EXPECT_FALSE(Json(1) == Json("1"));
  EXPECT_FALSE(Json(0) == Json(false));
  EXPECT_FALSE(Json(0) == Json());
  EXPECT_TRUE((Json{{"a", 1}, {"b", 2}}) == (Json{{"b", 2}, {"a", 1}}));
  EXPECT_FALSE((Json{{"a", 1}, {"b", 2}}) == (Json{{"b", 2}, {"c", 1}}));
  EXPECT_EQ(Json(2.9).get<int64_t>(), 2);
  EXPECT_EQ(Json(3).get<double>(), 3);
}

TEST(JsonTest, MembersAndElements) {
  Json json;
  json["a"]["b"] = 1;
  json["list"].push_back({1, "x"});
  json["list"].emplace_back() = {{"c", 2}};
  json.update({{"a", 5}, {"z", true}});
  EXPECT_EQ(json.dump(), R"({"a":5,"list":[[1,"x"],{"c":2}],"z":true})");
  Json copy = json;
  copy.erase("list");
  EXPECT_EQ(copy.size(), 2u);
  EXPECT_EQ(json["list"].size(), 2u);
  EXPECT_EQ(json["list"].back()["c"].get<int>(), 2);
  EXPECT_EQ(json.value("none", "x").get<std::string>(), "x");
  std::string names;
  for (const auto& [name, value] : json.items()) names += name;
  EXPECT_EQ(names, "alistz");
  int64_t elements = 0;
  for (const Json& element : json["list"]) elements += static_cast<int64_t>(element.size());
  EXPECT_EQ(elements, 3);
  for (const Json& none : json["z"]) ADD_FAILURE() << none.dump();
}

TEST(JsonTest, AnotherTypeIsThrown) {
  const Json json = {{"a", "text"}};
  EXPECT_THROW((void)json.at("b"), JsonError);
  EXPECT_THROW((void)json.at("a").at("b"), JsonError);
  EXPECT_THROW((void)json.at("a").get<int64_t>(), JsonError);
  EXPECT_THROW((void)json.get<std::string>(), JsonError);
  EXPECT_THROW((void)json[0], JsonError);
  EXPECT_THROW((void)Json(1).items(), JsonError);
  EXPECT_THROW(Json(1).push_back(2), JsonError);
  EXPECT_EQ(json.find("b"), nullptr);
  EXPECT_FALSE(Json(1).contains("a"));
}

}  // namespace
}  // namespace elastor
