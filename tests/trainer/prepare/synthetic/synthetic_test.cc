#include "trainer/prepare/synthetic/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/trainer/prepare/scratch.h"
#include "trainer/prepare/synthetic/history_teacher.h"
#include "trainer/prepare/synthetic/teacher.h"

namespace elastor {
namespace {

std::string SchemaOf(const std::string& teacher) {
  return "name: 'planted' layout: SYNTHETIC rows_per_block: 1000 "
         "split { train: 0.5 validation: 0.4 test: 0.1 } "
         "synthetic { rows: 20000 seed: 3 numeric_fields: 3 categorical_fields: 6 "
         "multi_hot_fields: 1 ids_per_field: 500 missing_share: 0.1 base_rate: 0.2 " +
         teacher + " }";
}

double Correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double count = static_cast<double>(a.size());
  double sum_a = 0, sum_b = 0, aa = 0, bb = 0, ab = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum_a += a[i];
    sum_b += b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
    ab += a[i] * b[i];
  }
  return (ab - sum_a * sum_b / count) /
         std::sqrt((aa - sum_a * sum_a / count) * (bb - sum_b * sum_b / count));
}

TEST(SyntheticTest, ExactAuc) {
  EXPECT_EQ(ExactAuc({1, 2, 3, 4}, {0, 0, 1, 1}), 1);
  EXPECT_EQ(ExactAuc({1, 2, 3, 4}, {0, 1, 0, 1}), 0.75);
  EXPECT_EQ(ExactAuc({1, 1, 1, 1}, {0, 1, 0, 1}), 0.5);
  EXPECT_EQ(ExactAuc({1, 2, 2, 0}, {0, 1, 0, 0}), 5.0 / 6);
  EXPECT_EQ(ExactAuc({1, 2}, {1, 1}), -1);
}

TEST(SyntheticTest, BestAucIsThatOfTheTeacher) {
  for (const char* teacher : {"teacher: LOW_RANK", "teacher: COORDINATE_MIXING"}) {
    const PrepareOptions options = OptionsOf(SchemaOf(teacher), {}, "out");
    const auto report = Prepare(options);
    ASSERT_TRUE(report.ok()) << report.status().message();
    const auto dataset = OpenOrDie(options.output_dir);
    const Rows validation = ReadAll(*dataset, Split::kValidation);
    ASSERT_EQ(validation.rows, 8000);
    const Teacher planted(options.schema.synthetic());
    std::vector<double> logits;
    Rows again;
    for (int64_t row = 10000; row < 18000; ++row) {
      logits.push_back(planted.AppendRow(row, &again)[0]);
    }
    EXPECT_EQ(again.labels, validation.labels);
    EXPECT_EQ(again.ids, validation.ids);
    EXPECT_EQ(again.offsets, validation.offsets);
    EXPECT_EQ(dataset->info().best_auc, ExactAuc(logits, validation.labels));
    EXPECT_GT(dataset->info().best_auc, 0.7);
    EXPECT_LT(dataset->info().best_auc, 0.95);
    double positives = 0;
    for (const float label : validation.labels) positives += label;
    EXPECT_NEAR(positives / 8000, 0.2, 0.02);
  }
}

// Ids are born one by one and live for a quarter of the rows. What a key says does not change.
TEST(SyntheticTest, IdsAreBornAndDie) {
  const PrepareOptions options = OptionsOf(SchemaOf("drift: 4 zipf_exponent: 0.3"), {}, "out");
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const auto dataset = OpenOrDie(options.output_dir);
  EXPECT_EQ(dataset->version(), 4);
  EXPECT_TRUE(dataset->info().has_times);
  for (const auto& field : dataset->info().categorical) EXPECT_TRUE(field.keyed) << field.name;
  constexpr int64_t kRows = 20000, kFields = 7, kLife = kRows / 4, kAlive = 500;
  struct Life {
    int64_t first, last;
  };
  std::map<int64_t, Life> lives;  // of the first field
  std::map<int64_t, int64_t> in_window;
  const Teacher planted(options.schema.synthetic());
  Rows all;
  std::vector<double> logits;
  for (int64_t row = 0; row < kRows; ++row) {
    logits.push_back(planted.AppendRow(row, &all)[0]);
    const int64_t key = all.ids[all.offsets[row * kFields]];
    EXPECT_NE(key, 0);
    lives.try_emplace(key, Life{row, row}).first->second.last = row;
    if (row >= 10000 && row < 10000 + kLife / 10) ++in_window[key];
  }
  int64_t of_the_end = 0;
  for (const auto& [key, life] : lives) {
    EXPECT_LE(life.last - life.first, kLife);
    of_the_end += life.last >= kRows - kLife / 10;
  }
  // 500 live at the beginning and 2,000 are born; a tenth of a life renews a tenth of them.
  EXPECT_GT(std::ssize(lives), 2300);
  EXPECT_LE(std::ssize(lives), 2500);
  EXPECT_LE(std::ssize(in_window), kAlive * 11 / 10 + 20);
  EXPECT_GT(of_the_end, 200);
  const Rows validation = ReadAll(*dataset, Split::kValidation);
  EXPECT_TRUE(std::equal(validation.ids.begin(), validation.ids.end(),
                         all.ids.begin() + all.offsets[10000 * kFields]));
  EXPECT_EQ(validation.times[0], 1'600'010'000);
  EXPECT_EQ(dataset->info().best_auc,
            ExactAuc({logits.begin() + 10000, logits.begin() + 18000}, validation.labels));
  EXPECT_GT(dataset->info().best_auc, 0.7);
}

// An exponent of 0 is no default: all ids are alike, and so their mean is the middle.
TEST(SyntheticTest, AnExponentOfZeroMakesIdsAlike) {
  const PrepareOptions options = OptionsOf(SchemaOf("zipf_exponent: 0 signal: 0"), {}, "alike");
  ASSERT_TRUE(Prepare(options).ok());
  const Rows rows = ReadAll(*OpenOrDie(options.output_dir), Split::kTrain);
  double sum = 0;
  for (const int64_t id : rows.ids) sum += static_cast<double>(id);
  // 500 ids: a mean of 249.5 and a deviation of 144, of some 80,000 ids.
  EXPECT_NEAR(sum / static_cast<double>(rows.ids.size()), 249.5, 5 * 144 / std::sqrt(60000.0));
}

// The first of three labels is that of data with one; the others follow it as far as they should.
TEST(SyntheticTest, SeveralLabels) {
  const std::string labels = "labels: 3 label_correlation: 0.6 after_first: true";
  const PrepareOptions one = OptionsOf(SchemaOf(""), {}, "one");
  const PrepareOptions several = OptionsOf(SchemaOf(labels), {}, "several");
  ASSERT_TRUE(Prepare(one).ok());
  ASSERT_TRUE(Prepare(several).ok());
  const auto dataset = OpenOrDie(several.output_dir);
  ASSERT_EQ(dataset->info().labels.size(), 3u);
  EXPECT_EQ(dataset->info().labels[2].name, "L3");
  const Rows alone = ReadAll(*OpenOrDie(one.output_dir), Split::kValidation);
  const Rows rows = ReadAll(*dataset, Split::kValidation);
  EXPECT_EQ(rows.ids, alone.ids);
  const Teacher planted(several.schema.synthetic());
  std::vector<double> first, third, scores;
  std::vector<float> known;
  Rows again;
  for (int64_t i = 0; i < rows.rows; ++i) {
    const std::vector<double> logits = planted.AppendRow(10000 + i, &again);
    first.push_back(logits[0]);
    third.push_back(logits[2]);
    ASSERT_EQ(rows.labels[3 * i], alone.labels[i]);
    for (const int64_t label : {1, 2}) {
      ASSERT_EQ(std::isnan(rows.labels[3 * i + label]), alone.labels[i] == 0) << i;
    }
    if (alone.labels[i] == 0) continue;
    scores.push_back(logits[2]);
    known.push_back(rows.labels[3 * i + 2]);
  }
  EXPECT_EQ(dataset->info().labels[2].best_auc, ExactAuc(scores, known));
  EXPECT_NEAR(Correlation(first, third), 0.6, 0.05);
}

TEST(SyntheticTest, ExactGauc) {
  // Groups 7 and 8 have both classes, 9 has one.
  EXPECT_EQ(ExactGauc({1, 2, 3, 4, 5, 6, 0}, {0, 1, 1, 0, 1, 1, 0}, {7, 7, 8, 8, 8, 9, 7}),
            (3 * 1.0 + 3 * 0.5) / 6);
  EXPECT_EQ(ExactGauc({1, 2}, {0, 1}, {7, 8}), -1);
}

TEST(SyntheticTest, HistoriesAreWhatUsersSawBefore) {
  const PrepareOptions options = OptionsOf(
      "name: 'planted' layout: SYNTHETIC split { train: 0.5 validation: 0.5 } "
      "synthetic { rows: 8000 seed: 3 categorical_fields: 2 ids_per_field: 60 teacher: HISTORY "
      "users: 50 history_length: 6 interests: 20 signal: 3 }",
      {}, "out");
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const auto dataset = OpenOrDie(options.output_dir);
  EXPECT_EQ(dataset->info().categorical[2].keeps, "last 6");
  EXPECT_EQ(dataset->info().categorical[2].shares, 0);
  const Rows rows = ReadAll(*dataset, Split::kTrain);
  std::map<int64_t, int64_t> lengths;
  int64_t with_match = 0, slid = 0, compared = 0;
  for (int64_t row = 0; row < rows.rows; ++row) {
    const auto history = [&](int64_t r) {
      return std::vector<int64_t>(rows.ids.begin() + rows.offsets[3 * r + 2],
                                  rows.ids.begin() + rows.offsets[3 * r + 3]);
    };
    const std::vector<int64_t> now = history(row);
    ++lengths[static_cast<int64_t>(now.size())];
    with_match += std::any_of(now.begin(), now.end(), [&](int64_t id) {
      return (id - rows.ids[rows.offsets[3 * row]]) % 20 == 0;
    });
    if (row + 50 >= rows.rows || now.empty()) continue;
    EXPECT_EQ(rows.groups[row], rows.groups[row + 50]);
    // A visit later the oldest is gone.
    const std::vector<int64_t> next = history(row + 50);
    ASSERT_EQ(next.size(), now.size());
    ++compared;
    slid += std::equal(now.begin() + 1, now.end(), next.begin());
  }
  EXPECT_EQ(lengths.size(), 7u);
  EXPECT_GT(with_match, rows.rows / 2 * 8 / 10);
  EXPECT_EQ(slid, compared);
  const Rows validation = ReadAll(*dataset, Split::kValidation);
  const HistoryTeacher planted(options.schema.synthetic());
  std::vector<double> logits;
  Rows again;
  for (int64_t row = 4000; row < 8000; ++row) logits.push_back(planted.AppendRow(row, &again));
  EXPECT_EQ(again.ids, validation.ids);
  EXPECT_EQ(dataset->info().best_gauc, ExactGauc(logits, validation.labels, validation.groups));
  EXPECT_GT(dataset->info().best_gauc, 0.6);
}

TEST(SyntheticTest, IdsAreHeavyTailedAndNumbersStandardNormal) {
  const PrepareOptions options = OptionsOf(SchemaOf(""), {}, "out");
  ASSERT_TRUE(Prepare(options).ok());
  const auto dataset = OpenOrDie(options.output_dir);
  const Rows rows = ReadAll(*dataset, Split::kTrain);
  std::vector<int64_t> counts(500, 0);
  for (int64_t row = 0; row < rows.rows; ++row) ++counts.at(rows.ids[rows.offsets[row * 7]]);
  // P(0) = (1 - 2^-0.05) / (1 - 501^-0.05).
  EXPECT_NEAR(static_cast<double>(counts[0]) / 10000,
              (1 - std::pow(2, -0.05)) / (1 - std::pow(501, -0.05)), 0.015);
  EXPECT_GT(std::count_if(counts.begin(), counts.end(), [](int64_t n) { return n > 0; }), 400);
  double sum = 0, squares = 0;
  int64_t missing = 0, longest = 0;
  for (const float value : rows.numeric) {
    if (std::isnan(value)) {
      ++missing;
      continue;
    }
    sum += value;
    squares += double{value} * value;
  }
  const double present = static_cast<double>(rows.numeric.size() - missing);
  EXPECT_NEAR(sum / present, 0, 0.03);
  EXPECT_NEAR(squares / present, 1, 0.03);
  EXPECT_NEAR(static_cast<double>(missing) / 30000, 0.1, 0.01);
  for (int64_t row = 0; row < rows.rows; ++row) {
    longest = std::max(longest, rows.offsets[row * 7 + 7] - rows.offsets[row * 7 + 6]);
  }
  EXPECT_EQ(longest, 4);
}

TEST(SyntheticTest, ThreadsDoNotChangeTheBytes) {
  PrepareOptions options = OptionsOf(SchemaOf(""), {}, "out");
  ASSERT_TRUE(Prepare(options).ok());
  const std::string first = options.output_dir;
  options.threads = 3;
  options.output_dir = ScratchPath("out3");
  ASSERT_TRUE(Prepare(options).ok());
  for (const char* file : {"train.rows", "validation.rows", "test.rows", "meta.json"}) {
    EXPECT_EQ(FileBytes(first + "/" + file), FileBytes(options.output_dir + "/" + file)) << file;
  }
}

}  // namespace
}  // namespace elastor
