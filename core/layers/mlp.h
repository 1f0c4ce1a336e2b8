#ifndef ELASTOR_CORE_LAYERS_MLP_H_
#define ELASTOR_CORE_LAYERS_MLP_H_

#include <memory>
#include <string>
#include <vector>

#include "core/layers/module.h"
#include "core/layers/token_linear.h"

namespace elastor {

// Per token: hidden layers, each Linear, optional norm, activation, dropout; then a linear output
// layer. tokens = 1: the plain multi-layer perceptron.
enum class HiddenNorm {
  kNone,
  kRms,    // over each token's hidden features
  kBatch,  // of each feature over the rows of a leaf; takes the place of the linear map's bias
};
inline constexpr double kHiddenRmsEpsilon = 1e-12;  // the public code's

struct MlpOptions {
  int64_t tokens = 1;
  int64_t inputs = 0;  // per token
  std::vector<int64_t> hidden;
  int64_t outputs = 0;  // per token
  Sharing sharing = Sharing::kOwnWeights;
  Activation activation = Activation::kRelu;
  HiddenNorm hidden_norm = HiddenNorm::kNone;  // before the activation, which is then ReLU
  double dropout = 0;
};

template <typename T>
class Mlp final : public Module<T> {
 public:
  Mlp(ModelBuilder* builder, const std::string& name, const MlpOptions& options);

  int64_t multiply_adds() const override;
  void Prepare(const T* parameters) override;

 private:
  void DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const override;
  void DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                  Panels<T> dx) const override;

  struct Layer {
    std::unique_ptr<TokenLinear<T>> linear;
    std::unique_ptr<Module<T>> norm;  // may be null
    int linear_out = -1;              // workspace, with a norm
    int norm_out = -1;                // workspace, with a norm
    int out = -1;                     // workspace: after activation and dropout
    int dout = -1;                    // workspace
    uint32_t dropout_layer = 0;
  };
  MlpOptions options_;
  std::vector<Layer> hidden_;
  std::unique_ptr<TokenLinear<T>> output_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_LAYERS_MLP_H_
