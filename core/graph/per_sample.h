#ifndef ELASTOR_CORE_GRAPH_PER_SAMPLE_H_
#define ELASTOR_CORE_GRAPH_PER_SAMPLE_H_

#include <string>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/parameters/gradient_sink.h"

namespace elastor {

// Gradients of every row by itself (NTK, gradient noise): a row is a leaf of its own, so a pass of
// one row into a StoringSink leaves the row's gradient; on a device, a pass over leaves of one row
// leaves all of them in LeafGradients.

// Returns a user error that names the op if a graph has no per-sample gradients because its rows
// depend on each other.
inline Status CheckPerSampleGradients(const Graph& graph) {
  if (!graph.needs_whole_leaf()) return OkStatus();
  return UserError(std::string("per-sample gradients: the model has ") + graph.whole_leaf_op() +
                   ", whose rows have no gradients of their own");
}

// Stores the gradients of one pass at the places of the layout.
template <typename T>
class StoringSink final : public GradientSink<T> {
 public:
  // layout outlives the sink.
  explicit StoringSink(const ParameterLayout* layout) : layout_(layout) {}

  // The next pass writes to `gradients`, layout->flat_size() elements; padding is left as it is.
  void Begin(T* gradients) { gradients_ = gradients; }

  typename GradientSink<T>::Target Open(int parameter) override {
    return {gradients_ + (*layout_)[parameter].offset, Store::kOverwrite};
  }
  void Close(int) override {}

 private:
  const ParameterLayout* layout_;
  T* gradients_ = nullptr;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_GRAPH_PER_SAMPLE_H_
