#ifndef ELASTOR_CORE_MODELS_CUDA_DEVICE_MIXING_H_
#define ELASTOR_CORE_MODELS_CUDA_DEVICE_MIXING_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/layers/mixing.h"
#include "core/models/cuda/device_linear.h"
#include "core/models/cuda/device_module.h"
#include "core/models/cuda/device_norm.h"

namespace elastor::cuda {

// Mixing (core/layers/mixing.h), with a post norm always:
//   M = post_norm(X + mix(pre_norm(X)))
// d* interleaved problems are one: [rows, K, d*] is transposed to [rows d*, K]. x is row-major; y,
// dy and dx: any layout.
template <typename A>
class DeviceMixing final : public DeviceModule<A> {
 public:
  DeviceMixing(DeviceContext<A>* context, const std::string& name, const MixingOptions& options);

  void Forward(const ModulePass& pass, Activations<const A> x, Activations<A> y) override;
  void Backward(const ModulePass& pass, Activations<const A> x, Activations<const A> dy,
                Activations<A> dx) override;

 private:
  // mixed = mix(u) and du = dmix(u)/du of dmixed; all row-major.
  void Mix(const ModulePass& pass, Activations<const A> u, Activations<A> mixed);
  void MixBackward(const ModulePass& pass, Activations<const A> u, Activations<const A> dmixed,
                   Activations<A> du);
  // The problems of W as rows [rows d*, K]: x itself with d* = 1, else its transpose, in `slot`.
  Activations<const A> Problems(const ModulePass& pass, Activations<const A> x,
                                const ActivationSlot& slot);
  template <typename T>
  Activations<T> ProblemRows(Activations<T> x) const;

  DeviceContext<A>* context_;
  MixingOptions options_;
  int64_t columns_ = 0;  // K = TD / d*; 0: block transpose
  std::unique_ptr<DeviceMap<A>> map_;
  int bias_ = -1;
  std::unique_ptr<DeviceNorm<A>> pre_norm_;
  std::unique_ptr<DeviceNorm<A>> post_norm_;
  // [T, D], row-major.
  ActivationSlot normal_;      // kept: pre_norm(X)
  ActivationSlot problems_;    // kept: u transposed
  ActivationSlot mixed_;       // mix(u); dsum in Backward
  ActivationSlot transposed_;  // its transpose
  ActivationSlot du_;
  ActivationSlot du_transposed_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_MODELS_CUDA_DEVICE_MIXING_H_
