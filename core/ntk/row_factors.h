#ifndef ELASTOR_CORE_NTK_ROW_FACTORS_H_
#define ELASTOR_CORE_NTK_ROW_FACTORS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/graph/graph.h"
#include "core/ntk/row_passes.h"

namespace elastor {

// Gradients df(x_i)/d(theta) of a model's output f(x) at rows x_i with respect to the dense
// parameters, in double and without dropout. They are kept as the factors they are made of
// (RowGradientSink): a row's gradient of a linear map of in x out elements takes in + out numbers.
// The neural tangent kernel K_ij = <df(x_i)/d(theta), df(x_j)/d(theta)> is computed from these
// factors.

// A stretch of a row's factors. For a vector (in == 0) it holds `out` elements of the gradient
// itself. For products it holds `positions` pairs of x [in] and dy [out]; the gradient is the sum
// of dy x^T over them.
struct NtkFactor {
  int64_t offset = 0;
  int64_t out = 0;
  int64_t in = 0;
  int64_t positions = 1;
  int64_t size() const { return in == 0 ? out : positions * (in + out); }
};

class RowFactors {
 public:
  // pool outlives the object. weights: the graph's flat array. A round's factors take
  // row_elements numbers a row, or more where one product does.
  // REQUIRES: CheckPerSampleGradients accepts the graph.
  RowFactors(const Graph& graph, const float* weights, ThreadPool* pool, int64_t row_elements);
  ~RowFactors();

  // Parameters whose names begin with the same two parts, not counting the last part ("block0.ffn",
  // "head.output").
  struct Layer {
    std::string name;
    int64_t parameters = 0;
  };
  std::span<const Layer> layers() const { return layers_; }

  // Factors that are computed together: all of one layer, or as much of it as fits. Rounds are in
  // the layers' order.
  struct Round {
    int layer = 0;
    int64_t size = 0;  // numbers a row
    std::vector<NtkFactor> factors = {};
  };
  std::span<const Round> rounds() const { return rounds_; }

  // The factors of a round, [rows][round.size], of output `output`; and, unless null, the gradients
  // of the tables' features, [rows][table_features]. A row's result does not depend on the other
  // rows.
  void Compute(const NtkRows& rows, int64_t output, int round, double* factors, double* deltas);

 private:
  class Sink;
  struct Piece;
  struct Thread;

  std::vector<Piece> FindPieces();
  void MakeRounds(std::vector<Piece> pieces, int64_t row_elements);

  RowPasses passes_;
  std::vector<Layer> layers_;
  std::vector<Round> rounds_;
  std::vector<std::vector<Piece>> pieces_;  // by round
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_NTK_ROW_FACTORS_H_
