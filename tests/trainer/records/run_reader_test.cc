#include "trainer/records/run_reader.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trainer/records/kept_metrics.h"
#include "trainer/records/metrics_csv.h"
#include "trainer/records/progress_reader.h"

namespace elastor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string FolderOf(const std::string& name) {
  const std::string folder = testing::TempDir() + "/" + name;
  EXPECT_TRUE(RemoveDirectory(folder).ok());
  EXPECT_TRUE(MakeDirectory(folder).ok());
  return folder;
}

void Write(const std::string& folder, const std::string& file, const std::string& text) {
  std::ofstream(folder + "/" + file) << text;
}

// The record, written and read, and its JSON again.
template <typename Record>
std::optional<Record> ReadBack(const Record& written) {
  const std::string line = ToJson(written);
  const StatusOr<RunRecord> record = ParseRecord(line);
  EXPECT_TRUE(record.ok()) << record.status().message();
  if (!record.ok() || !std::holds_alternative<Record>(record->values)) return std::nullopt;
  EXPECT_EQ(record->step, written.step);
  EXPECT_EQ(ToJson(std::get<Record>(record->values)), line);
  return std::get<Record>(record->values);
}

TEST(RecordJsonTest, EveryRecordReadsBack) {
  const auto train = ReadBack(TrainRecord{.step = 3,
                                          .epoch = 1,
                                          .loss = 0x1.5555555555555p-2,
                                          .l2 = std::numeric_limits<double>::quiet_NaN(),
                                          .learning_rate = 0.001,
                                          .gradient_norm = 2,
                                          .samples_per_s = 10,
                                          .phase_seconds = {{"compute", 1.5}, {"a", 2}}});
  ASSERT_TRUE(train);
  EXPECT_EQ(train->loss, 0x1.5555555555555p-2);
  EXPECT_TRUE(std::isnan(train->l2));
  EXPECT_THAT(train->phase_seconds, ElementsAre(Pair("compute", 1.5), Pair("a", 2)));

  EvalRecord written = {.split = "test", .step = 7, .scheduled = true};
  written.metrics.label = "click";
  written.metrics.rows = 100;
  written.metrics.positives = 20;
  written.metrics.auc = 0.75;
  written.metrics.logloss = 0.1;
  written.metrics.gauc = 0.5;
  written.metrics.gauc_groups = 3;
  SliceValues slice;
  slice.field = "site";
  slice.id = 7;
  slice.value = "news";
  slice.rows = 10;
  written.metrics.slices = {slice};
  MetricValues other = written.metrics;
  other.label = "buy";
  other.auc.reset();
  written.labels = {written.metrics, other};
  const auto eval = ReadBack(written);
  ASSERT_TRUE(eval);
  EXPECT_TRUE(eval->scheduled);
  EXPECT_EQ(eval->metrics.gauc_groups, 3);
  ASSERT_EQ(eval->labels.size(), 2u);
  EXPECT_FALSE(eval->labels[1].auc);
  ASSERT_EQ(eval->labels[1].slices.size(), 1u);
  EXPECT_EQ(eval->labels[1].slices[0].value, "news");
  EXPECT_TRUE(std::isnan(eval->labels[1].slices[0].logloss));

  EvalRecord classes = {.split = "validation", .step = 8};
  classes.metrics.rows = 50;
  classes.metrics.logloss = 2;
  classes.metrics.accuracy = 0.5;
  classes.metrics.bits_per_label = 3;
  const auto of_classes = ReadBack(classes);
  ASSERT_TRUE(of_classes);
  EXPECT_EQ(of_classes->metrics.rows, 50);
  EXPECT_EQ(of_classes->metrics.bits_per_label, 3);

  const auto spectrum = ReadBack(SpectrumRecord{
      .step = 3,
      .split = "train",
      .stage = "tokens",
      .samples = 4,
      .max_rank = 3,
      .stable = {.mean = 1.5, .stddev = 0.5, .histogram = std::vector<int64_t>(kRankBins, 1)},
      .entropy = {.mean = 2.5, .stddev = 0.25},
      .profile = {1, 0.5}});
  ASSERT_TRUE(spectrum);
  EXPECT_EQ(spectrum->entropy.mean, 2.5);
  EXPECT_EQ(spectrum->stable.histogram, std::vector<int64_t>(32, kRankBins / 32));

  EXPECT_TRUE(ReadBack(TableRecord{
      .step = 3, .table = "user", .rows = 9, .admitted = 4, .evicted = 2, .bytes = 720}));
  EXPECT_TRUE(ReadBack(TableRecord{.step = 3, .table = "user", .unadmitted_share = 0.25}));
  EXPECT_TRUE(ReadBack(ScoringRecord{.step = 3, .matrices = 2, .max_rank = 4, .stable = 1.5}));
  EXPECT_TRUE(ReadBack(NtkRecord{.step = 3, .layer = "whole", .rank = 7, .digest = "0f"}));
  EXPECT_TRUE(ReadBack(NtkRecord{.step = 3, .layer = "whole", .residual = 0.0}));
  EXPECT_TRUE(ReadBack(CheckpointRecord{.step = 20, .digest = "0f", .path = "p", .base = "b"}));
}

TEST(RecordJsonTest, ASummaryReadsBack) {
  Summary written;
  written.name = "n";
  written.mode = "predict";
  written.model = "m";
  written.split = "test";
  written.rows = 5;
  written.metrics.label = "click";
  written.metrics.rows = 5;
  written.metrics.auc = 0.75;
  written.metrics.logloss = 0.5;
  written.best_auc = 0.9;
  written.labels = {{written.metrics, 0.8}, {written.metrics, {}}};
  written.steps = 9;
  written.best_step = 4;
  written.early_stopped = true;
  written.ranks = 3;
  written.embedding_parameters = int64_t{1} << 40;
  written.numeric_hash = "0123456789abcdef";
  written.spectrum = {{.stage = "tokens", .stable = {.mean = 1.25}, .entropy = {.mean = 2.5}}};
  written.communication = {{"row_exchange", "training", 3, 6, 100, 0.5, 18, 300},
                           {"early_rows", "training", 6, 6, 100, 0.5, 18, 300, 12, 200, 0.75}};
  const std::string text = ToJson(written);
  const StatusOr<Summary> summary = ParseSummary(text);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(ToJson(*summary), text);
  EXPECT_EQ(summary->best_step, 4);
  EXPECT_EQ(summary->labels[0].best_auc, 0.8);
  EXPECT_FALSE(summary->best_gauc);
  EXPECT_EQ(summary->communication[0].all_bytes, 300);
  EXPECT_EQ(summary->communication[1].rows_share, 0.75);

  written = {};
  written.metrics.accuracy = 0.5;
  written.metrics.bits_per_label = 3;
  const std::string of_classes = ToJson(written);
  const StatusOr<Summary> again = ParseSummary(of_classes);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(ToJson(*again), of_classes);
}

TEST(RecordJsonTest, WhatALaterBuildAddsIsPassedOver) {
  const StatusOr<RunRecord> event = ParseRecord(R"({"event":"weather","step":3,"loss":"x"})");
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->step, 3);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(event->values));
  const StatusOr<RunRecord> field = ParseRecord(R"({"event":"train","step":3,"more":[{}]})");
  ASSERT_TRUE(field.ok());
  // What an earlier build did not write is not there.
  EXPECT_TRUE(std::isnan(std::get<TrainRecord>(field->values).loss));
}

// Every way in which a line can be no record, for every kind of its readers.
TEST(RunReaderTest, ALineThatIsNoRecordIsNamed) {
  const std::string folder = FolderOf("damaged"), path = folder + "/metrics.jsonl";
  const std::string good = R"({"event":"train","step":5,"loss":0.5})"
                           "\n";
  const std::string expected = "expected a record, a JSON object with event and step";
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", expected},
      {std::string(3, '\0'), expected},
      {"[5]", expected},
      {R"({"event":"train","ste)", expected},
      {R"({"event":"train"})", expected},
      {R"({"event":7,"step":5})", expected},
      {R"({"event":"train","step":"5"})", expected},
      {R"({"event":"train","step":5.5})", expected},
      {R"({"event":"train","step":5,"x":)" + deep + "}", expected},
      {R"({"event":"train","step":-5})", "step: found -5; expected an integer from 0"},
      {R"({"event":"train","step":5,"loss":"x"})", "loss: found \"x\"; expected a finite number"},
      {R"({"event":"train","step":5,"phase_s":[]})", "phase_s: found []; expected an object"},
      {R"({"event":"eval","step":5,"split":1})", "split: found 1; expected a text"},
      {R"({"event":"eval","step":5,"labels":4})", "labels: found 4; expected an array"},
      {R"({"event":"eval","step":5,"labels":[1]})", "labels[0]: found 1; expected an object"},
      {R"({"event":"eval","step":5,"slices":[{"id":-1}]})", "slices[0].id: found -1; expected"},
      {R"({"event":"spectrum","step":5,"profile":["x"]})", "profile[0]: found \"x\"; expected"},
      {R"({"event":"checkpoint","step":5,"path":{}})", "path: found {}; expected a text"},
  };
  for (const auto& [line, reason] : cases) {
    SCOPED_TRACE(line);
    const std::string text = good + line + "\n" + good;
    Write(folder, "metrics.jsonl", text);
    int records = 0;
    const Status status = ReadRecords(folder, [&](const RunRecord&) {
      ++records;
      return OkStatus();
    });
    EXPECT_EQ(status.code(), StatusCode::kUser);
    EXPECT_THAT(status.message(), testing::StartsWith(path + ":2: " + reason));
    EXPECT_EQ(records, 1);
    // A run that goes on leaves it out, and who follows a run passes over it.
    const KeptMetrics kept = KeepMetrics(text, 9);
    EXPECT_EQ(kept.text, good + good);
    EXPECT_THAT(kept.no_records, ElementsAre(2));
    Write(folder, "metrics.jsonl", good + line + "\n");
    EXPECT_EQ(ProgressReader(folder).Read().step, 5);
  }
  // A last line that is cut off is none yet.
  Write(folder, "metrics.jsonl", good + R"({"event":"train","step":6})");
  std::vector<int64_t> steps;
  EXPECT_TRUE(ReadRecords(folder, [&](const RunRecord& record) {
                steps.push_back(record.step);
                return OkStatus();
              }).ok());
  EXPECT_THAT(steps, ElementsAre(5));
  // So is an error of the reader's own.
  EXPECT_EQ(ReadRecords(folder, [](const RunRecord&) { return UserError("odd"); }).message(),
            path + ":1: odd");
}

TEST(RunReaderTest, SummaryAndExperiment) {
  const std::string folder = FolderOf("summaries");
  const StatusOr<std::optional<Summary>> none = ReadSummary(folder);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(*none);
  EXPECT_EQ(ReadFinishedRun(folder).status().message(),
            folder + ": has no summary.json; expected the folder of a finished run");
  const auto mistake = [&](const std::string& text) {
    Write(folder, "summary.json", text);
    return ReadSummary(folder).status().message();
  };
  const std::string path = folder + "/summary.json: ";
  EXPECT_EQ(mistake(R"({"auc": 0.75, "log)"),
            path + "not a JSON text; the file is damaged or cut off");
  EXPECT_EQ(mistake("[]"), path + "found []; expected an object");
  EXPECT_THAT(mistake(R"({"steps": 1.5})"), HasSubstr(path + "steps: found 1.5; expected"));
  EXPECT_THAT(mistake(R"({"state_digest": 7})"), HasSubstr("state_digest: found 7; expected"));
  EXPECT_THAT(mistake(R"({"x": )" + std::string(200, '[') + std::string(200, ']') + "}"),
              HasSubstr("too deep"));
  Write(folder, "summary.json", R"({"auc": null, "steps": 3, "later": [1]})");
  const StatusOr<Summary> summary = ReadFinishedRun(folder);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_FALSE(summary->metrics.auc);
  EXPECT_EQ(summary->steps, 3);

  Write(folder, "experiment.textproto", "name: 'n' training { seed: 3 }");
  const StatusOr<Experiment> experiment = ReadRunExperiment(folder);
  ASSERT_TRUE(experiment.ok()) << experiment.status().message();
  EXPECT_EQ(experiment->training().seed(), 3u);
  EXPECT_EQ(DataFingerprintOf(folder), "");
  EXPECT_TRUE(MakeDirectory(folder + "/model").ok());
  Write(folder, "model/manifest.json", R"({"data":"0f"})");
  EXPECT_EQ(DataFingerprintOf(folder), "0f");
}

TEST(ProgressReaderTest, FollowsARun) {
  const std::string run = FolderOf("followed"), path = run + "/metrics.jsonl";
  ProgressReader reader(run);
  EXPECT_EQ(reader.Read().step, 0);
  const auto append = [&](const std::string& text) { std::ofstream(path, std::ios::app) << text; };
  const auto train = [](int step) {
    return "{\"event\":\"train\",\"step\":" + std::to_string(step) +
           ",\"samples_per_s\":" + std::to_string(10 * step) + ".5}\n";
  };
  const std::string evaluation =
      "{\"event\":\"eval\",\"split\":\"validation\",\"step\":3,\"auc\":0.75,\"logloss\":0.5}\n";
  // The evaluation is far from the end, among the first lines, which are not read at once. One of
  // training rows is passed over.
  append(
      train(2) + evaluation +
      "{\"event\":\"training_eval\",\"split\":\"train\",\"step\":3,\"auc\":0.9,\"logloss\":0.1}\n");
  for (int step = 4; step < 4000; ++step) append(train(step));
  EXPECT_EQ(reader.Read().step, 3999);
  EXPECT_EQ(reader.Read().samples_per_s, 39990.5);
  EXPECT_EQ(reader.Read().auc, 0.75);
  EXPECT_EQ(reader.Read().logloss, 0.5);
  // A line counts when it is whole; what was said before stays.
  const std::string line = train(4000);
  append(line.substr(0, 30));
  EXPECT_EQ(reader.Read().step, 3999);
  append(line.substr(30));
  EXPECT_EQ(reader.Read().step, 4000);
  // Records of all events have a step, also those that this build does not know.
  append("{\"event\":\"weather\",\"step\":5000}\n");
  EXPECT_EQ(reader.Read().step, 5000);
  EXPECT_EQ(reader.Read().auc, 0.75);
  // A run that goes on at an earlier step.
  EXPECT_TRUE(WriteFileAtomically(path, train(2)).ok());
  EXPECT_EQ(reader.Read().step, 2);
  EXPECT_FALSE(reader.Read().auc);
  EXPECT_EQ(ProgressReader(run).Read().step, 2);
}

// The columns of every build so far.
TEST(MetricsCsvTest, ColumnsStay) {
  EXPECT_EQ(MetricsCsvHeader(),
            "event,step,epoch,split,label,loss,l2,learning_rate,gradient_norm,samples_per_s,field,"
            "id,value,scheduled,rows,positives,auc,logloss,normalized_entropy,calibration,gauc,"
            "gauc_groups,ungrouped_rows,weighted_auc,weighted_gauc,label_count,accuracy,"
            "bits_per_label,stage,samples,max_rank,"
            "stable_rank_mean,stable_rank_stddev,entropy_rank_mean,entropy_rank_stddev,matrices,"
            "layer,outputs,parameters,lambda_max,lambda_min,condition_number,rank,path,base,digest,"
            "blocked_s,write_s\n");
}

// A run whose end puts the best weights back measures them behind its last checkpoint. One that
// goes on from there has not measured them.
TEST(KeptMetricsTest, WhatTheEndMeasuredOfAnEarlierStepIsLeftOut) {
  const std::string step5 = ToJson(TrainRecord{.step = 5}) + "\n";
  const std::string step9 = ToJson(TrainRecord{.step = 9}) + "\n";
  const std::string checkpoint =
      ToJson(CheckpointRecord{.step = 9, .digest = "d", .path = "p"}) + "\n";
  const std::string best = ToJson(TrainRecord{.step = 5, .loss = 1}) + "\n";
  const std::string last = ToJson(TrainRecord{.step = 9, .loss = 1}) + "\n";
  EXPECT_EQ(KeepMetrics(step5 + step9 + checkpoint + best, 9).text, step5 + step9 + checkpoint);
  EXPECT_EQ(KeepMetrics(step5 + step9 + checkpoint + last, 9).text,
            step5 + step9 + checkpoint + last);
}

}  // namespace
}  // namespace elastor
