#ifndef ELASTOR_CORE_LAYERS_TOKENIZER_H_
#define ELASTOR_CORE_LAYERS_TOKENIZER_H_

#include <memory>
#include <string>

#include "core/layers/mlp.h"
#include "core/layers/module.h"
#include "core/layers/norm_layer.h"
#include "core/layers/token_linear.h"

namespace elastor {

// Embeddings E [n k], flattened, to T tokens of width D. E is cut into T groups of ceil(nk / T)
// features, the last padded with zeros, and each is projected:
//   kGrouped: by weights of its own      kShared: by one map for all
//   kFull: no groups, one map R^{nk} -> R^{TD}
// by a linear map, or with hidden > 0 an MLP: Linear, optional RMS norm, ReLU, dropout, Linear.
struct TokenizerOptions {
  enum class Kind { kGrouped, kShared, kFull } kind = Kind::kGrouped;
  int64_t inputs = 0;  // n k
  int64_t tokens = 0;
  int64_t width = 0;
  int64_t hidden = 0;
  bool hidden_norm = false;  // the public code's RMS norm in the hidden layer
  double dropout = 0;        // hidden layer
  NormShape norm;            // of E, before; width 0: none

  // What is projected: T * ceil(nk / T), or nk (kFull).
  int64_t grouped_features() const;
  MlpOptions projection() const;
};

template <typename T>
class Tokenizer final : public Module<T> {
 public:
  Tokenizer(ModelBuilder* builder, const std::string& name, const TokenizerOptions& options);

  int64_t multiply_adds() const override;
  void Prepare(const T* parameters) override;

 private:
  void DoForward(const Pass<T>& pass, Panels<const T> x, Panels<T> y) const override;
  void DoBackward(const Pass<T>& pass, Panels<const T> x, Panels<const T> dy,
                  Panels<T> dx) const override;
  // The projection's input: E itself, or the slot that holds its normalised or padded form.
  Panels<const T> Grouped(const Pass<T>& pass, Panels<const T> x) const;

  TokenizerOptions options_;
  int64_t grouped_features_;
  int grouped_ = -1;   // workspace: normalised and padded E; its gradient in Backward
  int dgrouped_ = -1;  // workspace
  std::unique_ptr<NormLayer<T>> norm_;
  std::unique_ptr<Mlp<T>> projection_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_LAYERS_TOKENIZER_H_
