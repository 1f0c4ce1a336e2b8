#ifndef ELASTOR_TRAINER_EVALUATE_RANK_PROJECTION_H_
#define ELASTOR_TRAINER_EVALUATE_RANK_PROJECTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/spectrum/spectrum.h"
#include "core/task/task.h"
#include "trainer/evaluate/evaluation.h"

namespace elastor {

// Mode projection: how much of a token model's last matrix X [T, D] its head uses.

// The model whose head reads projected tokens. graph, config and weights outlive the object.
struct ProjectionModel {
  const Graph* graph = nullptr;
  const TokenModelConfig* config = nullptr;
  const float* weights = nullptr;  // the flat array of the graph's parameters
  Task task = {};
  bool grouped = false;  // rows have groups
};

// Metrics, by learned label, were every row's X its best approximation of this rank.
struct RankProjection {
  int64_t rank = 0;  // 0: X as it is
  std::vector<MetricValues> labels = {};
};

// Over all rows of the split: X as it is, then ranks 1, 2, 4, ... and min(T, D). The head is
// computed on the CPU in float32; the terms of X in double. The same bits on any number of ranks
// and threads. Collective.
StatusOr<std::vector<RankProjection>> MeasureProjections(const ProjectionModel& model, Split split,
                                                         Evaluation* evaluation,
                                                         Communicator* communicator);

// The matrix W [T, D] of a head that is linear in X, logit = <W, X> + b: of MULTI_PROBE the sum of
// out_k u_k v_k'. By label; none where the head has hidden layers.
std::vector<EffectiveRank> ScoringRanks(const ProjectionModel& model);

// projections.csv: "rank,label,rows,auc,logloss,gauc", rank 0 for X as it is; and for people.
std::string ProjectionsCsv(const std::vector<RankProjection>& projections);
std::string ProjectionsText(const std::vector<RankProjection>& projections,
                            const std::vector<EffectiveRank>& scoring);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_RANK_PROJECTION_H_
