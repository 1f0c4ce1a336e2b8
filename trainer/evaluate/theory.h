#ifndef ELASTOR_TRAINER_EVALUATE_THEORY_H_
#define ELASTOR_TRAINER_EVALUATE_THEORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/theory/claim.h"
#include "trainer/evaluate/evaluation.h"

namespace elastor {

// Mode theory: the claims of RankElastor's theorems (core/theory), each with its bound and the
// measured value, on the representations of a token model.

// A claim over many representations.
struct TheoryRow {
  std::string representation;  // where they are from: "trained", "gaussian", ...
  std::string stage;           // the probe that follows X: "block0.mixing", "block0.ffn"
  Claim claim;
  int64_t samples = 0;
  int64_t holds = 0;      // samples that agree with the claim
  double assumption = 0;  // means over the samples; the assumption's where the claim names one
  double bound = 0;
  double measured = 0;
  double ratio = 0;  // of measured / bound; NaN where a bound is 0
};

// The model whose representations are measured. graph, experiment and weights outlive the object.
struct TheoryModel {
  const Graph* graph = nullptr;
  const ModelConfig* config = nullptr;  // RankElastor's or RankMixer's
  const float* weights = nullptr;       // the flat array of the graph's parameters
  uint64_t seed = 0;                    // of what the theorems draw
};

// The claims on the representations before every mixing and P-FFN over the first `samples` rows of
// the split, with feed-forward weights drawn anew for every row; then those on the model's own
// weights. `representation` is the rows' name. Sums are exact: the rows are the same on any number
// of ranks and threads. Collective.
StatusOr<std::vector<TheoryRow>> MeasureTheory(const std::string& representation,
                                               const TheoryModel& model, Split split,
                                               int64_t samples, Evaluation* evaluation,
                                               Communicator* communicator);

// The same claims, but for those on weights, over as many random X of the model's shape, one for
// every row: Gaussian, and products of Gaussian matrices of rank 3 and 1. Collective.
StatusOr<std::vector<TheoryRow>> MeasureRandomTheory(const TheoryModel& model, Split split,
                                                     int64_t samples, Evaluation* evaluation,
                                                     Communicator* communicator);

// What section 3.3 counts, against the model's parameters.
std::vector<TheoryRow> CountParameters(const TheoryModel& model);

// theory.csv: a header and a line a row, "%.9g"; an empty field for what is not a number.
std::string TheoryCsv(const std::vector<TheoryRow>& rows);
// The same for people, in columns.
std::string TheoryText(const std::vector<TheoryRow>& rows);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_THEORY_H_
