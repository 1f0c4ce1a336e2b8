#ifndef ELASTOR_TESTS_CORE_GRAPH_FINITE_DIFFERENCE_H_
#define ELASTOR_TESTS_CORE_GRAPH_FINITE_DIFFERENCE_H_

#include <vector>

#include "core/graph/cpu/cpu_executor.h"
#include "core/graph/graph.h"

namespace elastor {

// Gradients in one flat array, places as in the layout; every pass is stored or added alike.
// CHECKs that a pass opens and closes every parameter once.
template <typename T>
class FlatSink final : public GradientSink<T> {
 public:
  // layout outlives the sink.
  explicit FlatSink(const ParameterLayout* layout)
      : layout_(layout), gradients_(layout->flat_size()) {}

  // Before a pass.
  void Begin(Store store) {
    store_ = store;
    opened_.assign(layout_->parameters().size(), 0);
    closed_ = opened_;
  }
  // After a pass.
  void End() const {
    for (size_t p = 0; p < opened_.size(); ++p) {
      CHECK_EQ(opened_[p], 1) << (*layout_)[static_cast<int>(p)].name;
      CHECK_EQ(closed_[p], 1) << (*layout_)[static_cast<int>(p)].name;
    }
  }
  typename GradientSink<T>::Target Open(int parameter) override {
    ++opened_[parameter];
    return {gradients_.data() + (*layout_)[parameter].offset, store_};
  }
  void Close(int parameter) override {
    CHECK_EQ(opened_[parameter], 1) << (*layout_)[parameter].name;
    ++closed_[parameter];
  }

  std::vector<T>& gradients() { return gradients_; }

 private:
  const ParameterLayout* layout_;
  Store store_ = Store::kOverwrite;
  std::vector<T> gradients_;
  std::vector<int> opened_;
  std::vector<int> closed_;
};

// [rows][encoded sequences]: lengths of every kind, none and all positions among them.
std::vector<int32_t> SequenceLengths(const FeatureShape& features, int64_t rows);

// Compares Backward with central differences of sum(c * outputs), c random, at random weights and
// embeddings: sampled elements of every parameter and of E, in double, with numeric fields some of
// whose values are missing. Also: every element of every gradient is written, statistics too, which
// are not compared; Store::kAdd gives destination + gradient bit for bit; dE of padded rows is
// zero; a pass without training gives the same outputs, where it must.
struct GradientCheck {
  bool evaluates_alike = true;
  CpuRewrites rewrites = CpuRewrites::kAll;
};
void ExpectGradients(const Graph& graph, const GradientCheck& check = {});

}  // namespace elastor

#endif  // ELASTOR_TESTS_CORE_GRAPH_FINITE_DIFFERENCE_H_
