#ifndef ELASTOR_CORE_NTK_ROW_PASSES_H_
#define ELASTOR_CORE_NTK_ROW_PASSES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/graph/cpu/cpu_executor.h"
#include "core/graph/graph.h"

namespace elastor {

// Rows as a model reads them: the tables' features of node 0, [rows][table_features], and the
// fields that Pass has under the same names.
struct NtkRows {
  int64_t rows = 0;
  const float* table_features = nullptr;
  const float* numeric = nullptr;
  const int32_t* lengths = nullptr;
};

// Passes of a model over rows, in double and without dropout, on the threads of a pool. A row's
// result does not depend on the other rows.
class RowPasses {
 public:
  static constexpr int64_t kRows = 64;  // most rows of a pass

  // pool outlives the object. weights: the graph's flat array.
  RowPasses(const Graph& graph, const float* weights, ThreadPool* pool);

  const Graph& graph() const { return graph_; }  // without dropout
  int threads() const { return pool_->threads(); }

  // Calls work(thread, first, count) on the threads, for parts of the rows of one pass each.
  void ForEachPass(int64_t rows,
                   const std::function<void(int thread, int64_t first, int64_t count)>& work);

  struct Options {
    int64_t output = 0;
    const double* scales = nullptr;  // [rows] of the output's gradient; null: all 1
    GradientSink<double>* sink = nullptr;
    RowGradientSink<double>* row_sink = nullptr;  // may be null
    double* deltas = nullptr;  // if not null, receives the tables' features' gradients
  };
  // Runs forward and backward over rows [first, first + count).
  void Run(const NtkRows& rows, int64_t first, int64_t count, const Options& options, int thread);

 private:
  const Graph graph_;
  ThreadPool* const pool_;
  CpuExecutor<double> executor_;
  const std::vector<double> weights_;
  std::vector<std::unique_ptr<Workspace<double>>> workspaces_;  // by thread
};

// Returns, for each parameter, whether every use of it delivers row gradients.
std::vector<bool> WithRowGradients(const Graph& graph);

}  // namespace elastor

#endif  // ELASTOR_CORE_NTK_ROW_PASSES_H_
