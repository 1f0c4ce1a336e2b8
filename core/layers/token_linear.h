#ifndef ELASTOR_CORE_LAYERS_TOKEN_LINEAR_H_
#define ELASTOR_CORE_LAYERS_TOKEN_LINEAR_H_

#include <string>
#include <vector>

#include "core/layers/module.h"

namespace elastor {

enum class Sharing { kOwnWeights, kSharedWeights };
enum class Bias { kNone, kAdded };

// One linear map per token: y_t = act(W_t x_t + b_t) for x = [x_1 .. x_T], x_t of `in` features.
// W: [T, out, in] (own) or [out, in] (shared, or T = 1); b: [T, out] or [out]. Weights Xavier
// normal, biases zero. With T = 1 it is the plain linear layer. Backward may be given an empty dx.
template <typename T>
class TokenLinear final : public Module<T> {
 public:
  TokenLinear(ModelBuilder* builder, const std::string& name, int64_t tokens, int64_t in,
              int64_t out, Activation activation, Sharing sharing, Bias bias = Bias::kAdded);

  int64_t multiply_adds() const override { return tokens_ * in_ * out_; }
  void Prepare(const T* parameters) override;

 private:
  void DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const override;
  void DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                  Panels<T> dx) const override;
  // Writes or adds the gradient of one parameter: part(i, destination, store) computes the i-th
  // map's share, `size` elements.
  template <typename Part>
  void Deliver(const Pass<T>& pass, int parameter, int64_t size, const Part& part) const;

  int64_t tokens_;
  int64_t in_;
  int64_t out_;
  int64_t maps_;  // different weight matrices: tokens, or 1 when shared
  Activation activation_;
  int weight_;
  int bias_ = -1;
  int64_t weight_offset_;
  int64_t bias_offset_ = 0;
  int derivative_ = -1;  // workspace: act'(pre-activation), then the pre-activation's gradient
  int scratch_ = -1;     // workspace: a shared weight's gradient summed over the tokens
  const T* bias_values_ = nullptr;           // null: none
  std::vector<PackedMatrix<T>> forward_;     // W, one per map
  std::vector<PackedMatrix<T>> transposed_;  // W^T
};

}  // namespace elastor

#endif  // ELASTOR_CORE_LAYERS_TOKEN_LINEAR_H_
