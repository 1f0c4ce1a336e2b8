#ifndef ELASTOR_CORE_MODELS_TOKEN_MODEL_H_
#define ELASTOR_CORE_MODELS_TOKEN_MODEL_H_

#include <memory>
#include <vector>

#include "core/layers/mixing.h"
#include "core/layers/mlp.h"
#include "core/layers/module.h"
#include "core/layers/tokenizer.h"
#include "core/models/model.h"

namespace elastor {

// RankElastor and RankMixer (RankElastor, fig. 3):
//
//   E [n, k] -> tokenizer -> X [T, D] -> (token mixing -> P-FFN) x blocks -> head -> logit
//
// RankElastor mixes by a learned map (eq. 3) and has gated P-FFNs (eq. 4); RankMixer mixes by block
// transpose (eq. 2) and has two-layer P-FFNs. Where norms and residuals stand is the convention:
//
//                 input norm   mixing                                 P-FFN
//   paper         none         M = LN_D(X + W X)                      Z = F(M)
//   public code   RMS_nk       M = RMS_D(X + W RMS_TD(X))             Z = M + F(RMS_D(M))
//                              RankMixer: RMS_D(LN_D(X + PX))
template <typename T>
class TokenModel final : public Model<T> {
 public:
  explicit TokenModel(const ModelSpec& spec);
  int64_t multiply_adds() const override;

 private:
  struct Block {
    std::unique_ptr<Module<T>> mixing;
    std::unique_ptr<NormLayer<T>> second_norm;  // public code's RankMixer only
    std::unique_ptr<Module<T>> feed_forward;
    uint32_t dropout_layer = 0;
    // Workspace slots [T D].
    int normed = -1;  // mixing's output, where second_norm follows
    int m = -1;
    int z = -1;
  };

  void MakeBlock(const ModelSpec& spec, int index);
  std::unique_ptr<Module<T>> MakeFeedForward(const ModelSpec& spec, const std::string& name);
  void MakeHead(const ModelSpec& spec);

  void PrepareLayers(const T* parameters) override;
  void ForwardLayers(const Pass<T>& pass, Panels<const T> e, Panels<T> logits) const override;
  void BackwardLayers(const Pass<T>& pass, Panels<const T> e, Panels<const T> dlogits,
                      Panels<T> de) const override;

  int64_t tokens_;
  int64_t width_;
  double dropout_;
  std::unique_ptr<Tokenizer<T>> tokenizer_;
  std::vector<Block> blocks_;
  bool mean_pool_;
  std::unique_ptr<Mlp<T>> head_;
  // Workspace slots.
  int x_;             // [T D]: tokens
  int gradient_[2];   // [T D]: flow back through the blocks, in turn
  int pooled_ = -1;   // [D]
  int dpooled_ = -1;  // [D]
};

}  // namespace elastor

#endif  // ELASTOR_CORE_MODELS_TOKEN_MODEL_H_
