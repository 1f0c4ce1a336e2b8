#ifndef ELASTOR_TRAINER_EVALUATE_RANK_PROJECTION_H_
#define ELASTOR_TRAINER_EVALUATE_RANK_PROJECTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/spectrum/spectrum.h"
#include "core/task/task.h"
#include "trainer/evaluate/evaluation.h"
#include "trainer/records/spectrum_record.h"

namespace elastor {

// Measures how much of a model's last matrices X [T, D] its head uses. There is one matrix per row,
// or one per position of a text. The head is everything behind the model's last probe, norms
// included.

// graph and weights outlive the object.
struct ProjectionModel {
  const Graph* graph = nullptr;
  const float* weights = nullptr;  // the flat array of the graph's parameters
  Task task = {};
  bool grouped = false;  // rows have groups
};

// Metrics, by learned label, when every X is replaced by its best approximation of this rank.
struct RankProjection {
  int64_t rank = 0;  // 0: X as it is
  std::vector<MetricValues> labels = {};
};

// Measures mode projection over all rows of the split: X as it is, then ranks 1, 2, 4, ... and
// min(T, D). The head is computed on the CPU in float32, the terms of X in double. The bits are the
// same on any number of ranks and threads. REQUIRES: nothing behind the last probe reads values
// from before it. Collective.
StatusOr<std::vector<RankProjection>> MeasureProjections(const ProjectionModel& model, Split split,
                                                         Evaluation* evaluation,
                                                         Communicator* communicator);

// Returns the effective ranks of the scoring matrices W [T, D] of a head that is linear in X,
// output = <W, X> + b. If a norm follows X, the head is linear in the normed X. For bilinear forms
// W is the sum of out_k u_k v_k'. There is one per learned label, or per class. Empty if the head
// is not linear or reads several X for one label.
std::vector<EffectiveRank> ScoringRanks(const ProjectionModel& model);

// Returns the means of ScoringRanks without setting the step; none if there are no scoring
// matrices.
std::optional<ScoringRecord> MeasureScoring(const ProjectionModel& model);

// Return the text of projections.csv, "rank,label,rows,auc,logloss,gauc,bits_per_label" with rank 0
// for X as it is, and the same for people.
std::string ProjectionsCsv(const std::vector<RankProjection>& projections);
std::string ProjectionsText(const std::vector<RankProjection>& projections,
                            const std::optional<ScoringRecord>& scoring);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_RANK_PROJECTION_H_
