#include "trainer/prepare/guess/lists.h"

#include <gtest/gtest.h>

#include "tests/trainer/prepare/guess/column_of.h"

namespace elastor {
namespace {

ListFinding FindIn(const Texts& values) { return FindList(ColumnOf("a", values), false, ""); }

// One to three of six words in a row, in all ways.
Texts Materials(const std::string& between) {
  const Texts words = {"wood", "iron", "cement", "brick", "glass", "steel"};
  Texts values = words;
  for (const std::string& a : words) {
    for (const std::string& b : words) {
      if (a != b) values.push_back(a + between + b);
      if (a != b) values.push_back("glass" + between + a + between + b);
    }
  }
  return values;
}

TEST(ListsTest, FindsWhatStandsBetweenItems) {
  for (const std::string between : {"|", "^", ";", ",", " ", "/", "#", "$", "@", "*", "\x01"}) {
    const ListFinding found = FindIn(Materials(between));
    EXPECT_EQ(found.kind, ListFinding::kList) << between;
    EXPECT_EQ(found.separator, between[0]);
    EXPECT_EQ(found.longest, 3);
    EXPECT_EQ(found.doubt, "") << between;
  }
}

TEST(ListsTest, HistoriesOfIdsHardlyRepeat) {
  const ListFinding found = FindIn({"N1 N52 N7", "N88 N3", "N4", "N61 N5 N9 N17"});
  EXPECT_EQ(found.kind, ListFinding::kList);
  EXPECT_EQ(found.separator, ' ');
  EXPECT_EQ(found.longest, 4);
  EXPECT_EQ(FindIn({"i7", "i41 i9", "i3", "i12 i40"}).kind, ListFinding::kList);
}

TEST(ListsTest, ANameMakesAFewValuesADoubt) {
  const Texts values = {"ivory saffron", "amber", "teal", "umber", "violet", "cement", "pepper"};
  EXPECT_EQ(FindList(ColumnOf("colors", values), true, "").kind, ListFinding::kMaybe);
  EXPECT_EQ(FindList(ColumnOf("title", values), true, "").kind, ListFinding::kNone);
  EXPECT_EQ(FindList(ColumnOf("colors", values), false, "").kind, ListFinding::kNone);
}

TEST(ListsTest, BlanksAroundItemsAreNotOfThem) {
  for (const std::string between : {" | ", ", ", "| ", " ;"}) {
    const ListFinding found = FindIn(Materials(between));
    EXPECT_EQ(found.kind, ListFinding::kList) << between;
    EXPECT_EQ(found.form, Field::TRIMMED) << between;
    EXPECT_EQ(found.separator, between[between[0] == ' ']);
    EXPECT_EQ(found.longest, 3);
  }
  EXPECT_EQ(FindIn(Materials("|")).form, Field::PLAIN);
}

TEST(ListsTest, BracketsOfPythonAndJson) {
  for (const Texts& values :
       {Texts{"['a', 'b', \"c's\"]", "['b']", "[]"}, Texts{"[1, 2, 3]", "[7]"},
        Texts{"(1, 2, 3)", "(1, 2, 3, 4)"}, Texts{"{'x', 'y', 'z'}", "{'x'}"}}) {
    const ListFinding found = FindIn(values);
    EXPECT_EQ(found.kind, ListFinding::kList) << values[0];
    EXPECT_EQ(found.form, Field::BRACKETS);
    EXPECT_EQ(found.longest, values[0][0] == '(' ? 4 : 3);
    EXPECT_EQ(found.doubt, "");
  }
  const ListFinding words = FindIn({"(none)", "(direct)", "(not set)"});
  EXPECT_EQ(words.kind, ListFinding::kMaybe);
  EXPECT_EQ(words.doubt,
            "may be lists in brackets of one item each, and is taken for single values");
}

TEST(ListsTest, OtherTextsInBracketsAreLeftOut) {
  for (const Texts& values :
       {Texts{"<java><c++>", "<java>", "<css>"}, Texts{"array(['a'], dtype=object)", "array([])"},
        Texts{"frozenset({'a', 'b'})", "frozenset({'b'})"}}) {
    const ListFinding found = FindIn(values);
    EXPECT_EQ(found.kind, ListFinding::kUnreadable) << values[0];
  }
  EXPECT_NE(FindIn({"f(x)", "g(x)", "h(x)"}).kind, ListFinding::kUnreadable);
  Texts values = {"[1, 2, ..., 9]"};
  for (int i = 0; i < 30; ++i) values.push_back("[1, " + std::to_string(i) + "]");
  const ListFinding shortened = FindIn(values);
  EXPECT_EQ(shortened.kind, ListFinding::kList);
  EXPECT_EQ(shortened.doubt, "'[1, 2, ..., 9]' is no list, and makes a bad row");
}

TEST(ListsTest, SignsThatNoSchemaTakesAreDoubted) {
  for (const std::string sign : {"\u3001", "\uff0c", "\u060c ", " \u2022 "}) {
    EXPECT_NE(FindIn(Materials(sign)).doubt, "") << sign;
  }
  for (const std::string sign : {" > ", " - ", " and "}) {
    const std::string item = sign.substr(1, sign.size() - 2);
    EXPECT_EQ(FindIn(Materials(sign)).doubt,
              "taken for lists; '" + item +
                  "' is the second item of nearly all, and may stand between items");
  }
  Texts values = Materials("|");
  values.emplace_back("wood|None");
  EXPECT_EQ(FindIn(values).doubt, "the item 'None' is taken for a value, and may mean missing");
}

TEST(ListsTest, NoSchemaReadsPartsOfItemsOrNumbersWithFractions) {
  for (const Texts& values :
       {Texts{"a:1|b:2|c:3", "b:2|a:1", "c:3", "a:1"}, Texts{"0.5|1.25|3", "0.5|2.5|1.25", "2.5"},
        Texts{"{'a': 1}", "{'b': 2}"}, Texts{"[[1, 2], [3]]", "[[4]]"},
        Texts{"(48.1, 11.6)", "(52.5, 13.4)"}}) {
    const ListFinding found = FindIn(values);
    EXPECT_EQ(found.kind, ListFinding::kUnreadable) << values[0];
    EXPECT_NE(found.doubt, "") << values[0];
  }
}

// Each value of its own, as places are.
TEST(ListsTest, NoSchemaReadsCoordinates) {
  for (const std::string between : {",", ";", " "}) {
    Texts places;
    for (int i = 0; i < 30; ++i) {
      places.push_back("4" + std::to_string(i) + ".25" + between + "-7." + std::to_string(90 - i));
    }
    const ListFinding found = FindIn(places);
    EXPECT_EQ(found.kind, ListFinding::kUnreadable) << between;
    EXPECT_NE(found.doubt.find("several numbers"), found.doubt.npos) << found.doubt;
  }
}

TEST(ListsTest, NamesAndPhrasesAreNoLists) {
  const Texts cities = {"New York", "Los Angeles", "San Francisco", "Paris", "Rio de Janeiro"};
  const Texts statuses = {"Never-married", "Married-civ-spouse", "Divorced", "HS-grad"};
  const Texts people = {"Braund, Mr. Owen", "Heikkinen, Miss. Laina", "Allen, Mr. William"};
  const Texts paths = {"/a/b", "/a/c", "/b/c", "/c/a", "/b", "/a"};
  for (const Texts& values : {cities, statuses, people, paths, Texts{"1", "2"}, Texts{"a|b"}}) {
    EXPECT_EQ(FindIn(values).kind, ListFinding::kNone) << values[0];
  }
}

// Colours with shades have parts that recur, as lists have; all of two parts may be names.
TEST(ListsTest, WhatMayBeEitherIsDoubted) {
  const ListFinding shades =
      FindIn({"red", "blue", "dark red", "light red", "dark blue", "light blue"});
  EXPECT_EQ(shades.kind, ListFinding::kMaybe);
  EXPECT_NE(shades.doubt, "");
  const ListFinding pairs = FindIn({"a|x", "a|y", "b|x", "b|y", "c|x", "c|y"});
  EXPECT_EQ(pairs.kind, ListFinding::kList);
  EXPECT_NE(pairs.doubt, "");
}

TEST(ListsTest, ANameOrTheDelimiterDecides) {
  const Texts few = {"lamp", "desk/chair", "sofa", "bed/lamp"};
  EXPECT_EQ(FindList(ColumnOf("tags", few), true, "").kind, ListFinding::kList);
  EXPECT_EQ(FindList(ColumnOf("tags", few), false, "").kind, ListFinding::kMaybe);
  EXPECT_EQ(FindList(ColumnOf("a", Materials("|")), false, "|").kind, ListFinding::kNone);
}

}  // namespace
}  // namespace elastor
