#ifndef ELASTOR_TRAINER_STEP_THREAD_SHARES_H_
#define ELASTOR_TRAINER_STEP_THREAD_SHARES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/leaves.h"
#include "core/graph/graph.h"
#include "core/tensor/pass_leaves.h"
#include "trainer/step/step_options.h"

namespace elastor {

// Returns whether a training pass holds rows of only one leaf.
inline bool OneLeafAPass(const Graph& graph) {
  return graph.needs_whole_leaf() || graph.shares_parameters();
}

// Returns the rows of the largest training pass on the CPU.
inline int64_t TrainingPassRows(const TrainStepOptions& options, const Graph& graph) {
  const int64_t leaf_rows = (options.batch_rows + options.leaves - 1) / options.leaves;
  if (graph.needs_whole_leaf()) return leaf_rows;
  return OneLeafAPass(graph) && leaf_rows > 0 ? std::min(leaf_rows, kPassRows) : kPassRows;
}

// Returns the rows of the largest evaluation pass. For models that are applied repeatedly, an
// evaluation takes no more memory than training.
inline int64_t EvaluationPassRows(const TrainStepOptions& options, const Graph& graph) {
  if (graph.needs_whole_leaf()) return kPassRows;
  return (TrainingPassRows(options, graph) + kPanelRows - 1) / kPanelRows * kPanelRows;
}

// Returns how many neighbouring leaves share a pass of at most kPassRows rows, padding included; a
// power of two. batch_rows: rows of the whole batch.
inline int64_t PassLeavesOf(int64_t leaves, int64_t batch_rows) {
  const int64_t leaf_rows = (batch_rows + leaves - 1) / leaves;
  const int64_t padded_rows = (leaf_rows + kPanelRows - 1) / kPanelRows * kPanelRows;
  int64_t count = 1;
  while (2 * count <= kMaxPassLeaves && 2 * count * padded_rows <= kPassRows) count *= 2;
  return count;
}

// Returns whether all threads compute each leaf together, with the memory of thread 0. They do if
// passes hold whole leaves and there are fewer leaves than threads.
inline bool SharesLeaves(bool whole_leaf, const Range& own_leaves, int threads) {
  return whole_leaf && own_leaves.size() < threads;
}

// The work of one computing thread of a rank: its leaves, and the most rows of a pass.
struct ThreadShare {
  Range leaves;
  int64_t pass_rows = 0;
};

inline ThreadShare ShareOfThread(const TrainStepOptions& options, const Graph& graph,
                                 const Range& own_leaves, int thread, int threads) {
  const int64_t leaves = own_leaves.size();
  const bool whole_leaf = graph.needs_whole_leaf();
  const Range part = SharesLeaves(whole_leaf, own_leaves, threads)
                         ? Range{thread == 0 ? 0 : leaves, leaves}
                         : PartOf(thread, threads, leaves);
  // Evaluations take passes on every thread.
  int64_t pass_rows = EvaluationPassRows(options, graph);
  if (part.size() > 0) pass_rows = std::max(pass_rows, TrainingPassRows(options, graph));
  return {{own_leaves.begin + part.begin, own_leaves.begin + part.end}, pass_rows};
}

}  // namespace elastor

#endif  // ELASTOR_TRAINER_STEP_THREAD_SHARES_H_
