#ifndef ELASTOR_CORE_GRAPH_REWRITES_H_
#define ELASTOR_CORE_GRAPH_REWRITES_H_

#include "core/graph/graph.h"

namespace elastor {

// Rewrites of a graph that change no bit: they keep values, gradients and orders of additions, and
// make fewer passes over memory. A rewrite that would change the order in which gradients of a
// value or a parameter are added is not applied. An executor applies those for which its device has
// kernels.

// Add(x, Linear(u)), where nothing else reads the linear map's output, becomes Linear(u, residual =
// x): the addition is done as the product is stored.
Graph FuseResidualIntoLinear(const Graph& graph);

// Does the same for the last node alone, a sum of logits.
Graph FuseResidualIntoLogits(const Graph& graph);

// Norm(Add(x, y)), where nothing else reads the sum and nothing else reads y, becomes Norm(y,
// residual = x): the sum is formed as the norm reads it.
Graph FuseResidualIntoNorm(const Graph& graph);

}  // namespace elastor

#endif  // ELASTOR_CORE_GRAPH_REWRITES_H_
