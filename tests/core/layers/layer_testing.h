#ifndef ELASTOR_TESTS_CORE_LAYERS_LAYER_TESTING_H_
#define ELASTOR_TESTS_CORE_LAYERS_LAYER_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/layers/module.h"
#include "tests/core/layers/finite_difference.h"

namespace elastor {

// A module with its layout and plan. Its parameters are written by name, then Prepare().
template <typename M, typename T>
class Layer {
 public:
  template <typename... Args>
  explicit Layer(const Args&... args) : module_(&builder_, "layer", args...) {
    parameters_.Finish();
    weights_.resize(parameters_.flat_size());
  }

  void Set(const std::string& name, const std::vector<T>& values) {
    const ParameterInfo& p = Find(name);
    CHECK_EQ(p.size, static_cast<int64_t>(values.size())) << name;
    std::copy(values.begin(), values.end(), weights_.begin() + p.offset);
  }
  void Prepare() { module_.Prepare(weights_.data()); }
  std::vector<T> Gradient(FlatSink<T>* sink, const std::string& name) const {
    const ParameterInfo& p = Find(name);
    const auto begin = sink->gradients().begin() + p.offset;
    return {begin, begin + p.size};
  }

  M& module() { return module_; }
  const ParameterLayout& parameters() const { return parameters_; }
  const WorkspacePlan& workspace() const { return workspace_; }

 private:
  const ParameterInfo& Find(const std::string& name) const {
    return parameters_[parameters_.Find(name)];
  }

  ParameterLayout parameters_;
  WorkspacePlan workspace_;
  ModelBuilder builder_{&parameters_, &workspace_};
  M module_;
  std::vector<T> weights_;
};

// ExpectGradients for M(builder, name, args...).
template <typename M, typename... Args>
void ExpectLayerGradients(const Args&... args) {
  Layer<M, double> layer(args...);
  ExpectGradients(FromModule(&layer.module(), layer.parameters(), layer.workspace()));
}

}  // namespace elastor

#endif  // ELASTOR_TESTS_CORE_LAYERS_LAYER_TESTING_H_
