// Raw logs in the layouts of public data sets.

#include "trainer/prepare/synthetic/planted_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "tests/trainer/prepare/scratch.h"

namespace elastor {
namespace {

Synthetic PlanOf(const std::string& log, int rows) {
  const auto schema = ParseSchema(
      StrCat("layout: SYNTHETIC synthetic { rows: ", rows,
             " seed: 3 categorical_fields: 1 ids_per_field: 60 users: 30 history_length: 5 "
             "interests: 6 teacher: HISTORY signal: 3 base_rate: 0.4 log: ",
             log, " }"),
      "s");
  EXPECT_TRUE(schema.ok()) << schema.status().message();
  return schema->synthetic();
}

std::vector<std::string> LinesOf(const std::string& path) {
  std::istringstream text(FileBytes(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

TEST(PlantedLogTest, FilesHaveTheLayoutsOfTheirDataSets) {
  struct Case {
    const char* log;
    const char* file;
    size_t lines;
    const char* first;
  };
  for (const Case& c :
       std::vector<Case>{{"MOVIELENS", "ratings.csv", 1001, "userId,movieId,rating,timestamp"},
                         {"MOVIELENS", "movies.csv", 61, "movieId,title,genres"},
                         {"MOVIELENS_1M", "users.dat", 30, ""},
                         {"MOVIELENS_1M", "movies.dat", 60, ""},
                         {"MOVIELENS_1M", "ratings.dat", 1000, ""},
                         {"TAOBAO", "UserBehavior.csv", 1000, ""},
                         {"KUAIVIDEO", "train_interaction.txt", 1000, ""}}) {
    const std::string folder = ScratchPath("log");
    ASSERT_TRUE(WritePlantedLog(PlanOf(c.log, 1000), folder).ok());
    const std::vector<std::string> lines = LinesOf(folder + "/" + c.file);
    ASSERT_EQ(lines.size(), c.lines) << c.file;
    EXPECT_TRUE(lines[0].starts_with(c.first)) << lines[0];
    EXPECT_FALSE(WritePlantedLog(PlanOf(c.log, 1000), folder).ok());
  }
}

// Of TAOBAO: no user takes an item twice, and 0.4 + 0.6 · w of the items have an interest that
// makes the share w of the user's last five.
TEST(PlantedLogTest, ItemsFollowTheHistory) {
  const std::string folder = ScratchPath("log");
  Synthetic plan = PlanOf("TAOBAO", 900);
  plan.set_ids_per_field(60000);  // items that are left out move no share
  ASSERT_TRUE(WritePlantedLog(plan, folder).ok());
  std::map<int, std::vector<int>> items;
  double found = 0, expected = 0, variance = 0;
  for (const std::string& line : LinesOf(folder + "/UserBehavior.csv")) {
    int user, item, category;
    ASSERT_EQ(std::sscanf(line.c_str(), "%d,%d,%d,", &user, &item, &category), 3);
    EXPECT_EQ(category, (item - 1) % 6 + 1);
    std::vector<int>& before = items[user];
    EXPECT_EQ(std::ranges::count(before, item), 0);
    const size_t kept = std::min<size_t>(before.size(), 5);
    int same = 0;
    for (size_t i = before.size() - kept; i < before.size(); ++i) {
      same += (before[i] - item) % 6 == 0;
    }
    std::vector<double> shares(6);
    for (size_t i = before.size() - kept; i < before.size(); ++i) {
      shares[(before[i] - 1) % 6] += 1.0 / static_cast<double>(kept);
    }
    if (kept > 0) {
      // Share of the interest of the item, and its mean and variance by the plan.
      double mean = 0, square = 0;
      for (const double share : shares) {
        const double probability = 0.4 / 6 + 0.6 * share;
        mean += probability * share;
        square += probability * share * share;
      }
      found += same / static_cast<double>(kept);
      expected += mean;
      variance += square - mean * mean;
    }
    before.push_back(item);
  }
  EXPECT_NEAR(found, expected, 4 * std::sqrt(variance));
  EXPECT_GT(found, 1.3 * 870 / 6);
}

// The schemas of configs/ read the logs that the plans beside them make.
TEST(PlantedLogTest, CommittedSchemasReadThem) {
  struct Case {
    const char* plan;
    const char* schema;
    const char* log;
    int64_t rows_of_each;
  };
  for (const Case& c : std::vector<Case>{
           {"movielens", "movielens/schema", "ratings.csv", 1},
           {"movielens", "movielens/implicit_schema", "ratings.csv", 5},
           {"movielens", "movielens/events_schema", "ratings.csv", 1},
           {"movielens_1m", "movielens/ml_1m_schema", "ratings.dat", 1},
           {"taobao", "taobao/user_behavior_schema", "UserBehavior.csv", 5},
           {"kuaivideo", "kuaivideo/interactions_schema", "train_interaction.txt", 1}}) {
    auto plan = ReadSchemaFile(StrCat("configs/planted/", c.plan, "_log_schema.textproto"));
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    plan->mutable_synthetic()->set_rows(2000);
    plan->mutable_synthetic()->set_users(40);
    const std::string folder = ScratchPath("log");
    ASSERT_TRUE(WritePlantedLog(plan->synthetic(), folder).ok());
    auto schema = ReadSchemaFile(StrCat("configs/", c.schema, ".textproto"));
    ASSERT_TRUE(schema.ok()) << schema.status().message();
    for (Lookup& lookup : *schema->mutable_lookup()) {
      lookup.set_file(folder + "/" + lookup.file());
    }
    PrepareOptions options;
    options.schema = *schema;
    options.inputs = {folder + "/" + c.log};
    options.output_dir = ScratchPath("out");
    const auto report = Prepare(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->bad_rows, 0) << c.schema;
    EXPECT_EQ(report->rows[0] + report->rows[1] + report->rows[2], 2000 * c.rows_of_each);
    EXPECT_NEAR(static_cast<double>(report->rows[2]), 200.0 * c.rows_of_each, 50) << c.schema;
    for (const auto& [name, missing] : report->missing_keys) EXPECT_EQ(missing, 0) << name;
  }
}

TEST(PlantedLogTest, BestAucIsThatOfTheScores) {
  // With no signal, scores are equal.
  Synthetic plan = PlanOf("KUAIVIDEO", 4000);
  plan.set_signal(0);
  const auto none = WritePlantedLog(plan, ScratchPath("none"));
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->best_auc, 0.5);
  const auto some = WritePlantedLog(PlanOf("KUAIVIDEO", 4000), ScratchPath("some"));
  EXPECT_GT(some->best_auc, 0.75);
  EXPECT_LT(some->best_auc, 1);
}

}  // namespace
}  // namespace elastor
