#include "tests/golden/golden_training.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "collective/communicator.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/thread_pool.h"
#include "embedding/shard_plan.h"
#include "embedding/sharded_embedding.h"
#include "trainer/data/batch.h"

namespace elastor {
namespace {

constexpr int64_t kNumericFields = 3;
constexpr int64_t kWidth = 5;
constexpr int64_t kRows[] = {6, 60, 15};  // of the tables
constexpr double kStddev = 0.1;           // large, so that things move within twenty steps

// 3 numeric and 4 categorical fields of 5 features: 35, which 4 and 3 do not divide.
TestModel Model(const std::string& text) {
  return MakeTestModel({.numeric_fields = kNumericFields,
                        .categorical_fields = static_cast<int64_t>(GoldenFields().size()),
                        .embedding_width = kWidth,
                        .embedding_stddev = kStddev},
                       text);
}

GoldenCase RankElastorPaper() {
  return {"rank_elastor_paper",
          Model("rank_elastor { tokens: 4 token_width: 6 feed_forward { expansion: 2 } }"), 2.5};
}

GoldenCase RankElastorPublicCode() {
  return {"rank_elastor_public_code",
          Model("rank_elastor { convention: PUBLIC_CODE tokens: 4 token_width: 6 "
                "tokenizer { kind: SHARED hidden: 7 } feed_forward { expansion: 2 } "
                "head { hidden: 48 } }"),
          2.0};
}

GoldenCase RankMixerPaper() {
  return {"rank_mixer_paper",
          Model("rank_mixer { tokens: 3 token_width: 6 feed_forward { expansion: 2 } "
                "head { kind: MEAN_POOL } }"),
          1.0};
}

GoldenCase RankMixerPublicCode() {
  return {"rank_mixer_public_code",
          Model("rank_mixer { convention: PUBLIC_CODE tokens: 3 token_width: 6 "
                "tokenizer { kind: FULL hidden: 8 } feed_forward { expansion: 2 } "
                "head { hidden: 36 } }"),
          1.0};
}

GoldenCase RefinedMultiProbe() {
  GoldenCase golden = {
      "refined_multi_probe",
      Model("rank_elastor { tokens: 3 token_width: 6 blocks: 2 iterations: 3 recompute: true "
            "feed_forward { expansion: 2 } head { kind: MULTI_PROBE probes: 5 } }"),
      2.0};
  // Six blocks one after another, and gradients from 1 to 26.
  golden.float_tolerance = 3e-4;
  return golden;
}

GoldenCase VectorCollapse() {
  return {"vector_collapse",
          Model("rank_mixer { tokens: 3 token_width: 6 feed_forward { expansion: 2 } "
                "head { kind: VECTOR_COLLAPSE } }"),
          1.0};
}

GoldenCase MlpCase() { return {"mlp", Model("mlp { hidden: [12, 8] }"), 0.2}; }

GoldenCase MlpSampleWeights() {
  GoldenCase golden = MlpCase();
  golden.name = "mlp_sample_weights";
  golden.sample_weights = true;
  return golden;
}

GoldenCase MlpBatchNorm() {
  GoldenCase golden = MlpCase();
  golden.name = "mlp_batch_norm";
  golden.model.config.mutable_mlp()->set_batch_norm(true);
  golden.clip_norm = 1.1;
  golden.leaves = 1;
  return golden;
}

GoldenCase MlpGhostBatchNorm() {
  GoldenCase golden = MlpBatchNorm();
  golden.name = "mlp_ghost_batch_norm";
  golden.leaves = 4;
  return golden;
}

GoldenCase XDeepFmCase() {
  return {"x_deep_fm", Model("x_deep_fm { maps: [6, 4] hidden: [12, 8] }"), 0.5};
}

GoldenCase DcnV2Case() {
  return {"dcn_v2", Model("dcn_v2 { cross_layers: 2 hidden: [12, 8] batch_norm: true }"), 0.5};
}

GoldenCase DcnV2LowRankCase() {
  return {
      "dcn_v2_low_rank",
      Model("dcn_v2 { structure: PARALLEL cross_layers: 2 rank: 3 experts: 3 hidden: [12, 8] }"),
      0.5};
}

GoldenCase WukongCase() {
  return {"wukong",
          Model("wukong { layers: 2 interaction_tokens: 3 compressed_tokens: 2 rank: 3 "
                "interaction_hidden: [12, 9] hidden: 8 }"),
          1.0};
}

GoldenCase AutoInt() {
  return {"auto_int",
          Model("auto_int { attention_layers: 2 attention_width: 6 heads: 2 scale: true "
                "layer_norm: true hidden: [12, 8] }"),
          1.0};
}

// The last 2 of the bag's 0 to 3 ids, compared with "first".
GoldenCase Din() {
  GoldenCase golden = {"din_mlp", Model("mlp { hidden: 12 } sequences { din { hidden: [9, 6] } }"),
                       0.2};
  golden.model.features.sequences = {{"bag", 2, 0, 2}};
  return golden;
}

GoldenCase DinSoftmax() {
  GoldenCase golden = {
      "din_softmax_rank_elastor",
      Model("rank_elastor { tokens: 4 token_width: 6 feed_forward { expansion: 2 } } "
            "sequences { din { hidden: 7 activation: GELU softmax: true } }"),
      2.5};
  golden.model.features.sequences = {{"bag", 2, 3, 3}};
  return golden;
}

// The last 3 of the bag's 0 to 3 ids, with "last" behind them.
GoldenCase Hstu() {
  GoldenCase golden = {
      "hstu_mlp",
      Model("mlp { hidden: 12 } "
            "sequences { hstu { layers: 2 heads: 2 attention_width: 3 linear_width: 4 } }"),
      1.5};
  golden.model.features.sequences = {{"bag", 2, 3, 3}};
  // Queries and keys begin with gradients near 0, whose rounding Adam makes as large as its steps.
  golden.float_tolerance = 3e-4;
  return golden;
}

GoldenCase AutoIntWide() {
  GoldenCase golden = AutoInt();
  golden.name = "auto_int_wide";
  golden.model.config.mutable_auto_int()->set_use_wide(true);
  golden.model.features.first_order = true;
  return golden;
}

GoldenCase MmoeTwoLabels() {
  GoldenCase golden = {"mmoe_two_labels",
                       Model("mmoe { experts: 3 expert_hidden: [9, 6] tower_hidden: 5 }"), 0.3};
  golden.model.outputs = 2;
  golden.task = {.row_labels = 2, .learned = {{"click", 0, 1}, {"conversion", 1, 0.75}}};
  golden.sample_weights = true;
  return golden;
}

// The seven fields are positions with two outputs each, read as two labels of seven classes.
GoldenCase OfPositions(const std::string& name, const std::string& text, double clip_norm) {
  GoldenCase golden = {name, Model(text), clip_norm};
  golden.model.features.embedding_width = 4;
  golden.model.outputs = 14;
  golden.task = {.kind = Task::Kind::kClasses,
                 .classes = 7,
                 .row_labels = 2,
                 .learned = {{"first", 0}, {"second", 1}}};
  golden.float_tolerance = 1e-3;
  return golden;
}

GoldenCase MatrixThinkerCase() {
  return OfPositions("matrix_thinker",
                     "matrix_thinker { layers: 2 iterations: 2 heads: 2 probes: 3 }", 4.0);
}

GoldenCase MatrixThinkerMatrixProduct() {
  GoldenCase golden =
      OfPositions("matrix_thinker_matrix_product",
                  "matrix_thinker { layers: 1 iterations: 2 heads: 1 attention: MATRIX_PRODUCT "
                  "head: VECTOR_COLLAPSE down_projection: true }",
                  8.0);
  golden.float_tolerance = 0;
  return golden;
}

GoldenCase TransformerCase() {
  return OfPositions("transformer", "transformer { layers: 2 heads: 2 hidden: 9 }", 1.0);
}

GoldenCase TransformerGated() {
  return OfPositions("transformer_swiglu",
                     "transformer { layers: 1 heads: 2 hidden: 7 gated: true activation: SWISH }",
                     2.0);
}

// The seven fields are patches, and the two labels have seven of the outputs each.
GoldenCase VitCase() {
  return OfPositions("vit", "vit { width: 6 layers: 2 heads: 2 hidden: 9 }", 1.0);
}

GoldenCase MlpMixerGated() {
  GoldenCase golden = OfPositions("mlp_mixer_reglu",
                                  "mlp_mixer { width: 6 layers: 2 token_hidden: 5 hidden: 8 "
                                  "gated: true activation: RELU }",
                                  1.0);
  golden.float_tolerance = 0;  // rows cross the kinks of ReLU
  return golden;
}

// A model with first-order weights if it has any.
GoldenCase OfFields(const std::string& name, const std::string& text, double clip_norm) {
  GoldenCase golden = {name, Model(text), clip_norm};
  golden.model.features.first_order = HasFirstOrder(golden.model.config);
  return golden;
}

GoldenCase LrCase() {
  GoldenCase golden = OfFields("lr", "lr { }", 0.5);
  golden.model.features.embedding_width = 1;
  return golden;
}

GoldenCase UniMixerCase(const std::string& name, const std::string& text) {
  GoldenCase golden = OfFields(name, text, 4.0);
  golden.float_tolerance = 3e-4;  // the streams' norms divide by small numbers
  return golden;
}

GoldenCase OfTwoLabels(const std::string& name, const std::string& text, double clip_norm) {
  GoldenCase golden = OfFields(name, text, clip_norm);
  golden.model.outputs = 2;
  golden.task = {.row_labels = 2, .learned = {{"click", 0, 1}, {"conversion", 1, 0.75}}};
  return golden;
}

// The last 3 of the bag's 0 to 3 ids, with "last" behind them.
GoldenCase BstCase() {
  GoldenCase golden =
      OfFields("bst", "mlp { hidden: 8 } sequences { bst { layers: 2 heads: 1 } }", 0.5);
  golden.model.features.sequences = {{"bag", 2, 3, 3}};
  return golden;
}

GoldenCase OneTransCase(const std::string& name, const std::string& more) {
  GoldenCase golden = OfFields(
      name, "one_trans { tokens: 3 token_width: 6 expansion: 2 tokenizer_hidden: 7 " + more, 4.0);
  golden.float_tolerance = 3e-4;  // as Hstu's
  return golden;
}

// The last 2 of the bag's 0 to 3 ids, and the id of "last". Of these 3 tokens 2 ask in the second
// block.
GoldenCase OneTransHistories() {
  GoldenCase golden = OneTransCase(
      "one_trans_histories",
      "blocks: 3 heads: 2 history_hidden: [5, 4] pyramid_multiple: 1 } sequences { tokens { } }");
  golden.model.features.sequences = {{"bag", 2, 0, 2}, {"last", 3, 0, 1}};
  return golden;
}

// The last 2 of the bag's 0 to 3 ids, as items, kinds, actions and times. A numeric field is of the
// request, the others and "first" are tokens.
GoldenCase HstuRankerCase() {
  GoldenCase golden = OfFields(
      "hstu_ranker",
      "hstu_ranker { actions: 'done' times: 'ago' token_width: 6 layers: 2 heads: 2 "
      "attention_width: 3 linear_width: 4 content_hidden: 7 item_hidden: 5 head_hidden: 8 } "
      "sequences { tokens { } }",
      2.0);
  golden.model.features.sequences = {
      {"items", 2, 1, 2}, {"kinds", 2, 3, 2}, {"done", 2, 0, 2}, {"ago", 2, 0, 2}};
  golden.model.features.request_fields = {1};
  golden.float_tolerance = 3e-4;  // as Hstu's
  return golden;
}

GoldenCase FinalNetCase() {
  GoldenCase golden = OfFields("final_net", "final_net { hidden1: 8 hidden2: [6, 4] }", 0.5);
  golden.model.outputs = 3;
  golden.task.students = 2;
  return golden;
}

// Rows have weights, and the label has one.
GoldenCase DcnV3Case() {
  GoldenCase golden = OfFields("dcn_v3", "dcn_v3 { exponential_layers: 2 linear_layers: 3 }", 0.5);
  golden.model.features.embedding_width = 6;
  golden.model.outputs = 3;
  golden.sample_weights = true;
  golden.task.learned[0].weight = 0.75;
  golden.task.branches = 2;
  return golden;
}

void AppendRow(int step, int64_t row, int64_t labels, Rows* rows) {
  uint32_t counter = 0;
  const uint64_t key = MakeRandomKey(row, RandomPurpose::kSynthetic, step);
  const auto uniform = [&] { return UniformFromBits(Philox(key, {counter++, 0, 0, 0})[0]); };
  const auto below = [&](int64_t n) { return static_cast<int64_t>(uniform() * n); };
  const auto end_bag = [&] { rows->offsets.push_back(static_cast<int64_t>(rows->ids.size())); };
  if (rows->offsets.empty()) rows->offsets.push_back(0);
  ++rows->rows;
  rows->labels.push_back(uniform() < 0.4 ? 1.0f : 0.0f);
  rows->weights.push_back(0.25f * static_cast<float>((7 * row + step) % 5));
  for (int64_t i = 0; i < kNumericFields; ++i) {
    const bool missing = uniform() < 0.2;
    rows->numeric.push_back(missing ? std::numeric_limits<float>::quiet_NaN()
                                    : static_cast<float>(2 * uniform() - 0.5));
  }
  rows->ids.push_back(below(kRows[0]));
  end_bag();
  rows->ids.push_back(below(2) == 0 ? below(3) : below(kRows[1]));
  end_bag();
  for (int64_t i = below(4); i > 0; --i) rows->ids.push_back(below(kRows[2]));
  end_bag();
  rows->ids.push_back(below(6));
  end_bag();
  if (labels == 1) return;
  const bool missing = rows->labels.back() == 0 || uniform() < 0.2;
  const float label = uniform() < 0.5 ? 1.0f : 0.0f;
  rows->labels.push_back(missing ? std::numeric_limits<float>::quiet_NaN() : label);
}

// All tables with Adam on every row, which is what PyTorch's Adam does.
template <typename T>
struct Trainer {
  Trainer(const GoldenCase& golden, const ShardPlan* plan, Communicator* communicator)
      : golden(golden),
        communicator(communicator),
        graph(golden.model.graph()),
        embedding(EmbeddingOptions(golden), plan, communicator, &pool),
        step(StepOptions(golden), &graph, &embedding, communicator, &pool) {}

  static typename ShardedEmbedding<T>::Options EmbeddingOptions(const GoldenCase& golden) {
    typename ShardedEmbedding<T>::Options options;
    options.tables = GoldenTables(golden);
    options.fields = GoldenFields();
    for (const SequenceShape& sequence : golden.model.features.sequences) {
      options.fields.insert(options.fields.end(), sequence.positions,
                            GoldenFields()[sequence.field]);
    }
    options.optimizer.rule.kind = OptimizerKind::kDenseAdam;
    options.optimizer.l2 = kGoldenEmbeddingL2;
    options.seed = kGoldenSeed;
    options.leaves = golden.leaves;
    return options;
  }

  static TrainStepOptions StepOptions(const GoldenCase& golden) {
    TrainStepOptions options;
    options.task = golden.task;
    options.leaves = golden.leaves;
    options.seed = kGoldenSeed;
    options.batch_rows = GoldenBatchRows(0);
    options.sample_weights = golden.sample_weights;
    options.clip_norm = golden.clip_norm;
    options.embedding_l2 = kGoldenEmbeddingL2;
    options.dense.rule.kind = OptimizerKind::kDenseAdam;
    options.dense.dense_l2 = kGoldenDenseL2;
    options.dense.embedding_l2 = kGoldenEmbeddingL2;
    return options;
  }

  LocalBatch MakeBatch(int index) const {
    const int64_t batch_rows = GoldenBatchRows(index);
    const Range own =
        LocalPositions(batch_rows, communicator->rank(), communicator->size(), golden.leaves);
    Rows rows = GoldenRows(index, own.begin, own.end, golden.task.labels());
    if (!golden.sample_weights) rows.weights.clear();
    LocalBatch batch;
    FillLocalBatch(0, batch_rows, communicator->rank(), communicator->size(), golden.leaves,
                   static_cast<int64_t>(GoldenFields().size()), &rows, &batch);
    const Status laid_out = LayOutSequences(golden.model.features.sequences, &batch);
    CHECK(laid_out.ok()) << laid_out.message();
    return batch;
  }

  StepResult Step(int index) {
    const StatusOr<StepResult> result = step.Run(MakeBatch(index), nullptr, kGoldenLearningRate, 0);
    CHECK(result.ok()) << result.status().message();
    return *result;
  }

  // The sum over this rank's rows and their labels.
  double EvaluationLoss(int index) {
    double sum = 0;
    const auto add = [&](const EvaluatedRows<T>& pass) {
      const int64_t losses = pass.rows * golden.task.losses();
      for (int64_t i = 0; i < losses; ++i) sum += pass.losses[i];
    };
    const Status status = step.Evaluate(MakeBatch(index), add);
    CHECK(status.ok()) << status.message();
    return sum;
  }

  // Dense parameters, and the embedding rows whose primary replica this rank has.
  void AddWeights(GoldenWeights* weights) {
    for (const ParameterInfo& p : graph.parameters().parameters()) {
      const T* const begin = step.weights() + p.offset;
      (*weights)[p.name].assign(begin, begin + p.size);
    }
    embedding.ForEachRow([&](int table, int64_t key, const T* values, const T*) {
      const TableSpec spec = GoldenTables(golden)[table];
      std::vector<double>& all = (*weights)["embedding/" + spec.name];
      all.resize(spec.rows * spec.width);
      std::copy(values, values + spec.width, all.begin() + key * spec.width);
    });
  }

  const GoldenCase& golden;
  Communicator* communicator;
  ThreadPool pool{1};
  const Graph graph;
  ShardedEmbedding<T> embedding;
  TrainStep<T> step;
};

std::vector<std::unique_ptr<Communicator>> MakeCommunicators(int ranks) {
  if (ranks > 1) return MakeThreadCommunicators(ranks, {.deadline_seconds = 600});
  std::vector<std::unique_ptr<Communicator>> self;
  self.push_back(MakeSelfCommunicator());
  return self;
}

}  // namespace

const std::vector<GoldenCase>& GoldenCases() {
  static const auto& cases = *new std::vector<GoldenCase>{
      RankElastorPaper(),
      RankElastorPublicCode(),
      RankMixerPaper(),
      RankMixerPublicCode(),
      RefinedMultiProbe(),
      VectorCollapse(),
      MlpCase(),
      MlpSampleWeights(),
      MlpBatchNorm(),
      MlpGhostBatchNorm(),
      DcnV2Case(),
      DcnV2LowRankCase(),
      XDeepFmCase(),
      AutoInt(),
      AutoIntWide(),
      WukongCase(),
      MatrixThinkerCase(),
      MatrixThinkerMatrixProduct(),
      TransformerCase(),
      TransformerGated(),
      VitCase(),
      MlpMixerGated(),
      MmoeTwoLabels(),
      Din(),
      DinSoftmax(),
      Hstu(),
      LrCase(),
      BstCase(),
      FinalNetCase(),
      DcnV3Case(),
      OfFields("fm", "fm { }", 0.5),
      OfFields("fw_fm", "fw_fm { }", 0.5),
      OfFields("fw_fm_id_weights", "fw_fm { linear: ID_WEIGHTS }", 0.5),
      OfFields("wide_and_deep", "wide_and_deep { hidden: 8 }", 0.5),
      OfFields("deep_fm", "deep_fm { hidden: 8 }", 0.5),
      OfFields("nfm", "nfm { hidden: 8 batch_norm: true }", 1.5),
      OfFields("ipnn", "ipnn { hidden: 8 }", 0.5),
      OfTwoLabels("dcn_two_labels", "dcn { cross_layers: 3 hidden: 8 }", 0.5),
      OfTwoLabels("shared_bottom", "shared_bottom { bottom_hidden: 9 tower_hidden: [6, 4] }", 0.5),
      OfTwoLabels("ple", "ple { layers: 2 experts: 2 expert_hidden: [7, 5] tower_hidden: 4 }", 0.5),
      OfTwoLabels("esmm", "esmm { tower_hidden: 8 }", 0.5),
      OfFields("token_mixer_large",
               "token_mixer_large { tokens: 3 token_width: 6 blocks: 4 expansion: 2 }", 0.5),
      UniMixerCase("uni_mixer",
                   "uni_mixer { tokens: 3 token_width: 6 blocks: 2 block_width: 3 expansion: 1 "
                   "tau: 0.5 sinkhorn_iterations: 3 }"),
      UniMixerCase("uni_mixer_lite",
                   "uni_mixer { tokens: 4 token_width: 4 blocks: 1 block_width: 2 expansion: 2 "
                   "rank: 2 basis: 3 }"),
      OneTransCase("one_trans", "heads: 3 }"),
      OneTransHistories(),
      HstuRankerCase(),
      OfFields("dlrm_dot", "dlrm { bottom_hidden: 6 hidden: [9, 5] }", 0.5),
      OfFields("dlrm_cross",
               "dlrm { interaction: CROSS cross_layers: 2 rank: 3 bottom_hidden: 6 hidden: 8 }",
               0.5),
      OfFields("gdcn_stacked", "gdcn { cross_layers: 2 hidden: 8 }", 0.5),
      OfFields("gdcn_parallel", "gdcn { structure: PARALLEL hidden: 8 }", 0.5),
      OfFields("final_mlp", "final_mlp { hidden1: 6 hidden2: [8, 4] gate_hidden: 7 heads: 2 }",
               0.5),
      OfFields("mask_net_serial", "mask_net { blocks: [8, 6] }", 5.0),
      OfFields("mask_net_parallel",
               "mask_net { structure: PARALLEL blocks: [4, 6] reduction_ratio: 0.3 embedding_norm: "
               "true hidden: 8 }",
               2.0)};
  return cases;
}

// The first and the last field share a table; "bag" is multi-hot.
std::vector<TableSpec> GoldenTables(const GoldenCase& golden) {
  const int64_t width = golden.model.features.row_width();
  return {{"few", kRows[0], width, kStddev},
          {"many", kRows[1], width, kStddev},
          {"bag", kRows[2], width, kStddev}};
}

const std::vector<FieldSpec>& GoldenFields() {
  static const auto& fields = *new std::vector<FieldSpec>{{"first", 0, Pooling::kSum},
                                                          {"second", 1, Pooling::kSum},
                                                          {"bag", 2, Pooling::kMean},
                                                          {"last", 0, Pooling::kSum}};
  return fields;
}

int64_t GoldenBatchRows(int step) {
  static constexpr int64_t kBatchRows[] = {40, 24, 33, 3};
  return kBatchRows[step % 4];
}

Rows GoldenRows(int step, int64_t begin, int64_t end, int64_t labels) {
  Rows rows;
  for (int64_t row = begin; row < end; ++row) AppendRow(step, row, labels, &rows);
  return rows;
}

template <typename T>
GoldenOutcome TrainGolden(const GoldenCase& golden, int ranks, int steps) {
  const std::vector<TableSpec> tables = GoldenTables(golden);
  const std::vector<int64_t> bytes_per_row(tables.size(), 3 * tables[0].width * sizeof(T));
  const StatusOr<ShardPlan> plan =
      ShardPlan::Make(PlanKind::kRowWise, tables, bytes_per_row, ranks, /*budget_bytes=*/0);
  CHECK(plan.ok()) << plan.status().message();
  const auto communicators = MakeCommunicators(ranks);
  std::vector<std::unique_ptr<Trainer<T>>> trainers(ranks);
  const auto on_every_rank = [&](const auto& work) {
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r) threads.emplace_back([&work, r] { work(r); });
    for (std::thread& thread : threads) thread.join();
  };
  GoldenOutcome outcome;
  on_every_rank([&](int r) {
    trainers[r] = std::make_unique<Trainer<T>>(golden, &*plan, communicators[r].get());
  });
  for (const auto& trainer : trainers) trainer->AddWeights(&outcome.initial);
  on_every_rank([&](int r) {
    SetCanonicalFloatingPoint();
    for (int i = 0; i < steps; ++i) {
      const StepResult result = trainers[r]->Step(i);
      if (r == 0) outcome.steps.push_back(result);
    }
  });
  for (const auto& trainer : trainers) trainer->AddWeights(&outcome.final);
  std::vector<double> losses(ranks);
  on_every_rank([&](int r) {
    SetCanonicalFloatingPoint();
    losses[r] = trainers[r]->EvaluationLoss(kGoldenSteps);
  });
  for (const double loss : losses) {
    outcome.evaluation_logloss += loss / static_cast<double>(GoldenBatchRows(kGoldenSteps));
  }
  return outcome;
}

template GoldenOutcome TrainGolden<float>(const GoldenCase&, int, int);
template GoldenOutcome TrainGolden<double>(const GoldenCase&, int, int);

}  // namespace elastor
