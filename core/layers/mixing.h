#ifndef ELASTOR_CORE_LAYERS_MIXING_H_
#define ELASTOR_CORE_LAYERS_MIXING_H_

#include <memory>
#include <string>

#include "core/layers/module.h"
#include "core/layers/norm_layer.h"

namespace elastor {

// Token mixing X -> M, both [T, D]. Three parts, each optional but the mix itself:
//   M = post_norm(X + mix(pre_norm(X)))
//   mix: full        W vec(X) + b, W in R^{TD x TD}          (RankElastor, eq. 3)
//        block       (W (x) I_{d*}) vec(X) + b, K = TD / d*  (Theorem 3.1); b in R^K, repeated
//        transpose   blocks (i, j) <-> (j, i), no parameters (RankMixer, eq. 2)
// vec(X) is the row-major flattening of [T, D]: token after token, as tensors lie in memory; the
// paper's vec(X^T) is the same vector.
struct MixingOptions {
  enum class Kind { kFull, kBlockTranspose } kind = Kind::kFull;
  int64_t tokens = 0;
  int64_t width = 0;
  int64_t block_width = 1;  // d*; kFull only
  // Norms; width 0: left out.
  NormShape pre_norm;
  NormShape post_norm;
};

template <typename T>
class Mixing final : public Module<T> {
 public:
  Mixing(ModelBuilder* builder, const std::string& name, const MixingOptions& options);

  int64_t multiply_adds() const override;
  void Prepare(const T* parameters) override;

 private:
  void DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const override;
  void DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                  Panels<T> dx) const override;
  void MixForward(Panels<const T> u, Panels<const T> residual, Panels<T> y) const;
  // du (+ residual when not empty) from ds; delivers dW and db.
  void MixBackward(const Pass<T>& pass, Panels<const T> u, Panels<const T> ds,
                   Panels<const T> residual, Panels<T> du) const;

  MixingOptions options_;
  int64_t columns_ = 0;  // K = TD / d*
  int weight_ = -1;
  int bias_ = -1;
  int64_t weight_offset_ = 0;
  int64_t bias_offset_ = 0;
  int sum_ = -1;      // workspace: X + mix(...), then its gradient
  int normal_ = -1;   // workspace: pre_norm(X), then its gradient
  int scratch_ = -1;  // workspace: dW summed over the d* interleaved problems
  const T* bias_values_ = nullptr;
  PackedMatrix<T> forward_;
  PackedMatrix<T> transposed_;
  std::unique_ptr<NormLayer<T>> pre_norm_;
  std::unique_ptr<NormLayer<T>> post_norm_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_LAYERS_MIXING_H_
