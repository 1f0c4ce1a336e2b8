#include "tests/trainer/prepare/real_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "tests/trainer/prepare/scratch.h"

namespace elastor {
namespace {

// One file, or one a split.
PrepareReport PrepareOrDie(const std::string& schema, const std::vector<std::string>& files,
                           std::string* output_dir) {
  PrepareOptions options;
  auto parsed = ReadSchemaFile(schema);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  options.schema = *parsed;
  options.inputs = {DataFolder() + "/" + files[0]};
  if (files.size() > 1) options.validation_inputs = {DataFolder() + "/" + files[1]};
  if (files.size() > 2) options.test_inputs = {DataFolder() + "/" + files[2]};
  options.output_dir = *output_dir = ScratchPath("out");
  const auto report = Prepare(options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  const double megabytes = static_cast<double>(report->text_bytes) * 1e-6;
  std::cout << "text_mb_per_s=" << megabytes / report->seconds
            << "\ntext_mb_per_cpu_s=" << megabytes / report->cpu_seconds << std::endl;
  return *report;
}

TEST(RealDataTest, Criteo) {
  const std::string file = "criteo_kaggle_137k.tsv.gz";
  SKIP_WITHOUT(file);
  std::string path;
  const PrepareReport report = PrepareOrDie("configs/criteo/schema.textproto", {file}, &path);
  EXPECT_EQ(report.rows[0] + report.rows[1] + report.rows[2], 137139);
  EXPECT_EQ(report.rows[0], 109711);
  EXPECT_EQ(report.rows[1], 13714);
  EXPECT_EQ(report.bad_rows, 0);
  const auto dataset = OpenOrDie(path);
  ASSERT_EQ(dataset->info().numeric.size(), 13u);
  ASSERT_EQ(dataset->info().categorical.size(), 26u);
  const Rows train = ReadAll(*dataset, Split::kTrain);
  double positives = 0;
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    const Rows rows = ReadAll(*dataset, split);
    for (const float label : rows.labels) positives += label;
    for (size_t i = 0; i < rows.ids.size(); ++i) {
      ASSERT_GE(rows.ids[i], 0);
      ASSERT_LT(rows.ids[i], dataset->info().categorical[i % 26].ids);
    }
  }
  EXPECT_NEAR(positives / 137139, 0.2568, 5e-5);
  // The training split is standardised, field by field.
  for (int field = 0; field < 13; ++field) {
    double sum = 0, squares = 0, count = 0;
    for (int64_t row = 0; row < train.rows; ++row) {
      const double value = train.numeric[row * 13 + field];
      if (std::isnan(value)) continue;
      sum += value;
      squares += value * value;
      ++count;
    }
    EXPECT_NEAR(sum / count, 0, 1e-5);
    EXPECT_NEAR(squares / count, 1, 1e-5);
  }
}

TEST(RealDataTest, Frappe) {
  const std::string train_file = "frappe.train.reconstructed.libfm.gz";
  SKIP_WITHOUT(train_file);
  std::string path;
  const PrepareReport report =
      PrepareOrDie("configs/frappe/schema.textproto",
                   {train_file, "frappe.validation.libfm.gz", "frappe.test.libfm.gz"}, &path);
  EXPECT_EQ(report.rows[0], 202027);
  EXPECT_EQ(report.rows[1], 57722);
  EXPECT_EQ(report.rows[2], 28860);
  EXPECT_EQ(report.ids, 5382);
  EXPECT_EQ(report.bad_rows, 0);
}

}  // namespace
}  // namespace elastor
