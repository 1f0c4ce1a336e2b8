#ifndef ELASTOR_CORE_NTK_KERNEL_PRODUCT_H_
#define ELASTOR_CORE_NTK_KERNEL_PRODUCT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/graph/graph.h"
#include "core/ntk/row_passes.h"

namespace elastor {

// The neural tangent kernel K = J J^T times a vector, in two passes over the rows and without
// forming K. It covers the dense parameters; the caller adds the tables' part from the deltas. All
// is in double; the order of sums over rows depends on the number of threads.
class KernelProduct {
 public:
  // pool outlives the object. weights: the graph's flat array.
  // REQUIRES: CheckPerSampleGradients accepts the graph.
  KernelProduct(const Graph& graph, const float* weights, ThreadPool* pool);
  ~KernelProduct();

  // gradient [flat size] += sum over rows of v[row] df(x_row)/d(theta), f being output `output`;
  // deltas [rows][table_features]: v[row] df(x_row)/d(the tables' features).
  void AddTransposed(const NtkRows& rows, int64_t output, const double* v,
                     std::span<double> gradient, double* deltas);
  // result[row] += <df(x_row)/d(theta), gradient>; deltas: as above with 1 for v[row].
  void AddProduct(const NtkRows& rows, int64_t output, std::span<const double> gradient,
                  double* result, double* deltas);

 private:
  class SummingSink;
  class ProductSink;

  RowPasses passes_;
  std::vector<bool> with_row_gradients_;
  std::vector<std::vector<double>> gradients_;  // by thread
};

}  // namespace elastor

#endif  // ELASTOR_CORE_NTK_KERNEL_PRODUCT_H_
