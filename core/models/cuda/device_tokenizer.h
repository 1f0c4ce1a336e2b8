#ifndef ELASTOR_CORE_MODELS_CUDA_DEVICE_TOKENIZER_H_
#define ELASTOR_CORE_MODELS_CUDA_DEVICE_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/layers/tokenizer.h"
#include "core/models/cuda/device_mlp.h"
#include "core/models/cuda/device_module.h"
#include "core/models/cuda/device_norm.h"

namespace elastor::cuda {

// Tokenizer (core/layers/tokenizer.h): E [rows, 1, nk] to X [rows, T, D]. E, dE and X are
// row-major; dX should have layout().
template <typename A>
class DeviceTokenizer final : public DeviceModule<A> {
 public:
  DeviceTokenizer(DeviceContext<A>* context, const std::string& name,
                  const TokenizerOptions& options);

  TokenLayout layout() const { return grouped_.layout; }

  void Forward(const ModulePass& pass, Activations<const A> x, Activations<A> y) override;
  void Backward(const ModulePass& pass, Activations<const A> x, Activations<const A> dy,
                Activations<A> dx) override;

 private:
  // What is projected: E itself, or the slot with its normalised, padded or token-major form.
  Activations<const A> Grouped(const ModulePass& pass, Activations<const A> e) const;
  // Cuts e's features into groups, zeros behind the last.
  void CopyGroups(Activations<const A> e, Activations<A> grouped);
  // X of `full` as the projection's tokens.
  template <typename T>
  Activations<T> Projected(Activations<T> x) const;

  DeviceContext<A>* context_;
  TokenizerOptions options_;
  std::unique_ptr<DeviceNorm<A>> norm_;
  std::unique_ptr<DeviceMlp<A>> projection_;
  bool copied_;             // Grouped is not E itself
  ActivationSlot normal_;   // norm(E), temporary
  ActivationSlot grouped_;  // kept where copied_
  ActivationSlot dgrouped_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_MODELS_CUDA_DEVICE_TOKENIZER_H_
