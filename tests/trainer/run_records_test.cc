#include "trainer/run_records.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "trainer/progress.h"

namespace elastor {
namespace {

using Json = nlohmann::json;

TEST(RunRecordsTest, EvalWithAndWithoutAuc) {
  EvalRecord record = {.split = "validation", .step = 7, .metrics = {}};
  record.metrics.rows = 100;
  record.metrics.auc = 0.75;
  record.metrics.logloss = 0.1;
  record.metrics.calibration = 1.5;
  EXPECT_EQ(ToJson(record),
            "{\"event\":\"eval\",\"split\":\"validation\",\"step\":7,\"rows\":100,\"auc\":0.75,"
            "\"logloss\":0.1,\"normalized_entropy\":null,\"calibration\":1.5}");
  record.metrics.auc.reset();
  EXPECT_TRUE(Json::parse(ToJson(record))["auc"].is_null());
}

TEST(RunRecordsTest, NumbersReadBackExactly) {
  TrainRecord record;
  record.loss = 0x1.5555555555555p-2;
  record.l2 = std::numeric_limits<double>::quiet_NaN();
  const Json json = Json::parse(ToJson(record));
  EXPECT_EQ(json["loss"].get<double>(), record.loss);
  EXPECT_TRUE(json["l2"].is_null());
}

TEST(RunRecordsTest, Spectrum) {
  EXPECT_EQ(ToJson(SpectrumRecord{3, "block0.mixing", 1.5, 2.5}),
            "{\"event\":\"spectrum\",\"step\":3,\"stage\":\"block0.mixing\","
            "\"stable_rank_mean\":1.5,\"entropy_rank_mean\":2.5}");
}

Summary MakeSummary() {
  Summary summary;
  summary.name = "tiny";
  summary.split = "validation";
  summary.auc = 0.7512;
  summary.best_auc = 0.8;
  summary.logloss = 0.51;
  summary.steps = 100;
  summary.epochs = 1;
  summary.samples_per_s = 1234.4;
  summary.ranks = 4;
  summary.virtual_shards = 16;
  summary.dense_parameters = 10;
  summary.embedding_parameters = int64_t{1} << 40;
  summary.state_digest = "0123";
  summary.numerics = "x86-64-v3";
  summary.wall_s = 2;
  summary.spectrum = {{100, "tokens", 1.25, 2.5}, {100, "block1.ffn", 10, 11}};
  summary.communication = {{"row_exchange", 3, 300, 0.5}};
  return summary;
}

TEST(RunRecordsTest, SummaryAsJson) {
  const Json json = Json::parse(ToJson(MakeSummary()));
  EXPECT_EQ(json["split"], "validation");
  EXPECT_EQ(json["auc"], 0.7512);
  EXPECT_EQ(json["logloss"], 0.51);
  EXPECT_EQ(json["steps"], 100);
  EXPECT_EQ(json["epochs"], 1);
  EXPECT_EQ(json["samples_per_s"], 1234.4);
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["virtual_shards"], 16);
  EXPECT_EQ(json["dense_parameters"], 10);
  EXPECT_EQ(json["embedding_parameters"], int64_t{1} << 40);
  EXPECT_EQ(json["state_digest"], "0123");
  EXPECT_EQ(json["numerics"], "x86-64-v3");
  EXPECT_EQ(json["wall_s"], 2);
  ASSERT_EQ(json["spectrum"].size(), 2u);
  EXPECT_EQ(json["spectrum"][1]["entropy_rank_mean"], 11);
  ASSERT_EQ(json["communication"].size(), 1u);
  EXPECT_EQ(json["communication"][0]["phase"], "row_exchange");
  EXPECT_EQ(json["communication"][0]["bytes_sent"], 300);
  EXPECT_TRUE(Json::parse(ToJson(Summary()))["auc"].is_null());
}

TEST(RunRecordsTest, SummaryForPeople) {
  EXPECT_EQ(ToText(MakeSummary()),
            "tiny: 100 steps on 4 ranks in 2.0 s, 1234 samples/s\n"
            "parameters: 10 dense, 1099511627776 in embeddings\n"
            "validation AUC: 0.7512 (best possible: 0.8000)\n"
            "validation logloss: 0.5100\n"
            "effective rank (mean over samples):\n"
            "  tokens      stable   1.25  entropy   2.50\n"
            "  block1.ffn  stable  10.00  entropy  11.00\n"
            "state digest: 0123\n");
}

TEST(ProgressTest, BarAndLine) {
  const TrainRecord record = {.step = 50, .epoch = 1, .loss = 0.45123, .samples_per_s = 1234};
  const ProgressState state = {.total_steps = 200, .steps_done = 50, .elapsed_seconds = 25};
  EXPECT_EQ(ProgressBar(record, state),
            "[=======>                      ]  25%  loss 0.4512  1234 samples/s  1 min 15 s left");
  EXPECT_EQ(ProgressLine(record, state),
            "step 50/200  epoch 1  loss 0.4512  1234 samples/s  1 min 15 s left");
}

TEST(ProgressTest, EndAndUnknownLength) {
  const TrainRecord record = {.step = 200, .epoch = 2, .loss = 0.5, .samples_per_s = 10};
  EXPECT_EQ(ProgressBar(record, {200, 200, 3600}),
            "[==============================] 100%  loss 0.5000  10 samples/s  0 s left");
  EXPECT_EQ(ProgressBar(record, {0, 200, 3600}), "step 200  loss 0.5000  10 samples/s");
  EXPECT_EQ(ProgressLine({.step = 1, .epoch = 1}, {101, 1, 100}),
            "step 1/101  epoch 1  loss 0.0000  0 samples/s  2 h 46 min left");
}

}  // namespace
}  // namespace elastor
