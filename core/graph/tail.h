#ifndef ELASTOR_CORE_GRAPH_TAIL_H_
#define ELASTOR_CORE_GRAPH_TAIL_H_

#include <optional>

#include "core/graph/graph.h"

namespace elastor {

// The nodes behind a probe as a graph of its own, whose embeddings are the probe's matrices and
// whose parameters keep their names. REQUIRES: the nodes read nothing from before the probe.
Graph Tail(const Graph& graph, const Probe& probe);

// The matrices that the outputs are linear in, but for a bias: those of the last probe, or what
// norms right behind it make of them. None where other ops than linear ones follow.
std::optional<Probe> LinearInput(const Graph& graph);

}  // namespace elastor

#endif  // ELASTOR_CORE_GRAPH_TAIL_H_
