#ifndef ELASTOR_TESTS_CORE_LAYERS_FINITE_DIFFERENCE_H_
#define ELASTOR_TESTS_CORE_LAYERS_FINITE_DIFFERENCE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "core/layers/module.h"

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

// A module or a model, as the check sees it. What the members refer to outlives the object.
struct Differentiable {
  const ParameterLayout* parameters;
  const WorkspacePlan* workspace;
  int64_t inputs;
  int64_t outputs;
  int64_t first_input = 0;      // features before it are written by forward
  bool evaluates_alike = true;  // a pass without training gives the same y
  std::function<void(const double* parameters)> prepare;
  std::function<void(const Pass<double>& pass, Panels<double> x, Panels<double> y)> forward;
  std::function<void(const Pass<double>& pass, Panels<const double> x, Panels<const double> dy,
                     Panels<double> dx)>
      backward;
};
// module: its layout is finished and outlives the result.
Differentiable FromModule(Module<double>* module, const ParameterLayout& parameters,
                          const WorkspacePlan& workspace);

// Compares Backward with central differences of sum(c * y), c random, at random weights and inputs:
// sampled elements of every parameter and of x, in double. Also: every element of every gradient is
// written, statistics too, which are not compared; Store::kAdd gives destination + gradient bit for
// bit; dx of padded rows is zero; a pass without training gives the same y, where it must.
void ExpectGradients(const Differentiable& function);

}  // namespace elastor

#endif  // ELASTOR_TESTS_CORE_LAYERS_FINITE_DIFFERENCE_H_
