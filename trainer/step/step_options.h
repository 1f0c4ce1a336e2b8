#ifndef ELASTOR_TRAINER_STEP_STEP_OPTIONS_H_
#define ELASTOR_TRAINER_STEP_STEP_OPTIONS_H_

#include <cstdint>

#include "core/base/precision.h"
#include "core/optimizer/optimizer_options.h"
#include "core/task/task.h"

namespace elastor {

struct DenseOptimizerOptions {
  OptimizerOptions rule;    // SGD, Adagrad or Adam, applied to blocks of kParameterBlock
  double dense_l2 = 0;      // lambda of parameters with Decay::kDense
  double embedding_l2 = 0;  // lambda of parameters with Decay::kEmbedding
  // Decoupled decay of parameters with Decay::kDense: w = (1 - learning rate * decoupled_decay) w
  // before an update.
  double decoupled_decay = 0;
};

// Momentum m of running statistics, w <- (1 - m) w + m g, as in PyTorch's batch norm.
inline constexpr double kStatisticMomentum = 0.1;

// Most rows of one pass. A leaf with more rows takes several passes, whose gradients are added in
// order. The number is part of the sums' definition, so it must not depend on a machine's cache.
// Models that need whole leaves (batch norm) take them in one pass, and a thread's memory grows
// accordingly.
inline constexpr int64_t kPassRows = 512;

// Options of a step on any device.
struct TrainStepOptions {
  Task task;
  int64_t leaves = 16;  // V
  int64_t batch_rows =
      0;  // of the largest training batch; on the CPU where Graph::needs_whole_leaf only
  // Whether rows have weights: either all batches on every rank have them, or none has.
  bool sample_weights = false;
  uint64_t seed = 0;
  Precision precision = Precision::kFloat32;
  double clip_norm = 0;     // 0: no clipping
  double embedding_l2 = 0;  // lambda of embedding rows, for the reported penalty
  bool overlap = false;     // ids of the next batch and dense slices travel during computation
  // With overlap: so do the next batch's rows that this step does not update. On the host.
  bool first_ids_first = false;
  DenseOptimizerOptions dense;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_STEP_STEP_OPTIONS_H_
