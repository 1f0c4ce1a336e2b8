#ifndef ELASTOR_EMBEDDING_NODE_FOLD_H_
#define ELASTOR_EMBEDDING_NODE_FOLD_H_

#include <cstdint>
#include <span>

#include "core/base/leaf_stack.h"
#include "embedding/id_route.h"
#include "embedding/row_math.h"
#include "embedding/wire_format.h"

namespace elastor {

// Adds a key's vectors along the leaf tree, in place, and rounds each sum to `format`. nodes: at
// least one, in ascending order; their offsets are into `vectors`. Returns the sum, which lies
// where the first node's vector lay.
template <typename T>
T* FoldInPlace(std::span<const IdRoute::Node> nodes, int64_t width, WireFormat format, T* vectors) {
  LeafStack<int64_t> stack;
  T* sums[decltype(stack)::kMaxDepth];
  const auto add_last = [&] {
    AddTo(width, sums[stack.size()], sums[stack.size() - 1]);
    RoundToWire(format, width, sums[stack.size() - 1]);
  };
  for (const IdRoute::Node& node : nodes) {
    while (stack.MergesBefore(node.leaf)) add_last();
    sums[stack.Push(node.leaf)] = vectors + node.offset;
  }
  while (stack.MergesAtEnd()) add_last();
  return sums[0];
}

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_NODE_FOLD_H_
