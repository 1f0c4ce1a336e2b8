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

// Mode theory checks the claims of RankElastor's theorems (core/theory) on the representations of a
// token model. Each claim comes with its bound and the measured value.

// The outcome of one claim over many representations.
struct TheoryRow {
  std::string representation;  // where they are from: "trained", "gaussian", ...
  std::string stage;           // the probe that follows X: "block0.mixing", "block0.ffn"
  Claim claim;
  int64_t samples = 0;
  int64_t holds = 0;      // number of samples that agree with the claim
  double assumption = 0;  // means over the samples; the assumption's where the claim names one
  double bound = 0;
  double measured = 0;
  double ratio = 0;  // mean of measured / bound; NaN if a bound is 0
};

// The model whose representations are measured. graph, experiment and weights outlive the object.
struct TheoryModel {
  const Graph* graph = nullptr;
  const ModelConfig* config = nullptr;  // RankElastor's or RankMixer's
  const float* weights = nullptr;       // the flat array of the graph's parameters
  uint64_t seed = 0;                    // seed of the theorems' random draws
};

// Measures the claims about representations before every mixing and P-FFN over the first `samples`
// rows of the split, with feed-forward weights drawn anew for every row. Then measures the claims
// about the model's own weights. `representation` names the resulting rows. Sums are exact, so the
// result is the same on any number of ranks and threads. Collective.
StatusOr<std::vector<TheoryRow>> MeasureTheory(const std::string& representation,
                                               const TheoryModel& model, Split split,
                                               int64_t samples, Evaluation* evaluation,
                                               Communicator* communicator);

// Measures the same claims, except those about weights, over `samples` random X of the model's
// shape, one per row: Gaussian, and products of Gaussian matrices of rank 3 and 1. Collective.
StatusOr<std::vector<TheoryRow>> MeasureRandomTheory(const TheoryModel& model, Split split,
                                                     int64_t samples, Evaluation* evaluation,
                                                     Communicator* communicator);

// Compares the parameter counts of the paper's section 3.3 with the model's parameters.
std::vector<TheoryRow> CountParameters(const TheoryModel& model);

// Returns theory.csv: a header and one line per row, numbers as "%.9g"; the field of a NaN is
// empty.
std::string TheoryCsv(const std::vector<TheoryRow>& rows);
// Returns the same for people, in columns.
std::string TheoryText(const std::vector<TheoryRow>& rows);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_THEORY_H_
