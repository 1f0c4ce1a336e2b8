#ifndef ELASTOR_CORE_GRAPH_CPU_CPU_EXECUTOR_H_
#define ELASTOR_CORE_GRAPH_CPU_CPU_EXECUTOR_H_

#include <memory>
#include <vector>

#include "core/base/precision.h"
#include "core/base/thread_pool.h"
#include "core/graph/graph.h"
#include "core/graph/schedule.h"
#include "core/ops/cpu/kernel.h"
#include "core/tensor/panels.h"
#include "core/tensor/workspace.h"

namespace elastor {

// Rewrites that the CPU's executor applies; tests leave them out to show that no bit changes.
enum class CpuRewrites { kAll, kNone };

// Runs a graph on the CPU over the rows of one leaf or of several, in panels. Constant but for
// Prepare; several threads may run passes at once, each with a workspace of its own.
//
// A pass over a graph with batch norm, or in which nodes share parameters, has one leaf.
//
//   Embeddings(pass) is filled but for the numeric fields' features; Forward; LogitGradients(pass)
//   is filled, 0 in padded rows; Backward; EmbeddingGradients(pass) is read.
template <typename T>
class CpuExecutor {
 public:
  // The graph is copied. precision: kFloat32 or, for float on a CPU that has it, kBFloat16.
  explicit CpuExecutor(const Graph& graph, CpuRewrites rewrites = CpuRewrites::kAll,
                       Precision precision = Precision::kFloat32);

  // Takes new parameter values: the flat array of the graph's layout, which stays in place until
  // the next call. Call after every change. The threads of `pool` share the work; null: the calling
  // thread alone.
  void Prepare(const T* parameters, ThreadPool* pool = nullptr);
  // The same for values that come bucket by bucket, in order: Prepare, then every part of Repack,
  // on any threads, also while others run passes that await the bucket (Pass::await).
  void Prepare(const T* parameters, int bucket);
  void Repack(const T* parameters, int bucket, int part, int parts);

  // Returns the plan of a pass's memory (Pass::workspace).
  const WorkspacePlan& workspace_plan() const { return plan_; }

  void Forward(const Pass<T>& pass) const { Forward(pass, nullptr); }
  // Called after Forward with the same pass, in training. Delivers every parameter's gradient to
  // pass.sink exactly once.
  void Backward(const Pass<T>& pass) const { Backward(pass, nullptr); }

  // The same. By node of graph(), adds the seconds that it took to *seconds; null: does not
  // measure.
  void Forward(const Pass<T>& pass, std::vector<double>* seconds) const;
  void Backward(const Pass<T>& pass, std::vector<double>* seconds) const;

  // Returns the graph that it runs, with its rewrites.
  const Graph& graph() const { return graph_; }

  // Returns E [rows, n k], and its gradient, which is valid after Backward.
  Panels<T> Embeddings(const Pass<T>& pass) const { return View(pass, first().output); }
  Panels<const T> EmbeddingGradients(const Pass<T>& pass) const {
    return View(pass, first().doutput);
  }
  // Returns the logits and their gradient, [rows, outputs].
  Panels<const T> Logits(const Pass<T>& pass) const { return View(pass, last().output); }
  Panels<T> LogitGradients(const Pass<T>& pass) const { return View(pass, last().doutput); }
  // Returns the value of the graph's probe `probe`; valid after Forward and before Backward.
  Panels<const T> ProbeOutput(const Pass<T>& pass, int probe) const {
    return View(pass, schedule_.nodes[graph_.probes()[probe].node].output);
  }

 private:
  class SharedParameters;

  const NodeSchedule& first() const { return schedule_.nodes.front(); }
  const NodeSchedule& last() const { return schedule_.nodes.back(); }
  void PlanMemory(const std::vector<CpuKernelContext>& contexts);
  Panels<T> View(const Pass<T>& pass, const BufferView& view) const;
  // Returns the memory in which a node saves values for its backward pass, for its first forward
  // run and for its repeated one.
  KernelMemory<T> MemoryOf(const Pass<T>& pass, int node) const {
    return {*pass.workspace, pass.rows(), first_saved_[node], first_flat_[node]};
  }
  KernelMemory<T> BackwardMemoryOf(const Pass<T>& pass, int node) const {
    return {*pass.workspace, pass.rows(), first_recomputed_[node], first_flat_[node]};
  }

  Graph graph_;
  std::vector<std::unique_ptr<CpuKernel<T>>> kernels_;  // by node
  Schedule schedule_;
  WorkspacePlan plan_;
  std::vector<int> first_saved_;       // by node: its kernel's first slot of activations
  std::vector<int> first_recomputed_;  // by node: the slots of these that Backward reads
  std::vector<int> first_flat_;        // by node: its kernel's first flat slot
  std::vector<int> last_buckets_;      // by node: the last one of its parameters; -1: it has none
  std::vector<int> shared_slots_;      // by parameter: flat slot of its sum; -1: it is used once
};

}  // namespace elastor

#endif  // ELASTOR_CORE_GRAPH_CPU_CPU_EXECUTOR_H_
