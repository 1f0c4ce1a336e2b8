#include <limits>
#include <string>

#include "core/base/json.h"
#include "gtest/gtest.h"
#include "trainer/records/metrics_csv.h"
#include "trainer/records/record_json.h"
#include "trainer/records/record_text.h"

namespace elastor {
namespace {

TEST(RunRecordsTest, EvalWithAndWithoutAuc) {
  EvalRecord record = {.split = "validation", .step = 7, .metrics = {}};
  record.metrics.rows = 100;
  record.metrics.positives = 20;
  record.metrics.auc = 0.75;
  record.metrics.logloss = 0.1;
  record.metrics.calibration = 1.5;
  EXPECT_EQ(ToJson(record),
            "{\"event\":\"eval\",\"split\":\"validation\",\"step\":7,\"scheduled\":false,\"rows\":"
            "100,\"positives\":20,"
            "\"auc\":0.75,\"logloss\":0.1,\"normalized_entropy\":null,\"calibration\":1.5}");
  record.scheduled = true;
  record.metrics.gauc = 0.5;
  record.metrics.gauc_groups = 3;
  const Json grouped = Json::parse(ToJson(record));
  EXPECT_EQ(grouped["scheduled"], true);
  EXPECT_EQ(grouped["gauc"], 0.5);
  EXPECT_EQ(grouped["gauc_groups"], 3);
  record.metrics.auc.reset();
  EXPECT_TRUE(Json::parse(ToJson(record))["auc"].is_null());
}

TEST(RunRecordsTest, EvalWithSlices) {
  EvalRecord record;
  SliceValues slice;
  slice.field = "site";
  slice.id = 7;
  slice.rows = 10;
  slice.positives = 2;
  slice.logloss = 0.5;
  slice.auc = 0.75;
  slice.calibration = 1;
  record.metrics.slices.push_back(slice);
  slice.value = "news \"a\"";
  record.metrics.slices.push_back(slice);
  const Json json = Json::parse(ToJson(record))["slices"];
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0], Json::parse("{\"field\":\"site\",\"id\":7,\"rows\":10,\"positives\":2,"
                                 "\"auc\":0.75,\"logloss\":0.5,\"normalized_entropy\":null,"
                                 "\"calibration\":1.0}"));
  EXPECT_EQ(json[1]["value"], "news \"a\"");
  record.metrics.slices[0].value = "no\xffutf";
  EXPECT_EQ(Json::parse(ToJson(record))["slices"][0]["value"], "no\uFFFDutf");
}

// What is monitored stands where it does of one label.
TEST(RunRecordsTest, SeveralLabels) {
  EvalRecord record = {.split = "validation", .step = 7};
  MetricValues click, buy;
  click.label = "click";
  click.rows = 100;
  click.auc = 0.75;
  buy.label = "buy";
  buy.rows = 9;
  buy.logloss = std::numeric_limits<double>::quiet_NaN();
  record.metrics = click;
  record.labels = {click, buy};
  const Json json = Json::parse(ToJson(record));
  EXPECT_EQ(json["label"], "click");
  EXPECT_EQ(json["auc"], 0.75);
  ASSERT_EQ(json["labels"].size(), 2u);
  EXPECT_EQ(json["labels"][0]["auc"], 0.75);
  EXPECT_EQ(json["labels"][1]["label"], "buy");
  EXPECT_EQ(json["labels"][1]["rows"], 9);
  EXPECT_TRUE(json["labels"][1]["logloss"].is_null());

  Summary summary;
  summary.split = "test";
  summary.metrics.auc = 0.75;
  summary.metrics.label = "click";
  click.logloss = 0.5;
  buy.auc = 0.625;
  buy.logloss = 0.25;
  summary.labels = {{click, 0.8}, {buy, {}}};
  summary.monitor = "auc";
  summary.best_step = 40;
  summary.best_metric = 0.75;
  const std::string text = ToText(summary);
  EXPECT_NE(text.find("test click AUC: 0.7500 (best possible: 0.8000)\n"
                      "test click logloss: 0.5000\n"
                      "test buy AUC: 0.6250\n"
                      "test buy logloss: 0.2500\n"
                      "best validation click auc: 0.7500 at step 40\n"),
            std::string::npos)
      << text;
  const Json of_summary = Json::parse(ToJson(summary));
  EXPECT_EQ(of_summary["label"], "click");
  EXPECT_EQ(of_summary["labels"][0]["best_auc"], 0.8);
  EXPECT_TRUE(of_summary["labels"][1]["best_auc"].is_null());
  EXPECT_FALSE(Json::parse(ToJson(Summary())).contains("labels"));
}

TEST(RunRecordsTest, NumbersReadBackExactly) {
  TrainRecord record;
  record.loss = 0x1.5555555555555p-2;
  record.l2 = std::numeric_limits<double>::quiet_NaN();
  const Json json = Json::parse(ToJson(record));
  EXPECT_EQ(json["loss"].get<double>(), record.loss);
  EXPECT_TRUE(json["l2"].is_null());
}

TEST(RunRecordsTest, Train) {
  const TrainRecord record = {.step = 3,
                              .epoch = 1,
                              .loss = 0.5,
                              .l2 = 0.25,
                              .learning_rate = 0.001,
                              .gradient_norm = 2,
                              .samples_per_s = 10,
                              .phase_seconds = {{"compute", 1.5}}};
  EXPECT_EQ(ToJson(record),
            "{\"event\":\"train\",\"step\":3,\"epoch\":1,\"loss\":0.5,\"l2\":0.25,"
            "\"learning_rate\":0.001,\"gradient_norm\":2.0,\"samples_per_s\":10.0,"
            "\"phase_s\":{\"compute\":1.5}}");
}

TEST(RunRecordsTest, Spectrum) {
  // The first bin and the last.
  const auto halves = [](int64_t low, int64_t high) {
    std::vector<int64_t> histogram(kRankBins);
    histogram.front() = low;
    histogram.back() = high;
    return histogram;
  };
  const std::string zeros = ",0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,";
  SpectrumRecord record = {.step = 3,
                           .split = "test",
                           .stage = "block0.mixing",
                           .samples = 4,
                           .max_rank = 3,
                           .stable = {.mean = 1.5, .stddev = 0.5, .histogram = halves(1, 3)},
                           .entropy = {.mean = 2.5, .stddev = 0.25, .histogram = halves(0, 4)},
                           .profile = {1, 0.5, 0.25}};
  EXPECT_EQ(ToJson(record),
            "{\"event\":\"spectrum\",\"step\":3,\"split\":\"test\",\"stage\":\"block0.mixing\","
            "\"stable_rank_mean\":1.5,\"entropy_rank_mean\":2.5,\"samples\":4,\"max_rank\":3,"
            "\"stable_rank_stddev\":0.5,\"entropy_rank_stddev\":0.25,"
            "\"stable_rank_histogram\":[1" +
                zeros + "3],\"entropy_rank_histogram\":[0" + zeros +
                "4],"
                "\"profile\":[1.0,0.5,0.25]}");
  record.split = "train";
  EXPECT_TRUE(ToJson(record).starts_with("{\"event\":\"training_spectrum\",\"step\":3,"));
}

// Of training rows under an event and as a type of their own, with the split that they are of.
TEST(RunRecordsTest, EvaluationsOfTrainingRows) {
  const std::string line = ToJson(EvalRecord{.split = "train", .step = 3, .metrics = {}});
  EXPECT_TRUE(line.starts_with(R"({"event":"training_eval","split":"train","step":3,)")) << line;
  const StatusOr<RunRecord> record = ParseRecord(line);
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_EQ(std::get_if<EvalRecord>(&record->values), nullptr);
  const auto* training = std::get_if<TrainingEvalRecord>(&record->values);
  ASSERT_NE(training, nullptr);
  EXPECT_EQ(training->split, "train");
  EXPECT_EQ(training->step, 3);
  EXPECT_TRUE(MetricsCsvLines(line).starts_with("training_eval,3,,train,"));
}

TEST(RunRecordsTest, Scoring) {
  const ScoringRecord record = {
      .step = 3, .matrices = 256, .max_rank = 16, .stable = 1.5, .entropy = 2.5};
  EXPECT_EQ(ToJson(record),
            "{\"event\":\"scoring\",\"step\":3,\"matrices\":256,\"max_rank\":16,"
            "\"stable_rank_mean\":1.5,\"entropy_rank_mean\":2.5}");
}

TEST(RunRecordsTest, Checkpoint) {
  const CheckpointRecord record = {.step = 20,
                                   .digest = "0f",
                                   .path = "checkpoints/20",
                                   .blocked_seconds = 0.5,
                                   .write_seconds = 2};
  EXPECT_EQ(ToJson(record),
            "{\"event\":\"checkpoint\",\"step\":20,\"digest\":\"0f\",\"path\":\"checkpoints/20\","
            "\"blocked_s\":0.5,\"write_s\":2.0}");
  const CheckpointRecord delta = {.base = "step-0000000010"};
  EXPECT_EQ(Json::parse(ToJson(delta))["base"], delta.base);
}

Summary MakeSummary() {
  Summary summary;
  summary.name = "tiny";
  summary.split = "validation";
  summary.metrics.auc = 0.7512;
  summary.best_auc = 0.8;
  summary.metrics.logloss = 0.51;
  summary.steps = 100;
  summary.epochs = 1;
  summary.samples_per_s = 1234.4;
  summary.ranks = 4;
  summary.virtual_shards = 16;
  summary.dense_parameters = 10;
  summary.embedding_parameters = int64_t{1} << 40;
  summary.state_digest = "0123";
  summary.numerics = "x86-64-v3";
  summary.isa = "v4";
  summary.wall_s = 2;
  summary.peak_memory_bytes = 4096;
  summary.spectrum = {{.stage = "tokens", .stable = {.mean = 1.25}, .entropy = {.mean = 2.5}},
                      {.stage = "block1.ffn", .stable = {.mean = 10}, .entropy = {.mean = 11}}};
  summary.communication = {{"row_exchange", "training", 3, 6, 100, 0.5, 18, 300},
                           {"early_rows", "training", 6, 6, 100, 0.5, 18, 300, 12, 200, 0.75}};
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
  EXPECT_EQ(json["isa"], "v4");
  EXPECT_EQ(json["wall_s"], 2);
  EXPECT_EQ(json["peak_memory_bytes"], 4096);
  ASSERT_EQ(json["spectrum"].size(), 2u);
  EXPECT_EQ(json["spectrum"][1]["entropy_rank_mean"], 11);
  ASSERT_EQ(json["communication"].size(), 2u);
  EXPECT_EQ(json["communication"][0]["phase"], "row_exchange");
  EXPECT_EQ(json["communication"][0]["work"], "training");
  EXPECT_EQ(json["communication"][0]["rank0_messages_sent"], 6);
  EXPECT_EQ(json["communication"][0]["all_bytes_sent"], 300);
  EXPECT_FALSE(json["communication"][0].contains("rows_share"));
  EXPECT_EQ(json["communication"][1]["rows_share"], 0.75);
  EXPECT_TRUE(Json::parse(ToJson(Summary()))["auc"].is_null());
}

TEST(RunRecordsTest, SummaryOfAControlledRun) {
  Summary summary;
  Json json = Json::parse(ToJson(summary));
  EXPECT_TRUE(json["gauc"].is_null());
  EXPECT_TRUE(json["best_step"].is_null());
  EXPECT_TRUE(json["best_metric"].is_null());
  EXPECT_EQ(json["early_stopped"], false);

  summary.split = "test";
  summary.metrics.gauc = 0.625;
  summary.monitor = "logloss";
  summary.best_step = 40;
  summary.best_metric = 0.45;
  summary.early_stopped = true;
  json = Json::parse(ToJson(summary));
  EXPECT_EQ(json["gauc"], 0.625);
  EXPECT_EQ(json["monitor"], "logloss");
  EXPECT_EQ(json["best_step"], 40);
  EXPECT_EQ(json["best_metric"], 0.45);
  EXPECT_EQ(json["early_stopped"], true);
  const std::string text = ToText(summary);
  EXPECT_NE(text.find("test gAUC: 0.6250\n"), std::string::npos) << text;
  EXPECT_NE(text.find("best validation logloss: 0.4500 at step 40, stopped early\n"),
            std::string::npos)
      << text;
}

// Every text of every record, with bytes that are no UTF-8: JSON holds U+FFFD in their place.
TEST(RunRecordsTest, TextsThatAreNotUtf8) {
  const std::string bad = "a\xff";
  const std::string replaced = "a\uFFFD";
  Summary summary = MakeSummary();
  for (std::string* text : {&summary.name, &summary.model, &summary.split, &summary.monitor,
                            &summary.numerics, &summary.spectrum[0].stage}) {
    *text = bad;
  }
  const Json json = Json::parse(ToJson(summary));
  for (const char* key : {"name", "model", "split", "monitor", "numerics"}) {
    EXPECT_EQ(json[key], replaced) << key;
  }
  EXPECT_EQ(Json::parse(ToJson(CheckpointRecord{.path = bad}))["path"], replaced);
  EXPECT_EQ(Json::parse(ToJson(SpectrumRecord{.stage = bad}))["stage"], replaced);
  EXPECT_EQ(Json::parse(ToJson(TrainRecord{.phase_seconds = {{bad, 1}}}))["phase_s"][replaced], 1);
}

TEST(RunRecordsTest, InferenceForPeople) {
  Summary summary = MakeSummary();
  summary.mode = "predict";
  summary.model = "run/model";
  summary.predictions = "out/predictions.csv";
  summary.split = "test";
  summary.rows = 400;
  summary.spectrum.clear();
  const std::string rest =
      "parameters: 10 dense, 1099511627776 in embeddings\n"
      "test AUC: 0.7512 (best possible: 0.8000)\n"
      "test logloss: 0.5100\n"
      "state digest: 0123\n";
  EXPECT_EQ(ToText(summary),
            "tiny: predicted 400 rows of the test split on 4 ranks in 2.0 s, 1234 samples/s\n"
            "model: run/model, after 100 steps\n"
            "predictions: out/predictions.csv\n" +
                rest);
  const Json json = Json::parse(ToJson(summary));
  EXPECT_EQ(json["mode"], "predict");
  EXPECT_EQ(json["model"], "run/model");
  EXPECT_EQ(json["rows"], 400);

  summary.mode = "evaluate";
  summary.predictions.clear();
  summary.rows = summary.steps = summary.ranks = 1;
  EXPECT_EQ(ToText(summary),
            "tiny: evaluated 1 row of the test split on 1 rank in 2.0 s, 1234 samples/s\n"
            "model: run/model, after 1 step\n" +
                rest);
  summary.mode = "spectra";
  EXPECT_TRUE(ToText(summary).starts_with(
      "tiny: measured effective ranks of 1 row of the test split on 1 rank in"));
  summary.mode = "theory";
  EXPECT_TRUE(ToText(summary).starts_with("tiny: tested theorems on 1 row of the test split on"));
  // Names do not steer the terminal.
  summary.name = "tiny\x1b[2J\nrun";
  EXPECT_TRUE(ToText(summary).starts_with("tiny\\x1b[2J\\nrun: tested theorems on 1 row of the"));
}

TEST(RunRecordsTest, SummaryForPeople) {
  EXPECT_EQ(Json::parse(ToJson(MakeSummary()))["mode"], "train");
  EXPECT_TRUE(Json::parse(ToJson(MakeSummary()))["model"].is_null());
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

TEST(RunRecordsTest, EvaluationForPeople) {
  EvalRecord record = {.split = "validation", .step = 100};
  EXPECT_EQ(ToText(record), "step 100  validation  no labels, no metrics");
  record.metrics.rows = 7;
  record.metrics.logloss = 0.48111;
  EXPECT_EQ(ToText(record), "step 100  validation  logloss 0.4811");
  record.metrics.auc = 0.75815;
  record.metrics.gauc = 0.5;
  EXPECT_EQ(ToText(record), "step 100  validation  auc 0.7581  logloss 0.4811  gauc 0.5000");
}

}  // namespace
}  // namespace elastor
