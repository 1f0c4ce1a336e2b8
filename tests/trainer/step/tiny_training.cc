#include "tests/trainer/step/tiny_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <thread>
#include <utility>

#include "collective/communicator.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/thread_pool.h"
#include "embedding/early_rows.h"
#include "embedding/embedding_layout.h"
#include "embedding/exchange_places.h"
#include "embedding/route_count.h"
#include "embedding/unique_ids.h"
#include "trainer/checkpoint/state_digest.h"
#include "trainer/data/batch.h"
#include "trainer/step/step_calls.h"
#include "trainer/step/thread_shares.h"
#include "trainer/step/train_step.h"

namespace elastor {
namespace {

constexpr int kEpochs = 2;
constexpr int64_t kNumericFields = 2;
constexpr int64_t kWidth = 4;
constexpr double kStddev = 0.1;
constexpr int64_t kEvaluatedRows = 29;
constexpr int64_t kEvaluatedIndex = 1 << 20;  // rows that training never sees

// "few" is small enough to be replicated by the automatic plan, "many" is not; "bag" is multi-hot.
constexpr int64_t kFewIds = 6;
constexpr int64_t kManyIds = 5000;
constexpr int64_t kBagIds = 40;
constexpr int64_t kLateId = kManyIds - 1;
constexpr int64_t kLateIndex = 60;  // first row that has it

std::vector<TableSpec> Tables(const TinyTraining& training) {
  const int64_t width = training.model.features.row_width();
  std::vector<TableSpec> tables = {{"few", kFewIds, width, kStddev},
                                   {"many", kManyIds, width, kStddev},
                                   {"bag", kBagIds, width, kStddev}};
  for (TableSpec& table : tables) {
    table.keyed = training.keyed;
    table.rules = training.rules;
    table.keeps_use = training.rules.keeps_use();
  }
  return tables;
}

// Two fields share the table "many".
const std::vector<FieldSpec>& Fields() {
  static const auto& fields = *new std::vector<FieldSpec>{{"few", 0, Pooling::kSum},
                                                          {"first", 1, Pooling::kSum},
                                                          {"bag", 2, Pooling::kMean},
                                                          {"second", 1, Pooling::kSum}};
  return fields;
}

void AppendRow(int64_t index, int64_t labels, Rows* rows) {
  uint32_t counter = 0;
  const uint64_t key = MakeRandomKey(index, RandomPurpose::kSynthetic, 0);
  const auto uniform = [&] { return UniformFromBits(Philox(key, {counter++, 0, 0, 0})[0]); };
  const auto below = [&](int64_t n) { return static_cast<int64_t>(uniform() * n); };
  const auto end_bag = [&] { rows->offsets.push_back(static_cast<int64_t>(rows->ids.size())); };
  if (rows->offsets.empty()) rows->offsets.push_back(0);
  ++rows->rows;
  rows->labels.push_back(uniform() < 0.4 ? 1.0f : 0.0f);
  for (int64_t i = 0; i < kNumericFields; ++i) {
    const bool missing = uniform() < 0.2;
    rows->numeric.push_back(missing ? std::numeric_limits<float>::quiet_NaN()
                                    : static_cast<float>(uniform()));
  }
  rows->ids.push_back(below(kFewIds));
  end_bag();
  rows->ids.push_back(below(2) == 0 ? below(8) : below(kLateId));
  end_bag();
  for (int64_t i = below(5); i > 0; --i) rows->ids.push_back(below(kBagIds));
  end_bag();
  rows->ids.push_back(index >= kLateIndex ? kLateId : below(16));
  end_bag();
  for (int64_t i = 1; i < labels; ++i) {
    const bool missing = uniform() < 0.3;
    const float label = uniform() < 0.5 ? 1.0f : 0.0f;
    rows->labels.push_back(missing ? std::numeric_limits<float>::quiet_NaN() : label);
  }
}

LocalBatch MakeBatch(int64_t begin, int64_t batch_rows, int rank, int ranks,
                     const TinyTraining& training) {
  const int64_t leaves = training.leaves;
  const Range own = LocalPositions(batch_rows, rank, ranks, leaves);
  Rows rows;
  for (int64_t i = own.begin; i < own.end; ++i) {
    AppendRow(training.row ? training.row(begin + i) : begin + i, training.task.labels(), &rows);
    if (training.weight) rows.weights.push_back(training.weight(begin + i));
  }
  LocalBatch batch;
  FillLocalBatch(begin, batch_rows, rank, ranks, leaves, static_cast<int64_t>(Fields().size()),
                 &rows, &batch);
  const Status laid_out = LayOutSequences(training.model.features.sequences, &batch);
  CHECK(laid_out.ok()) << laid_out.message();
  return batch;
}

ShardPlan MakePlan(const TinyTraining& training, const Spread& spread) {
  const std::vector<TableSpec> tables = Tables(training);
  const int64_t width = tables[0].width;
  const int64_t row = (width + SlotElements(training.sparse, width)) * sizeof(float);
  const std::vector<int64_t> bytes_per_row(tables.size(), row);
  StatusOr<ShardPlan> plan =
      ShardPlan::Make(spread.plan, tables, bytes_per_row, spread.ranks, /*budget_bytes=*/0);
  CHECK(plan.ok()) << plan.status().message();
  return std::move(plan).value();
}

SparseOptimizerOptions SparseOptions(OptimizerKind kind, double l2) {
  SparseOptimizerOptions options;
  options.rule.kind = kind;
  options.l2 = l2;
  options.rule.initial_accumulator = 0.1;
  return options;
}

ShardedEmbedding<float>::Options TableOptions(const TinyTraining& training, const Spread& spread) {
  ShardedEmbedding<float>::Options options;
  options.tables = Tables(training);
  options.fields = Fields();
  for (const SequenceShape& sequence : training.model.features.sequences) {
    options.fields.insert(options.fields.end(), sequence.positions, Fields()[sequence.field]);
  }
  options.optimizer = SparseOptions(training.sparse, training.l2);
  options.seed = training.seed;
  options.leaves = training.leaves;
  options.wire = training.wire;
  if (!spread.hosts.empty()) options.hosts.emplace(spread.hosts);
  return options;
}

TrainStepOptions StepOptions(const TinyTraining& training, const Spread& spread) {
  TrainStepOptions options;
  options.task = training.task;
  options.leaves = training.leaves;
  options.batch_rows = *std::max_element(training.batch_rows.begin(), training.batch_rows.end());
  options.sample_weights = training.weight != nullptr;
  options.seed = training.seed;
  options.clip_norm = training.clip_norm;
  options.embedding_l2 = training.l2;
  options.overlap = spread.overlap;
  options.first_ids_first = spread.first_ids_first;
  options.dense.rule = SparseOptions(training.dense, 0).rule;
  options.dense.dense_l2 = training.l2;
  options.dense.decoupled_decay = training.decoupled_decay;
  options.dense.embedding_l2 = training.l2;
  return options;
}

// Lists the calls that steps make, and has another communicator make them.
class ListingCommunicator final : public Communicator {
 public:
  ListingCommunicator(Communicator* to, std::vector<TinyCall>* calls)
      : Communicator(to->rank(), to->size()), to_(to), calls_(calls) {}

 private:
  void List(const Call& call, std::vector<int64_t> send) {
    if (WorkOf(activity()) == Work::kTraining) {
      calls_->push_back({call.kind, call.phase, std::move(send)});
    }
  }
  Status DoBarrier(const Call& call) override {
    List(call, {});
    return to_->Barrier(call.phase);
  }
  Status DoAllToAllV(const Call& call, const char* send, std::span<const int64_t> send_bytes,
                     char* receive, std::span<const int64_t> receive_bytes) override {
    std::vector<int64_t> bytes(send_bytes.begin(), send_bytes.end());
    bytes[rank()] = 0;
    List(call, std::move(bytes));
    return to_->AllToAllV(call.phase, send, send_bytes, receive, receive_bytes);
  }
  Status DoAllGatherV(const Call& call, const char* send, char* receive,
                      std::span<const int64_t> bytes) override {
    std::vector<int64_t> own(size(), bytes[rank()]);
    own[rank()] = 0;
    List(call, std::move(own));
    return to_->AllGatherV(call.phase, send, receive, bytes);
  }
  Status DoBroadcast(const Call& call, char* data, int64_t bytes, int root) override {
    List(call, {});
    return to_->Broadcast(call.phase, data, bytes, root);
  }
  Status DoAllReduce(const Call& call, Reduction reduction, std::span<int64_t> values) override {
    List(call, {static_cast<int64_t>(values.size_bytes())});
    return reduction == Reduction::kSum ? to_->AllReduceSum(call.phase, values)
                                        : to_->AllReduceMax(call.phase, values);
  }

  Communicator* to_;
  std::vector<TinyCall>* calls_;
};

class TinyCpuBackend final : public TinyParts {
 public:
  explicit TinyCpuBackend(const TinySetup& setup)
      : embedding_(setup.embedding, setup.plan, setup.communicator, setup.pool),
        step_(setup.step, setup.graph, &embedding_, setup.communicator, setup.pool) {}
  EmbeddingState<float>* embedding() override { return &embedding_; }
  Step<float>* step() override { return &step_; }

 private:
  ShardedEmbedding<float> embedding_;
  TrainStep<float> step_;
};

// One rank's run. `logits` of rows below this rank's leaves are written at their places.
class Rank {
 public:
  Rank(const TinyTraining& training, const Spread& spread, const ShardPlan* plan,
       Communicator* communicator)
      : training_(training),
        communicator_(communicator),
        pool_(spread.threads),
        graph_(training.model.graph()),
        tables_(Tables(training)),
        parts_(MakeParts(spread, {.step = StepOptions(training, spread),
                                  .embedding = TableOptions(training, spread),
                                  .evaluated_rows = kEvaluatedRows,
                                  .graph = &graph_,
                                  .plan = plan,
                                  .communicator = communicator,
                                  .pool = &pool_})),
        step_(*parts_->step()) {
    step_.set_steps(training.steps_before);
    step_.set_optimizer_step_offset(training.optimizer_steps_before);
  }

  void Train(float* logits) {
    std::vector<LocalBatch> batches;
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      int64_t begin = 0;
      for (const int64_t rows : training_.batch_rows) {
        batches.push_back(
            MakeBatch(begin, rows, communicator_->rank(), communicator_->size(), training_));
        begin += rows;
      }
    }
    const size_t steps = std::min(batches.size(), training_.stop_after);
    for (size_t i = 0; i < steps && error_.empty(); ++i) {
      const LocalBatch* const next = i + 1 < batches.size() ? &batches[i + 1] : nullptr;
      const int64_t requests =
          training_.requests ? training_.requests(communicator_->rank(), i) : 0;
      const StatusOr<StepResult> result =
          step_.Run(batches[i], next, training_.learning_rate, requests);
      if (result.ok()) steps_.push_back(*result);
      if (!result.ok()) error_ = result.status().message();
      if (training_.evaluate && i == 1) Evaluate(logits);
    }
    if (training_.evaluate && error_.empty()) Evaluate(logits + kEvaluatedRows);
    communicator_->Enter(Activity::kFinish);
    const auto weights = [this]() -> StatusOr<float*> {
      ELASTOR_RETURN_IF_ERROR(step_.Settle());
      return step_.weights();
    };
    const StateView state = {&graph_.parameters(), weights, step_.optimizer(), &tables_,
                             parts_->embedding()};
    const StatusOr<std::string> digest = StateDigest({}, state, *communicator_);
    CHECK(digest.ok()) << digest.status().message();
    digest_ = *digest;
  }

  // Drops what uses the communicator.
  void Leave() { parts_.reset(); }

  const std::vector<StepResult>& steps() const { return steps_; }
  const std::string& error() const { return error_; }
  const std::string& digest() const { return digest_; }

 private:
  static std::unique_ptr<TinyParts> MakeParts(const Spread& spread, const TinySetup& setup) {
    return spread.parts ? spread.parts(setup) : std::make_unique<TinyCpuBackend>(setup);
  }

  void Evaluate(float* logits) {
    communicator_->Enter(Activity::kEvaluate);
    const LocalBatch batch = MakeBatch(kEvaluatedIndex, kEvaluatedRows, communicator_->rank(),
                                       communicator_->size(), training_);
    float* const own = logits + (batch.first_index - kEvaluatedIndex);
    const Status status = step_.Evaluate(batch, [own](const EvaluatedRows<float>& pass) {
      for (int64_t i = 0; i < pass.rows; ++i)
        own[pass.begin + i] = pass.logits.At(i, pass.logits.features - 1);
    });
    CHECK(status.ok()) << status.message();
  }

  const TinyTraining& training_;
  Communicator* communicator_;
  ThreadPool pool_;
  const Graph graph_;
  const std::vector<TableSpec> tables_;
  std::unique_ptr<TinyParts> parts_;
  Step<float>& step_;
  std::vector<StepResult> steps_;
  std::string error_;
  std::string digest_;
};

bool SameBits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

bool SameBits(const StepResult& a, const StepResult& b) {
  return SameBits(a.loss, b.loss) && SameBits(a.l2, b.l2) &&
         SameBits(a.gradient_norm, b.gradient_norm) && a.requests == b.requests;
}

std::string ToString(const StepResult& step) {
  char text[128];
  std::snprintf(text, sizeof(text), "loss %.17g, l2 %.17g, norm %.17g", step.loss, step.l2,
                step.gradient_norm);
  return text;
}

// Runs until the end or a step that fails.
Outcome Run(const TinyTraining& training, const Spread& spread) {
  const ShardPlan plan = MakePlan(training, spread);
  const auto communicators = MakeThreadCommunicators(spread.ranks, {.deadline_seconds = 600});
  std::vector<std::unique_ptr<Rank>> ranks(spread.ranks);
  if (spread.calls != nullptr) spread.calls->assign(spread.ranks, {});
  Outcome outcome;
  outcome.logits.resize(training.evaluate ? 2 * kEvaluatedRows : 0);
  std::vector<std::thread> threads;
  for (int r = 0; r < spread.ranks; ++r) {
    threads.emplace_back([&, r] {
      std::optional<ListingCommunicator> listing;
      if (spread.calls != nullptr) listing.emplace(communicators[r].get(), &(*spread.calls)[r]);
      Communicator* const communicator = listing ? &*listing : communicators[r].get();
      ranks[r] = std::make_unique<Rank>(training, spread, &plan, communicator);
      ranks[r]->Train(outcome.logits.data());
      if (listing) ranks[r]->Leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
  outcome.steps = ranks[0]->steps();
  outcome.error = ranks[0]->error();
  outcome.digest = ranks[0]->digest();
  for (const auto& rank : ranks) {
    CHECK_EQ(rank->error(), outcome.error);
    CHECK_EQ(rank->steps().size(), outcome.steps.size());
    for (size_t i = 0; i < outcome.steps.size(); ++i) {
      CHECK(SameBits(rank->steps()[i], outcome.steps[i])) << "step " << i;
    }
    CHECK_EQ(rank->digest(), outcome.digest);
  }
  return outcome;
}

}  // namespace

std::string ToString(const Spread& spread) {
  static constexpr const char* kPlans[] = {"row-wise", "table-wise", "replicated", "auto"};
  return std::to_string(spread.ranks) + " ranks, " + std::to_string(spread.threads) + " threads, " +
         kPlans[static_cast<int>(spread.plan)] + (spread.overlap ? ", overlapped" : "") +
         (spread.first_ids_first ? ", first ids first" : "") +
         (spread.hosts.empty() ? "" : ", by host");
}

std::string ToString(const TinyCall& call) {
  std::string text = std::string(CallName(call.kind)) + " (" + PhaseName(call.phase) + ")";
  for (const int64_t bytes : call.send) text += " " + std::to_string(bytes);
  return text;
}

std::vector<std::vector<TinyCall>> DeclaredCalls(const TinyTraining& training,
                                                 const Spread& spread) {
  const ShardPlan plan = MakePlan(training, spread);
  const ShardedEmbedding<float>::Options options = TableOptions(training, spread);
  const EmbeddingLayout layout(options.tables, options.fields);
  const bool by_host = options.hosts && GoesByHost(*options.hosts, spread.ranks, training.leaves);
  const RankHosts* const hosts = by_host ? &*options.hosts : nullptr;
  const Graph graph = training.model.graph();
  const auto buckets = graph.parameters().buckets();
  const StepShape shape = {
      .ranks = spread.ranks,
      .leaves = training.leaves,
      .buckets = {buckets.begin(), buckets.end()},
      .overlap = spread.overlap,
      .late_weights = WeightsComeLate(StepOptions(training, spread), graph, spread.ranks),
      .sample_weights = training.weight != nullptr,
      .batch_losses = training.task.batch_losses(),
      .scalar_words = ScalarWords(options.tables),
      .wire = options.wire,
      .hosts = hosts};
  const bool early = spread.overlap && spread.first_ids_first &&
                     HasEarlyRows(plan, static_cast<int>(layout.tables()), training.sparse, hosts);
  std::vector<BatchDemand> demands;
  std::unique_ptr<UniqueIds> updated;  // by the step before
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    int64_t begin = 0;
    for (const int64_t rows : training.batch_rows) {
      BatchDemand& demand = demands.emplace_back();
      demand.rows = rows;
      const auto batch_of = [&](int rank, int ranks) {
        return MakeBatch(begin, rows, rank, ranks, training).sparse;
      };
      StatusOr<RouteCounts> counted =
          CountRoutes(layout, plan, training.leaves, hosts, early ? updated.get() : nullptr,
                      [&](int r) { return batch_of(r, spread.ranks); });
      CHECK(counted.ok());
      demand.routes = std::move(counted).value();
      updated = std::make_unique<UniqueIds>(&layout);
      CHECK(updated->Build(batch_of(0, 1), /*pool=*/nullptr).ok());
      begin += rows;
    }
  }
  std::vector<std::vector<TinyCall>> calls(spread.ranks);
  for (int r = 0; r < spread.ranks; ++r) {
    for (size_t i = 0; i < demands.size(); ++i) {
      const BatchDemand* const next = i + 1 < demands.size() ? &demands[i + 1] : nullptr;
      const bool routed = spread.overlap && i > 0;
      for (const StepCall& call :
           CallsOfStep(shape, demands[i], next, routed, /*settled=*/false, r)) {
        calls[r].push_back({call.kind, call.phase, call.send});
      }
    }
  }
  return calls;
}

TestModel TinyModel(const std::string& text) {
  return MakeTestModel({.numeric_fields = kNumericFields,
                        .categorical_fields = static_cast<int64_t>(Fields().size()),
                        .embedding_width = kWidth,
                        .embedding_stddev = kStddev},
                       text);
}

TinyTraining TinyText(const std::string& text) {
  TinyTraining training = {.model = TinyModel(text), .leaves = 8};
  training.model.features.embedding_width = 8;
  training.model.outputs = 12;
  training.task = {.kind = Task::Kind::kClasses,
                   .classes = 6,
                   .row_labels = 2,
                   .learned = {{"first", 0}, {"second", 1}}};
  // By SGD: Adam makes the first steps so large that roundings grow.
  training.sparse = training.dense = OptimizerKind::kSgd;
  return training;
}

float TinyWeight(int64_t index) { return 0.25f * static_cast<float>(index * 7 % 5); }

void PrintTo(const TinyCase& test_case, std::ostream* out) { *out << test_case.name; }

std::vector<TinyCase> TinyCases() {
  using enum OptimizerKind;
  const TestModel mlp = TinyModel(kTinyMlp);
  TestModel mmoe = TinyModel(kTinyMmoe);
  mmoe.outputs = 2;
  // Of three labels the last, which rows lack, and the first.
  const Task two_of_three = {.row_labels = 3, .learned = {{"c", 2, 0.5}, {"a", 0, 1}}};
  TestModel dcn_v3 = TinyModel(kTinyDcnV3);
  dcn_v3.outputs = 3;
  const Task branches = {.branches = 2};
  // Keeps the last 3 of the bag's 0 to 4 ids.
  TestModel din = TinyModel(kTinyDin);
  din.features.sequences = {{"bag", 2, 0, 3}};
  TestModel hstu = TinyModel(kTinyHstu);
  hstu.features.sequences = {{"bag", 2, 0, 3}};
  TestModel one_trans = TinyModel(kTinyOneTrans);
  one_trans.features.sequences = {{"bag", 2, 0, 3}};
  TestModel hstu_ranker = TinyModel(kTinyHstuRanker);
  hstu_ranker.features.sequences = {{"items", 2, 0, 3}, {"done", 2, 0, 3}, {"ago", 2, 0, 3}};
  for (SequenceShape& sequence : hstu_ranker.features.sequences) sequence.parallel = true;
  return {
      {"RankElastorPaperLazyAdam", {.model = TinyModel(kTinyRankElastor), .sparse = kLazyAdam}},
      {"RankElastorPublicCodeRowWiseAdagrad",
       {.model = TinyModel(kTinyRankElastorPublicCode), .sparse = kRowWiseAdagrad, .leaves = 8}},
      {"RankMixerPaperDenseAdam", {.model = TinyModel(kTinyRankMixer), .sparse = kDenseAdam}},
      {"RankMixerPublicCodeAdagrad",
       {.model = TinyModel(kTinyRankMixerPublicCode),
        .sparse = kAdagrad,
        .dense = kAdagrad,
        .leaves = 8}},
      {"RefinedMultiProbeRecomputed", {.model = TinyModel(kTinyRefined), .leaves = 8}},
      {"MeanPool", {.model = TinyModel(kTinyMeanPool), .leaves = 8}},
      {"RefinedVectorCollapse", {.model = TinyModel(kTinyVectorCollapse), .leaves = 8}},
      {"MatrixThinkerMultiProbeRecomputed", TinyText(kTinyMatrixThinker)},
      {"MatrixProductVectorCollapse", TinyText(kTinyMatrixProduct)},
      {"Transformer", TinyText(kTinyTransformer)},
      {"DcnV2LazyAdam", {.model = TinyModel(kTinyDcnV2), .leaves = 8}},
      {"DcnV3Branches", {.model = dcn_v3, .task = branches, .leaves = 8}},
      {"DcnV3BranchesWeights",
       {.model = dcn_v3, .task = branches, .sparse = kSgd, .dense = kSgd, .weight = TinyWeight}},
      {"AutoIntLazyAdam", {.model = TinyModel(kTinyAutoInt), .leaves = 8}},
      {"DinLazyAdam", {.model = din}},
      {"HstuAutoIntWideDropout", {.model = hstu, .leaves = 8}},
      {"XDeepFmAdagrad",
       {.model = TinyModel(kTinyXDeepFm), .sparse = kAdagrad, .dense = kAdagrad, .leaves = 8}},
      {"DcnV2LowRank", {.model = TinyModel(kTinyDcnV2LowRank), .leaves = 8}},
      {"WukongLazyAdam", {.model = TinyModel(kTinyWukong), .leaves = 8}},
      {"FmAdagrad", {.model = TinyModel("fm { }"), .sparse = kAdagrad, .leaves = 8}},
      {"DeepFmLazyAdam", {.model = TinyModel(kTinyDeepFm), .leaves = 8}},
      {"IpnnLazyAdam", {.model = TinyModel(kTinyIpnn), .leaves = 8}},
      {"DcnLazyAdam", {.model = TinyModel(kTinyDcn), .leaves = 8}},
      {"MlpSgd", {.model = mlp, .sparse = kSgd, .dense = kSgd}},
      {"MlpLazyAdamNoClippingNoPenalty",
       {.model = mlp, .sparse = kLazyAdam, .leaves = 8, .clip_norm = 0, .l2 = 0}},
      {"MlpDenseAdamDecoupledDecay",
       {.model = mlp, .sparse = kDenseAdam, .leaves = 8, .decoupled_decay = 0.5}},
      {"MlpBatchNorm", {.model = TinyModel(kTinyBatchNorm), .leaves = 8}},
      {"MlpBatchNormWeights",
       {.model = TinyModel(kTinyBatchNorm), .leaves = 8, .weight = TinyWeight}},
      // By SGD: Adam makes their first steps so large that roundings grow.
      {"VitGatedDropout",
       {.model = TinyModel(kTinyVit), .sparse = kSgd, .dense = kSgd, .leaves = 8}},
      {"OneTrans", {.model = one_trans, .sparse = kSgd, .dense = kSgd, .leaves = 8}},
      {"HstuRanker", {.model = hstu_ranker, .sparse = kSgd, .dense = kSgd, .leaves = 8}},
      {"MlpMixer", {.model = TinyModel(kTinyMlpMixer), .sparse = kSgd, .dense = kSgd, .leaves = 8}},
      {"MmoeTwoLabels", {.model = mmoe, .task = two_of_three, .weight = TinyWeight}},
  };
}

double DecayDeviation(const Spread& spread) {
  constexpr double kDecay = 2, kMaps = 3;
  TinyTraining training = {.model = TinyModel(kTinyMlp),
                           .sparse = OptimizerKind::kSgd,
                           .dense = OptimizerKind::kSgd,
                           .l2 = 0};
  training.model.config.mutable_mlp()->set_dropout(0);
  training.weight = [](int64_t) { return 0.0f; };
  const std::vector<float> as_made = Train(training, spread).logits;
  training.decoupled_decay = kDecay;
  const std::vector<float> decayed = Train(training, spread).logits;
  double deviation = 0, sum = 0;
  for (size_t i = 0; i < as_made.size(); ++i) {
    const double steps = i < kEvaluatedRows ? 2 : 6;
    const double kept = std::pow(1 - training.learning_rate * kDecay, kMaps * steps);
    deviation += std::fabs(decayed[i] - kept * as_made[i]);
    sum += std::fabs(as_made[i]);
  }
  return deviation / sum;
}

Outcome Train(const TinyTraining& training, const Spread& spread) {
  const Outcome outcome = Run(training, spread);
  EXPECT_EQ(outcome.error, "") << ToString(spread);
  EXPECT_EQ(outcome.steps.size(),
            std::min(kEpochs * training.batch_rows.size(), training.stop_after))
      << ToString(spread);
  return outcome;
}

Outcome TrainUntilItFails(const TinyTraining& training, const Spread& spread) {
  const Outcome outcome = Run(training, spread);
  EXPECT_NE(outcome.error, "") << ToString(spread);
  EXPECT_LT(outcome.steps.size(), kEpochs * training.batch_rows.size()) << ToString(spread);
  return outcome;
}

std::string Differences(const Outcome& expected, const Outcome& found) {
  std::string text;
  const auto differ = [&text](const std::string& what, const std::string& a, const std::string& b) {
    text += what + ": expected " + a + ", found " + b + "\n";
  };
  if (expected.error != found.error) differ("error", expected.error, found.error);
  if (expected.digest != found.digest) differ("digest", expected.digest, found.digest);
  if (expected.steps.size() != found.steps.size()) {
    differ("steps", std::to_string(expected.steps.size()), std::to_string(found.steps.size()));
    return text;
  }
  for (size_t i = 0; i < expected.steps.size(); ++i) {
    if (SameBits(expected.steps[i], found.steps[i])) continue;
    differ("step " + std::to_string(i + 1), ToString(expected.steps[i]), ToString(found.steps[i]));
  }
  CHECK_EQ(expected.logits.size(), found.logits.size());
  for (size_t i = 0; i < expected.logits.size(); ++i) {
    if (SameBits(expected.logits[i], found.logits[i])) continue;
    differ("logit " + std::to_string(i), std::to_string(expected.logits[i]),
           std::to_string(found.logits[i]));
  }
  return text;
}

}  // namespace elastor
