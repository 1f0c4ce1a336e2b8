#ifndef ELASTOR_CORE_GRAPH_TAIL_H_
#define ELASTOR_CORE_GRAPH_TAIL_H_

#include <optional>

#include "core/graph/graph.h"

namespace elastor {

// Returns the nodes behind a probe as a graph whose embeddings are the probe's matrices and whose
// parameters keep their names. REQUIRES: the nodes read nothing from before the probe.
Graph Tail(const Graph& graph, const Probe& probe);

// Returns the matrices in which the outputs are linear, apart from a bias: those of the last probe,
// or the results of norms right behind it. Returns nothing if ops that are not linear follow.
std::optional<Probe> LinearInput(const Graph& graph);

}  // namespace elastor

#endif  // ELASTOR_CORE_GRAPH_TAIL_H_
