#ifndef ELASTOR_TESTS_TRAINER_STEP_TINY_TRAINING_H_
#define ELASTOR_TESTS_TRAINER_STEP_TINY_TRAINING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/thread_pool.h"
#include "core/graph/graph.h"
#include "core/optimizer/optimizer_options.h"
#include "embedding/embedding_state.h"
#include "embedding/shard_plan.h"
#include "embedding/sharded_embedding.h"
#include "tests/core/models/test_model.h"
#include "trainer/step/step.h"
#include "trainer/step/step_options.h"

namespace elastor {

// A few steps of a tiny model on ranks that are threads of this process, made so that a sum in
// another order, a random number keyed by the wrong thing or a row owned twice shows in the bits:
// repeated ids, multi-hot and empty bags, missing numeric values, ids first seen late, batches with
// absent leaves, dropout, clipping and L2.
struct TinyTraining {
  TestModel model;
  Task task = {};
  OptimizerKind sparse = OptimizerKind::kLazyAdam;
  OptimizerKind dense = OptimizerKind::kDenseAdam;
  int64_t leaves = 16;
  double clip_norm = 0.05;
  double l2 = 1e-3;  // of dense weights and of embedding rows
  double decoupled_decay = 0;
  double learning_rate = 0.02;
  uint64_t seed = 7;
  // Two epochs of these batches; the last one has fewer rows than leaves.
  std::vector<int64_t> batch_rows = {37, 50, 5};
  std::function<int64_t(int64_t index)> row = nullptr;   // what stands there; null: row `index`
  std::function<float(int64_t index)> weight = nullptr;  // of the row; null: none
  int64_t steps_before = 0;            // as after a resume, but with fresh weights and slots
  int64_t optimizer_steps_before = 0;  // of another run
  std::function<int64_t(int rank, size_t step)> requests = nullptr;
  bool keyed = false;   // tables find their rows by any key
  RowRules rules = {};  // of keyed tables
  WireFormats wire = {};
  bool evaluate = true;  // in the middle, while the next batch's ids may be routed, and at the end
  size_t stop_after = SIZE_MAX;  // steps, though batches follow
};

// What one rank computes with, on a device.
class TinyParts {
 public:
  virtual ~TinyParts() = default;
  virtual EmbeddingState<float>* embedding() = 0;
  virtual Step<float>* step() = 0;
};

// What the parts are made of. All it points to outlives them.
struct TinySetup {
  TrainStepOptions step;
  ShardedEmbedding<float>::Options embedding;
  int64_t evaluated_rows;  // of the largest batch that is evaluated, over all ranks
  const Graph* graph;
  const ShardPlan* plan;
  Communicator* communicator;
  ThreadPool* pool;
};

// A call to the communicator: what it is, and the bytes to each rank. An all-reduce has one entry.
struct TinyCall {
  CallKind kind;
  Phase phase;
  std::vector<int64_t> send;
  bool operator==(const TinyCall&) const = default;
};
std::string ToString(const TinyCall& call);

// How the same run is spread; no bit depends on it, but for the device.
struct Spread {
  int ranks = 1;
  int threads = 1;
  bool overlap = false;
  bool first_ids_first = false;
  PlanKind plan = PlanKind::kRowWise;
  std::vector<uint64_t> hosts = {};  // of the ranks, which unite what they send; empty: straight
  std::function<std::unique_ptr<TinyParts>(const TinySetup&)> parts = nullptr;  // null: the CPU's
  std::vector<std::vector<TinyCall>>* calls = nullptr;  // gets the calls of all steps, by rank
};
std::string ToString(const Spread& spread);

struct Outcome {
  std::vector<StepResult> steps;
  std::vector<float> logits;  // of the evaluations, in row order; of several the last
  std::string digest;         // summed over the ranks
  std::string error;          // of a step that failed, alike on all ranks; the run ends there
};

// Every model, every sparse and every dense optimizer, V = 8 and 16.
struct TinyCase {
  std::string name;
  TinyTraining training;
};
void PrintTo(const TinyCase& test_case, std::ostream* out);
std::vector<TinyCase> TinyCases();

// The model of a ModelConfig in text format, over the fields of a tiny training.
TestModel TinyModel(const std::string& text);
// Likewise of a language model: the six fields are positions, a matrix of 4 x 4 each; their two
// outputs each are read as two labels of six classes.
TinyTraining TinyText(const std::string& text);
// Models with dropout; those of tokens have as many as do not divide the features.
inline constexpr char kTinyRankElastor[] =
    "rank_elastor { tokens: 5 token_width: 10 feed_forward { expansion: 2 } dropout: 0.2 }";
inline constexpr char kTinyRankElastorPublicCode[] =
    "rank_elastor { convention: PUBLIC_CODE tokens: 5 token_width: 10 tokenizer { hidden: 12 } "
    "feed_forward { expansion: 2 } head { hidden: 20 } dropout: 0.2 }";
inline constexpr char kTinyRankMixer[] =
    "rank_mixer { tokens: 5 token_width: 10 feed_forward { expansion: 2 } dropout: 0.2 }";
inline constexpr char kTinyRankMixerPublicCode[] =
    "rank_mixer { convention: PUBLIC_CODE tokens: 5 token_width: 10 tokenizer { hidden: 12 } "
    "feed_forward { expansion: 2 } head { hidden: 20 } dropout: 0.2 }";
inline constexpr char kTinyRefined[] =
    "rank_elastor { tokens: 5 token_width: 10 blocks: 1 iterations: 3 recompute: true "
    "feed_forward { expansion: 2 } head { kind: MULTI_PROBE probes: 6 } dropout: 0.2 }";
inline constexpr char kTinyMeanPool[] =
    "rank_mixer { tokens: 5 token_width: 10 blocks: 1 head { kind: MEAN_POOL } dropout: 0.2 }";
inline constexpr char kTinyVectorCollapse[] =
    "rank_mixer { tokens: 5 token_width: 10 blocks: 1 iterations: 2 "
    "head { kind: VECTOR_COLLAPSE } dropout: 0.2 }";
inline constexpr char kTinyDcnV2[] =
    "dcn_v2 { structure: PARALLEL cross_layers: 2 hidden: [16, 8] dropout: 0.2 }";
inline constexpr char kTinyDcnV3[] =
    "dcn_v3 { exponential_layers: 1 linear_layers: 2 linear_dropout: 0.2 }";
inline constexpr char kTinyAutoInt[] =
    "auto_int { attention_layers: 2 attention_width: 6 hidden: [16, 8] dropout: 0.2 }";
inline constexpr char kTinyMmoe[] =
    "mmoe { experts: 3 expert_hidden: [9, 6] tower_hidden: 5 dropout: 0.1 }";
inline constexpr char kTinyXDeepFm[] = "x_deep_fm { maps: [7, 5] hidden: [16, 8] dropout: 0.2 }";
inline constexpr char kTinyDcnV2LowRank[] =
    "dcn_v2 { cross_layers: 2 rank: 3 experts: 3 hidden: [16, 8] }";
inline constexpr char kTinyWukong[] =
    "wukong { layers: 2 interaction_tokens: 3 compressed_tokens: 2 rank: 3 interaction_hidden: 12 "
    "hidden: 16 dropout: 0.2 }";
inline constexpr char kTinyDeepFm[] = "deep_fm { hidden: 8 dropout: 0.2 }";
inline constexpr char kTinyIpnn[] = "ipnn { hidden: 8 }";
inline constexpr char kTinyDcn[] = "dcn { cross_layers: 2 hidden: 8 dropout: 0.2 }";
inline constexpr char kTinyMlp[] = "mlp { hidden: [16, 8] dropout: 0.2 }";
inline constexpr char kTinyHstu[] =
    "auto_int { attention_layers: 1 attention_width: 6 heads: 2 use_wide: true attention_dropout: "
    "0.25 } sequences { hstu { layers: 2 heads: 2 attention_width: 3 linear_width: 4 } }";
inline constexpr char kTinyOneTrans[] =
    "one_trans { tokens: 3 token_width: 6 heads: 2 expansion: 2 tokenizer_hidden: 8 "
    "history_hidden: 5 } sequences { tokens { } }";
inline constexpr char kTinyHstuRanker[] =
    "hstu_ranker { actions: 'done' times: 'ago' token_width: 6 layers: 2 heads: 2 attention_width: "
    "3 linear_width: 2 content_hidden: 5 item_hidden: 6 head_hidden: 4 input_dropout: 0.2 "
    "dropout: 0.2 } sequences { tokens { } }";
inline constexpr char kTinyMatrixThinker[] =
    "matrix_thinker { layers: 1 iterations: 2 heads: 2 probes: 3 recompute: true dropout: 0.2 }";
inline constexpr char kTinyMatrixProduct[] =
    "matrix_thinker { layers: 1 iterations: 2 heads: 1 attention: MATRIX_PRODUCT "
    "head: VECTOR_COLLAPSE dropout: 0.2 }";
inline constexpr char kTinyTransformer[] =
    "transformer { layers: 1 heads: 2 hidden: 5 dropout: 0.2 }";
inline constexpr char kTinyVit[] =
    "vit { width: 6 layers: 2 heads: 2 hidden: 5 gated: true dropout: 0.2 }";
inline constexpr char kTinyMlpMixer[] =
    "mlp_mixer { width: 6 layers: 2 token_hidden: 5 hidden: 9 dropout: 0.2 }";
inline constexpr char kTinyDin[] = "mlp { hidden: [16, 8] } sequences { din { hidden: [12, 6] } }";
inline constexpr char kTinyBatchNorm[] = "mlp { hidden: [16, 8] batch_norm: true dropout: 0.2 }";
// Weights of samples: 0, 1, ... 4 quarters.
float TinyWeight(int64_t index);

// Trains to the end: a test failure (EXPECT) when a step failed, or when there are other steps than
// two epochs have, so that two runs that failed alike are never compared.
// REQUIRES: spread.ranks <= training.leaves. CHECKs that all ranks found the same scalars.
Outcome Train(const TinyTraining& training, const Spread& spread);
// Likewise for a training of which a step must fail.
Outcome TrainUntilItFails(const TinyTraining& training, const Spread& spread);

// Returns the calls of all steps, by rank, as the step's declaration has them (CallsOfStep).
// REQUIRES: the training evaluates nothing.
std::vector<std::vector<TinyCall>> DeclaredCalls(const TinyTraining& training,
                                                 const Spread& spread);

// Batches without weight have no gradient, so decoupled decay acts alone: logits of a model of
// three linear maps, whose biases are 0, shrink by (1 - learning rate * lambda)^3 a step, and by
// more if anything but the maps decayed. How far they are from that, relative to the logits.
double DecayDeviation(const Spread& spread);

// What differs, in one line for each; empty when every bit is the same.
std::string Differences(const Outcome& expected, const Outcome& found);

}  // namespace elastor

#endif  // ELASTOR_TESTS_TRAINER_STEP_TINY_TRAINING_H_
