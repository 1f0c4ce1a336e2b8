#include "trainer/evaluate/evaluation.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "core/base/thread_pool.h"
#include "embedding/sharded_embedding.h"
#include "gtest/gtest.h"
#include "tests/core/models/test_model.h"
#include "trainer/data/dataset_writer.h"
#include "trainer/evaluate/ntk.h"
#include "trainer/evaluate/rank_projection.h"
#include "trainer/evaluate/theory.h"
#include "trainer/records/record_json.h"
#include "trainer/step/train_step.h"

namespace elastor {
namespace {

constexpr int64_t kRows = 230;
constexpr int64_t kLeaves = 4;
constexpr int64_t kSamples = 101;
constexpr int64_t kWidth = 6;

// Weights, groups of a few rows, a field of many ids and one of few.
void FillRow(std::mt19937& random, Rows* rows) {
  rows->labels.push_back(static_cast<float>(random() % 3 == 0));
  rows->numeric.push_back(static_cast<float>(random() % 100) / 100);
  rows->weights.push_back(static_cast<float>(1 + random() % 4) / 2);
  rows->groups.push_back((random() % 40) * 0x9e3779b97f4a7c15u);
  rows->ids.push_back(static_cast<int64_t>(random() % 60));
  rows->ids.push_back(static_cast<int64_t>(random() % 5));
  ++rows->rows;
}

std::string DataPath() { return testing::TempDir() + "/evaluation.set"; }

std::unique_ptr<Dataset> MakeData() {
  std::filesystem::remove_all(DataPath());
  DatasetInfo info;
  info.numeric = {{"price"}};
  info.categorical = {{.name = "item", .ids = 60}, {.name = "device", .ids = 5}};
  info.has_weights = true;
  info.has_groups = true;
  info.rows_per_block = 50;
  auto writer = DatasetWriter::Create(DataPath(), info);
  EXPECT_TRUE(writer.ok());
  std::mt19937 random(1);
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    for (int64_t begin = 0; begin < kRows; begin += info.rows_per_block) {
      Rows rows;
      while (rows.rows < std::min(info.rows_per_block, kRows - begin)) FillRow(random, &rows);
      EXPECT_TRUE((*writer)->Append(split, rows).ok());
    }
  }
  EXPECT_TRUE((*writer)->Commit({}).ok());
  std::filesystem::create_directory(DataPath() + "/vocabulary");
  std::ofstream(DataPath() + "/vocabulary/device.tsv") << "phone\t9\nt\\tv\t8\npad\t7\nwatch\t6\n";
  return std::move(Dataset::Open(DataPath())).value();
}

TestModel Model() {
  return MakeTestModel({.numeric_fields = 1,
                        .categorical_fields = 2,
                        .embedding_width = kWidth,
                        .embedding_stddev = 0.5},
                       "rank_elastor { tokens: 3 token_width: 8 feed_forward { expansion: 2 } }");
}

struct Found {
  std::string eval;  // records as they are logged
  MetricValues metrics;
  std::vector<float> logits;  // of this rank's rows, as they came
  std::string spectra;
  std::vector<SpectrumRecord> records;
  std::vector<TheoryRow> theory;
};

// What one rank finds; twice, since slices are chosen once.
Found MeasureOn(const Dataset& data, Communicator& communicator, int threads) {
  ThreadPool pool(threads);
  const std::vector<TableSpec> tables = {{"item", 60, kWidth, 0.5}, {"device", 5, kWidth, 0.5}};
  const std::vector<int64_t> bytes_per_row = {24, 24};
  const StatusOr<ShardPlan> plan =
      ShardPlan::Make(PlanKind::kRowWise, tables, bytes_per_row, communicator.size(), 0);
  const Graph graph = Model().graph();
  ShardedEmbedding<float>::Options options;
  options.tables = tables;
  options.fields = {{"item", 0, Pooling::kSum}, {"device", 1, Pooling::kSum}};
  options.leaves = kLeaves;
  ShardedEmbedding<float> embedding(options, &plan.value(), &communicator, &pool);
  TrainStepOptions step_options;
  step_options.leaves = kLeaves;
  step_options.seed = 5;
  TrainStep<float> step(step_options, &graph, &embedding, &communicator, &pool);
  Evaluation evaluation(&data, &graph, &step, &communicator,
                        {.leaves = kLeaves,
                         .batch_rows = 64,
                         .slices = {.fields = {"device", "item"}, .values = 3},
                         .dataset_path = DataPath()});
  // A pass that one rank stops ends on all, and changes nothing that is measured later.
  int batches = 0;
  evaluation.StopWhen([&] { return communicator.rank() == 0 && ++batches > 2; });
  EXPECT_EQ(evaluation.Measure(Split::kValidation, {}).status().code(), StatusCode::kStopped);
  EXPECT_EQ(evaluation.MeasureSpectrum(Split::kValidation, kSamples, {}).status().code(),
            StatusCode::kStopped);
  EXPECT_EQ(batches, communicator.rank() == 0 ? 4 : 0);
  evaluation.StopWhen(nullptr);
  Found found;
  for (int pass = 0; pass < 2; ++pass) {
    found.logits.clear();
    const auto keep = [&](int64_t, const std::vector<float>&, const std::vector<float>& logits) {
      found.logits.insert(found.logits.end(), logits.begin(), logits.end());
      return OkStatus();
    };
    const auto values = evaluation.Measure(Split::kValidation, keep);
    EXPECT_TRUE(values.ok()) << values.status().message();
    found.metrics = values->front();
    const std::string eval = ToJson(EvalRecord{.split = "validation", .metrics = found.metrics});
    if (pass == 1) {
      EXPECT_EQ(eval, found.eval);
    }
    found.eval = eval;
  }
  auto records = evaluation.MeasureSpectrum(Split::kValidation, kSamples, {});
  EXPECT_TRUE(records.ok()) << records.status().message();
  found.records = std::move(records).value();
  for (const SpectrumRecord& record : found.records) found.spectra += ToJson(record) + "\n";

  const ModelConfig config = Model().config;
  const TheoryModel model = {&graph, &config, step.weights(), /*seed=*/5};
  found.theory = CountParameters(model);
  for (const auto& part :
       {MeasureRandomTheory(model, Split::kValidation, kSamples, &evaluation, &communicator),
        MeasureTheory("here", model, Split::kValidation, kSamples, &evaluation, &communicator)}) {
    EXPECT_TRUE(part.ok()) << part.status().message();
    found.theory.insert(found.theory.end(), part->begin(), part->end());
  }
  return found;
}

Found Measure(const Dataset& data, int ranks, int threads) {
  const auto communicators = MakeThreadCommunicators(ranks, {.deadline_seconds = 600});
  std::vector<Found> found(ranks);
  std::vector<std::thread> running;
  for (int r = 0; r < ranks; ++r) {
    running.emplace_back([&, r] { found[r] = MeasureOn(data, *communicators[r], threads); });
  }
  for (std::thread& thread : running) thread.join();
  for (const Found& other : found) EXPECT_EQ(other.spectra, found[0].spectra);
  return found[0];
}

TEST(EvaluationTest, SameNumbersOnAnyRanksAndThreads) {
  const auto data = MakeData();
  const Found one = Measure(*data, 1, 1);
  for (const auto& [ranks, threads] :
       {std::pair{1, 3}, std::pair{2, 1}, std::pair{3, 2}, std::pair{4, 1}}) {
    const Found other = Measure(*data, ranks, threads);
    EXPECT_EQ(other.eval, one.eval) << ranks << " ranks, " << threads << " threads";
    EXPECT_EQ(other.spectra, one.spectra) << ranks << " ranks, " << threads << " threads";
    EXPECT_EQ(TheoryCsv(other.theory), TheoryCsv(one.theory));
  }
}

// Metrics of some rows of the split; cross-entropies from the logits by definition.
MetricValues MetricsOf(const Rows& rows, const std::vector<float>& logits,
                       const std::vector<int64_t>& subset) {
  BinaryMetrics metrics({}, /*output=*/0, {.grouped = true});
  for (const int64_t i : subset) {
    const double z = logits[i];
    const double loss = std::max(z, 0.0) - z * rows.labels[i] + std::log1p(std::exp(-std::abs(z)));
    metrics.Add({.logits = {&logits[i], 1},
                 .labels = {&rows.labels[i], 1},
                 .losses = {&loss, 1},
                 .weights = {&rows.weights[i], 1},
                 .groups = {&rows.groups[i], 1}});
  }
  return std::move(metrics.Reduce(*MakeSelfCommunicator())).value();
}

void ExpectNear(const BinaryValues& found, const BinaryValues& expected) {
  constexpr double kTolerance = 1e-6;  // the step's cross-entropies are in float
  EXPECT_EQ(found.rows, expected.rows);
  EXPECT_EQ(found.positives, expected.positives);
  EXPECT_EQ(found.auc, expected.auc);
  EXPECT_NEAR(found.logloss, expected.logloss, kTolerance);
  EXPECT_EQ(found.normalized_entropy.has_value(), expected.normalized_entropy.has_value());
  EXPECT_NEAR(found.normalized_entropy.value_or(0), expected.normalized_entropy.value_or(0),
              kTolerance);
  EXPECT_EQ(found.calibration, expected.calibration);
}

TEST(EvaluationTest, MetricsAreThoseOfTheSplitsRows) {
  const auto data = MakeData();
  const Found found = Measure(*data, 1, 2);
  Rows rows;
  ASSERT_TRUE(
      data->Read(Split::kValidation, RowOrder{.shuffled = false}, 0, {0, kRows}, &rows).ok());
  ASSERT_EQ(found.logits.size(), static_cast<size_t>(kRows));
  std::vector<int64_t> all(kRows);
  std::iota(all.begin(), all.end(), 0);
  const MetricValues expected = MetricsOf(rows, found.logits, all);
  ExpectNear(found.metrics, expected);
  EXPECT_EQ(found.metrics.gauc, expected.gauc);
  ASSERT_EQ(found.metrics.slices.size(), 6u);
  for (const SliceValues& slice : found.metrics.slices) {
    const int64_t field = slice.field == "item" ? 0 : 1;
    std::vector<int64_t> subset;
    for (const int64_t i : all) {
      if (static_cast<uint64_t>(rows.ids[i * 2 + field]) == slice.id) subset.push_back(i);
    }
    ExpectNear(slice, MetricsOf(rows, found.logits, subset));
  }
}

TEST(EvaluationTest, GroupsSlicesAndTheirTexts) {
  const auto data = MakeData();
  const std::string eval = Measure(*data, 2, 1).eval;
  EXPECT_NE(eval.find("\"gauc\":"), std::string::npos) << eval;
  EXPECT_NE(eval.find("\"field\":\"item\""), std::string::npos) << eval;
  // Ids 1 to 4 of "device" have texts, id 0 has none; "item" has no vocabulary.
  size_t named = 0;
  for (const char* text : {"phone", "t\\\\tv", "pad", "watch"}) {
    named += eval.find("\"value\":\"" + std::string(text) + "\"") != std::string::npos;
  }
  EXPECT_GE(named, 2u) << eval;
  EXPECT_LE(named, 3u) << eval;
}

TEST(EvaluationTest, SpectrumOfTheFirstRows) {
  const auto data = MakeData();
  const Found found = Measure(*data, 3, 2);
  ASSERT_EQ(found.records.size(), 6u);  // embedding, tokens, two blocks of two
  EXPECT_EQ(found.records[0].stage, "embedding");
  for (const SpectrumRecord& record : found.records) {
    EXPECT_EQ(record.samples, kSamples);
    EXPECT_EQ(record.max_rank, 3);
    EXPECT_GE(record.stable.mean, 1);
    EXPECT_LE(record.stable.mean, record.entropy.mean);
    EXPECT_LE(record.entropy.mean, 3);
    EXPECT_GT(record.entropy.stddev, 0);
    for (const auto& histogram : {record.stable.histogram, record.entropy.histogram}) {
      EXPECT_EQ(std::accumulate(histogram.begin(), histogram.end(), int64_t{0}), kSamples);
    }
    ASSERT_EQ(record.profile.size(), 3u);
    EXPECT_EQ(record.profile[0], 1);
    EXPECT_GE(record.profile[1], record.profile[2]);
  }
}

const TheoryRow& RowOf(const Found& found, const std::string& representation,
                       const std::string& stage, const std::string& claim) {
  const auto row = std::ranges::find_if(found.theory, [&](const TheoryRow& r) {
    return r.representation == representation && r.stage == stage && r.claim.name == claim;
  });
  EXPECT_NE(row, found.theory.end()) << representation << " " << stage << " " << claim;
  return *row;
}

TEST(EvaluationTest, TheoryOfTheFirstRows) {
  const auto data = MakeData();
  const Found found = Measure(*data, 2, 1);
  // The ranks before and after the model's own parts are those that the spectrum found.
  const char* const parts[][2] = {{"block0.mixing", "mixing of the model"},
                                  {"block0.ffn", "P-FFN of the model"},
                                  {"block1.mixing", "mixing of the model"},
                                  {"block1.ffn", "P-FFN of the model"}};
  for (size_t i = 0; i < std::size(parts); ++i) {
    const TheoryRow row = RowOf(found, "here", parts[i][0], parts[i][1]);
    EXPECT_EQ(row.samples, kSamples);
    EXPECT_DOUBLE_EQ(row.bound, found.records[i + 1].stable.mean);
    EXPECT_DOUBLE_EQ(row.measured, found.records[i + 2].stable.mean);
  }
  EXPECT_EQ(RowOf(found, "rank 1", "", "2.2 rank one (ReLU)").holds, kSamples);
  EXPECT_EQ(RowOf(found, "rank 1", "", "2.2 contraction (ReLU)").holds, 0);
  // T 3, D 8, r 2: (T D)^2 weights of the mixing, T (3 r + 1) D^2 of the P-FFN.
  EXPECT_EQ(RowOf(found, "parameters", "block1.mixing", "3.3 mixing").measured, 576);
  EXPECT_EQ(RowOf(found, "parameters", "block1.mixing", "3.3 mixing").holds, 1);
  EXPECT_EQ(RowOf(found, "parameters", "block1.ffn", "3.3 P-FFN").bound, 448);
  EXPECT_EQ(RowOf(found, "parameters", "block1.ffn", "3.3 P-FFN").holds, 0);
  EXPECT_EQ(RowOf(found, "parameters", "block1.ffn", "3.3 P-FFN instead").measured, 1344);
  EXPECT_EQ(RowOf(found, "parameters", "block1.ffn", "3.3 P-FFN instead").holds, 1);
}

// Section 3.3 with the paper's shape: RankElastor's gated P-FFN with r = 3 and its mixing, and
// RankMixer's P-FFN of width D.
TEST(EvaluationTest, TheoryCountsTheParametersOfThePaper) {
  const auto counts = [](const std::string& text) {
    const TestModel model = MakeTestModel({.categorical_fields = 39, .embedding_width = 20}, text);
    const Graph graph = model.graph();
    std::vector<double> measured;
    for (const TheoryRow& row : CountParameters({&graph, &model.config})) {
      measured.push_back(row.measured);
    }
    return measured;
  };
  EXPECT_EQ(counts("rank_elastor { tokens: 15 token_width: 26 blocks: 1 "
                   "feed_forward { kind: GATED expansion: 3 } }"),
            (std::vector<double>{152100, 101400, 101400}));
  EXPECT_EQ(counts("rank_elastor { tokens: 15 token_width: 26 blocks: 1 "
                   "feed_forward { kind: TWO_LAYER expansion: 1 } }"),
            (std::vector<double>{152100, 20280, 20280}));
  EXPECT_EQ(counts("rank_mixer { tokens: 13 token_width: 26 blocks: 1 "
                   "feed_forward { kind: TWO_LAYER expansion: 1 } }"),
            (std::vector<double>{0, 17576, 17576}));
}

// A model with random weights, biases too, and the effective ranks of its scoring matrices.
struct ScoredModel {
  ScoredModel(const TestModel& model, const Task& task)
      : graph(model.graph()), weights(graph.parameters().flat_size()) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (float& weight : weights) weight = normal(random);
    ranks = ScoringRanks({.graph = &graph, .weights = weights.data(), .task = task});
  }
  const float* operator[](const char* name) const {
    return weights.data() + graph.parameters()[graph.parameters().Find(name)].offset;
  }
  Graph graph;
  std::vector<float> weights;
  std::vector<EffectiveRank> ranks;
};

// w(t, d) of [tokens, 4].
template <typename Element>
void ExpectRankOf(int64_t tokens, const Element& w, const EffectiveRank& found) {
  std::vector<float> elements(PanelElements(1, tokens * 4));
  const Panels<float> x = {elements.data(), 1, tokens * 4, PanelStride(tokens * 4)};
  for (int64_t i = 0; i < tokens * 4; ++i) x.At(0, i) = static_cast<float>(w(i / 4, i % 4));
  Spectrum spectrum(tokens, 4);
  spectrum.Measure<float>(x, 0);
  EXPECT_NEAR(found.stable, spectrum.rank(0).stable, 1e-4);
  EXPECT_NEAR(found.entropy, spectrum.rank(0).entropy, 1e-4);
}

TEST(ScoringRanksTest, TokenModels) {
  constexpr int64_t kTokens = 3, kProbes = 5;
  const auto scored = [](const std::string& head) {
    TestModel model = Model();
    model = MakeTestModel(model.features, "rank_elastor { tokens: 3 token_width: 4 head { " + head +
                                              " } feed_forward { expansion: 2 } }");
    return ScoredModel(model, {});
  };
  const ScoredModel mean = scored("kind: MEAN_POOL");
  ASSERT_EQ(mean.ranks.size(), 1u);
  EXPECT_NEAR(mean.ranks[0].entropy, 1, 1e-4);
  const ScoredModel flat = scored("kind: FLATTEN_LINEAR");
  const float* const w = flat["head.output.weight"];
  ASSERT_EQ(flat.ranks.size(), 1u);
  ExpectRankOf(
      kTokens, [&](int64_t t, int64_t d) { return w[t * 4 + d]; }, flat.ranks[0]);
  const ScoredModel probes = scored("kind: MULTI_PROBE probes: 5");
  const float *const u = probes["head.left.weight"], *const v = probes["head.right.weight"],
                     *const out = probes["head.output.weight"];
  const auto sum = [&](int64_t t, int64_t d) {
    float element = 0;
    for (int64_t k = 0; k < kProbes; ++k) element += out[k] * u[k * kTokens + t] * v[k * 4 + d];
    return element;
  };
  ASSERT_EQ(probes.ranks.size(), 1u);
  ExpectRankOf(kTokens, sum, probes.ranks[0]);
  const ScoredModel collapse = scored("kind: VECTOR_COLLAPSE");
  const float *const sums = collapse["head.collapse.weight"], *const scale =
                                                                  collapse["head.output.weight"];
  ASSERT_EQ(collapse.ranks.size(), 1u);
  ExpectRankOf(
      kTokens, [&](int64_t t, int64_t d) { return scale[t] * sums[t * 4 + d]; }, collapse.ranks[0]);
  EXPECT_TRUE(scored("kind: FLATTEN_MLP hidden: 12").ranks.empty());
}

// A matrix a byte, whatever the position. A transformer's last vectors
// are one matrix, of which an output reads a row.
TEST(ScoringRanksTest, LanguageModels) {
  constexpr int64_t kClasses = 3, kProbes = 5;
  const FeatureShape bytes = {
      .categorical_fields = 6, .embedding_width = 8, .embedding_stddev = 0.5};
  Task task = {.kind = Task::Kind::kClasses, .classes = kClasses, .row_labels = 6};
  task.learned.resize(6);
  const auto scored = [&](const std::string& text) {
    TestModel model = MakeTestModel(bytes, text);
    model.outputs = 6 * kClasses;
    return ScoredModel(model, task);
  };
  const ScoredModel probes =
      scored("matrix_thinker { layers: 1 iterations: 2 heads: 2 probes: 5 }");
  const float *const u = probes["head.left.weight"], *const v = probes["head.right.weight"],
                     *const out = probes["head.output.weight"];
  ASSERT_EQ(probes.ranks.size(), 3u);
  for (int64_t c = 0; c < kClasses; ++c) {
    const auto sum = [&](int64_t t, int64_t d) {
      float element = 0;
      for (int64_t k = 0; k < kProbes; ++k) {
        element += out[c * kProbes + k] * u[k * 4 + t] * v[k * 4 + d];
      }
      return element;
    };
    ExpectRankOf(4, sum, probes.ranks[c]);
  }
  const ScoredModel collapse =
      scored("matrix_thinker { layers: 1 iterations: 1 heads: 2 head: VECTOR_COLLAPSE }");
  const float *const sums = collapse["head.collapse.weight"], *const scale =
                                                                  collapse["head.output.weight"];
  ASSERT_EQ(collapse.ranks.size(), 3u);
  for (int64_t c = 0; c < kClasses; ++c) {
    const auto element = [&](int64_t t, int64_t d) { return scale[c * 4 + t] * sums[t * 4 + d]; };
    ExpectRankOf(4, element, collapse.ranks[c]);
  }
  EXPECT_TRUE(scored("transformer { layers: 1 heads: 2 hidden: 9 }").ranks.empty());
}

// Rows with a field of one id, and one of up to four, whose mean it is, from the same table.
std::unique_ptr<Dataset> MakeBags(int64_t rows) {
  const std::string path = testing::TempDir() + "/bags.set";
  std::filesystem::remove_all(path);
  DatasetInfo info;
  info.numeric = {{"price"}};
  info.categorical = {{.name = "item", .ids = 9},
                      {.name = "history", .ids = 9, .multi_hot = true, .mean_pooling = true}};
  info.categorical[1].shares = 0;
  auto writer = DatasetWriter::Create(path, info);
  EXPECT_TRUE(writer.ok());
  std::mt19937 random(2);
  Rows written;
  written.offsets = {0};
  for (; written.rows < rows; ++written.rows) {
    written.labels.push_back(1);
    written.numeric.push_back(static_cast<float>(random() % 100) / 100);
    for (const uint64_t ids : {uint64_t{1}, random() % 5}) {
      for (uint64_t i = 0; i < ids; ++i) {
        written.ids.push_back(static_cast<int64_t>(random() % 9));
      }
      written.offsets.push_back(static_cast<int64_t>(written.ids.size()));
    }
  }
  EXPECT_TRUE((*writer)->Append(Split::kTrain, written).ok());
  EXPECT_TRUE((*writer)->Append(Split::kValidation, written).ok());
  EXPECT_TRUE((*writer)->Commit({}).ok());
  return std::move(Dataset::Open(path)).value();
}

// A model of bags, as it is at its start.
struct BagModel {
  static constexpr float kScale = 1024;  // learning rate, so large that weights become gradients

  BagModel()
      : communicator(MakeSelfCommunicator()),
        plan(ShardPlan::Make(PlanKind::kRowWise, Tables(), std::vector<int64_t>{24}, 1, 0).value()),
        graph(Model().graph()),
        embedding(Options(), &plan, communicator.get(), &pool),
        step(StepOptions(), &graph, &embedding, communicator.get(), &pool) {}

  static std::vector<TableSpec> Tables() { return {{"item", 9, kWidth, 0.5}}; }
  static ShardedEmbedding<float>::Options Options() {
    ShardedEmbedding<float>::Options options;
    options.tables = Tables();
    options.fields = {{"item", 0, Pooling::kSum}, {"history", 0, Pooling::kMean}};
    options.leaves = 1;
    options.optimizer.rule.kind = OptimizerKind::kSgd;
    return options;
  }
  static TrainStepOptions StepOptions() {
    TrainStepOptions options;
    options.leaves = 1;
    options.seed = 5;
    options.dense.rule.kind = OptimizerKind::kSgd;
    return options;
  }

  // Weights by name: "dense", and the table's rows by their ids.
  std::map<std::string, std::vector<double>> Weights() {
    std::map<std::string, std::vector<double>> weights;
    weights["dense"].assign(step.weights(), step.weights() + graph.parameters().flat_size());
    embedding.ForEachRow([&](int, int64_t key, const float* values, const float*) {
      weights[std::to_string(key)].assign(values, values + kWidth);
    });
    return weights;
  }

  std::unique_ptr<Communicator> communicator;
  ThreadPool pool{1};
  ShardPlan plan;
  Graph graph;
  ShardedEmbedding<float> embedding;
  TrainStep<float> step;
};

// Of `rows` validation rows; by Lanczos' method of more than most_eigenvalues.
StatusOr<NtkMeasurement> MeasureBags(const Dataset& data, int64_t rows, int64_t most_eigenvalues,
                                     const NtkKernelVisit& kernel) {
  BagModel model;
  const std::vector<FieldSpec> fields = BagModel::Options().fields;
  return MeasureNtk({.graph = &model.graph,
                     .weights = model.step.weights(),
                     .fields = fields,
                     .embedding = &model.embedding,
                     .most_eigenvalues = most_eigenvalues},
                    data, Split::kValidation, {.shuffled = false}, rows, kernel,
                    model.communicator.get(), &model.pool);
}

// The gradient of a row's logit, by name, from what steps of SGD on the row alone change.
std::map<std::string, std::vector<double>> LogitGradient(const Dataset& data, int64_t row) {
  BagModel model;
  double loss = 0;
  std::map<std::string, std::vector<double>> before;
  for (const float rate : {0.0f, BagModel::kScale}) {  // the first step makes the rows
    before = model.Weights();
    Rows rows;
    EXPECT_TRUE(data.Read(Split::kValidation, {.shuffled = false}, 0, {row, row + 1}, &rows).ok());
    LocalBatch batch;
    FillLocalBatch(0, 1, 0, 1, /*leaves=*/1, /*categorical_fields=*/2, &rows, &batch);
    const StatusOr<StepResult> result = model.step.Run(batch, nullptr, rate, 0);
    EXPECT_TRUE(result.ok()) << result.status().message();
    loss = result->loss;
  }
  // With label 1 the loss is -log sigmoid(logit), of slope sigmoid(logit) - 1.
  const double slope = std::exp(-loss) - 1;
  std::map<std::string, std::vector<double>> gradient = model.Weights();
  for (auto& [name, values] : gradient) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = (before[name][i] - values[i]) / (BagModel::kScale * slope);
    }
  }
  return gradient;
}

// The kernels of rows with bags that are pooled by their mean, against gradients that the training
// step itself takes of the rows one by one.
TEST(NtkTest, KernelsOfBagsAreThoseOfTrainingSteps) {
  constexpr int64_t kBagRows = 24;
  const auto data = MakeBags(kBagRows);
  std::map<std::string, std::vector<double>> kernels;
  const auto measured =
      MeasureBags(*data, kBagRows, kMaxNtkEigenvalues,
                  [&](const std::string& layer, int64_t rows, std::span<const double> kernel) {
                    EXPECT_EQ(rows, kBagRows);
                    kernels[layer].assign(kernel.begin(), kernel.end());
                    return OkStatus();
                  });
  ASSERT_TRUE(measured.ok()) << measured.status().message();
  ASSERT_EQ(measured->duplicates, 0);

  std::vector<std::map<std::string, std::vector<double>>> gradients;
  for (int64_t row = 0; row < kBagRows; ++row) gradients.push_back(LogitGradient(*data, row));
  std::vector<double> tables(kBagRows * kBagRows), whole(kBagRows * kBagRows);
  for (int64_t i = 0; i < kBagRows; ++i) {
    for (int64_t j = 0; j < kBagRows; ++j) {
      for (const auto& [name, values] : gradients[i]) {
        if (!gradients[j].contains(name)) continue;
        const double product =
            std::inner_product(values.begin(), values.end(), gradients[j].at(name).begin(), 0.0);
        whole[i * kBagRows + j] += product;
        if (name != "dense") tables[i * kBagRows + j] += product;
      }
    }
  }
  constexpr double kTolerance = 1e-5;  // the step is in float
  for (const auto& [layer, expected] :
       {std::pair("embedding", &tables), std::pair("whole", &whole)}) {
    for (int64_t i = 0; i < kBagRows; ++i) {
      for (int64_t j = 0; j < kBagRows; ++j) {
        const double scale =
            std::sqrt((*expected)[i * kBagRows + i] * (*expected)[j * kBagRows + j]);
        EXPECT_NEAR(kernels[layer][i * kBagRows + j], (*expected)[i * kBagRows + j],
                    kTolerance * scale)
            << layer << " " << i << " " << j;
      }
    }
  }
}

// Lanczos' method, of more rows than it takes steps, beside the eigenvalues of the same rows'
// kernel: the largest within the residual that it tells.
TEST(NtkTest, LanczosFindsTheLargestEigenvalue) {
  constexpr int64_t kManyRows = 4 * kNtkLanczosSteps;
  constexpr double kRounding = 1e-13;  // sums of 128 doubles in another order
  const auto data = MakeBags(kManyRows);
  const auto dense = MeasureBags(*data, kManyRows, kMaxNtkEigenvalues, {});
  const auto lanczos = MeasureBags(*data, kManyRows, kNtkLanczosSteps, {});
  ASSERT_TRUE(dense.ok() && lanczos.ok());
  ASSERT_EQ(lanczos->records.size(), 1u);
  const NtkRecord& expected = dense->records.back();
  const NtkRecord& found = lanczos->records[0];
  EXPECT_GT(found.rows, kNtkLanczosSteps);
  EXPECT_EQ(found.rows, expected.rows);
  EXPECT_EQ(found.parameters, expected.parameters);
  EXPECT_FALSE(found.rank.has_value());
  ASSERT_TRUE(found.residual);
  EXPECT_LT(*found.residual, 1e-6 * found.lambda_max);
  EXPECT_NEAR(found.lambda_max, expected.lambda_max,
              *found.residual + kRounding * expected.lambda_max);
  EXPECT_GT(expected.lambda_max, 1.1 * expected.eigenvalues[1]) << "the test could not fail";
  // The trace is the eigenvalues' sum; the densities of the starting vectors have it up to their
  // error.
  const double trace =
      std::accumulate(expected.eigenvalues.begin(), expected.eigenvalues.end(), 0.0);
  EXPECT_NEAR(*found.trace, trace, 1e-12 * trace);
  EXPECT_GT(*found.trace_standard_error, 1e-6 * trace);
  EXPECT_NEAR(*found.trace_of_density, trace, 6 * *found.trace_standard_error);
  double shares[kNtkStarts] = {};
  for (const auto& [eigenvalue, share, start] : found.density) shares[start - 1] += share;
  for (const double share : shares) EXPECT_NEAR(share, 1.0 / kNtkStarts, 1e-12);
}

}  // namespace
}  // namespace elastor
