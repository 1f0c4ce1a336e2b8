#ifndef ELASTOR_TRAINER_STEP_THREAD_SHARES_H_
#define ELASTOR_TRAINER_STEP_THREAD_SHARES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/leaf_stack.h"
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

// One pass of a training step over rows of one thread's leaves.
struct StepPass {
  Range node;          // its leaves: one, of which it may have only some rows, or several
  Range rows;          // of the batch
  int64_t node_rows;   // of all passes of the node
  int64_t first_leaf;  // the node's first present leaf
  bool first_of_node;
  bool last_of_node;
  bool last_node;  // no other node with rows follows on this thread
};

// Returns the passes of a thread with the leaves `own` of `leaves`, in order. largest: the most
// leaves of a pass. pass_rows: the most rows of a pass over one leaf.
inline std::vector<StepPass> PassesOfThread(const Range& own, int64_t leaves, int64_t batch_rows,
                                            int64_t largest, int64_t pass_rows) {
  const auto rows_of = [&](int64_t leaf) { return RowsOfLeaf(leaf, leaves, batch_rows); };
  int64_t last = own.end - 1;
  while (last >= own.begin && rows_of(last).size() == 0) --last;
  std::vector<StepPass> passes;
  for (int64_t leaf = own.begin; leaf <= last;) {
    const Range node = NodeFrom(leaf, own.end, largest);
    const Range rows = {rows_of(node.begin).begin, rows_of(node.end - 1).end};
    int64_t first = node.begin;
    while (first + 1 < node.end && rows_of(first).size() == 0) ++first;
    for (int64_t row = rows.begin; row < rows.end;) {
      const int64_t next = node.size() > 1 ? rows.end : std::min(row + pass_rows, rows.end);
      passes.push_back({.node = node,
                        .rows = {row, next},
                        .node_rows = rows.size(),
                        .first_leaf = first,
                        .first_of_node = row == rows.begin,
                        .last_of_node = next == rows.end,
                        .last_node = node.end > last});
      row = next;
    }
    leaf = node.end;
  }
  return passes;
}

// Returns whether all threads compute each leaf together, with the memory of thread 0. They do if
// passes hold whole leaves and there are fewer leaves than threads.
inline bool SharesLeaves(bool whole_leaf, const Range& own_leaves, int threads) {
  return whole_leaf && own_leaves.size() < threads;
}

// Returns whether new weights come to the ranks that do not own them while the next step's passes
// run. Not if the main thread needs the communicator then, nor with whole leaves: threads that
// share one may have no pass in which they would await them. It decides the order of calls, so it
// must not depend on the threads of a rank, which ranks may have in different numbers.
inline bool WeightsComeLate(const TrainStepOptions& options, const Graph& graph, int ranks) {
  return options.overlap && ranks > 1 && options.task.batch_losses() == 0 &&
         !graph.needs_whole_leaf();
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
