#ifndef ELASTOR_CORE_MODELS_CUDA_DEVICE_TOKEN_MODEL_H_
#define ELASTOR_CORE_MODELS_CUDA_DEVICE_TOKEN_MODEL_H_

#include <memory>
#include <string>
#include <vector>

#include "core/models/cuda/device_mixing.h"
#include "core/models/cuda/device_mlp.h"
#include "core/models/cuda/device_model_base.h"
#include "core/models/cuda/device_norm.h"
#include "core/models/cuda/device_tokenizer.h"

namespace elastor::cuda {

// TokenModel (core/models/token_model.h). What goes through mixing and head, X and Z, is row-major;
// what goes through P-FFNs, M and the gradients of M and Z, is token-major.
template <typename A>
class DeviceTokenModel final : public DeviceModelBase<A> {
 public:
  DeviceTokenModel(const ModelSpec& spec, const Model<float>& model,
                   const DeviceModelOptions& options, Stream* stream);

 private:
  struct Block {
    std::unique_ptr<DeviceMixing<A>> mixing;
    std::unique_ptr<DeviceNorm<A>> second_norm;  // public code's RankMixer only
    std::unique_ptr<DeviceModule<A>> feed_forward;
    uint32_t dropout_layer = 0;
    ActivationSlot m;
    ActivationSlot z;
  };

  void MakeBlock(const ModelSpec& spec, int index);
  std::unique_ptr<DeviceModule<A>> MakeFeedForward(const ModelSpec& spec, const std::string& name);

  void ForwardLayers(const ModulePass& pass, Activations<const A> e,
                     Activations<float> logits) override;
  void BackwardLayers(const ModulePass& pass, Activations<const A> e, Activations<const A> dlogits,
                      Activations<A> de) override;
  // dz: gradient of the last block's output.
  void BackwardHead(const ModulePass& pass, Activations<const A> dlogits, Activations<A> dz);
  Activations<const A> LayerOutput(const LeafShape& shape, int stage) const override;

  Activations<A> View(const LeafShape& shape, const ActivationSlot& slot) const {
    return this->context()->View(shape, slot);
  }
  // Input of block i, or of the head.
  ActivationSlot input(int block) const { return block == 0 ? x_ : blocks_[block - 1].z; }

  int64_t tokens_;
  int64_t width_;
  double dropout_;
  std::unique_ptr<DeviceTokenizer<A>> tokenizer_;
  std::vector<Block> blocks_;
  bool mean_pool_;
  bool linear_head_;
  std::unique_ptr<DeviceMlp<A>> head_;
  ActivationSlot x_;
  ActivationSlot pooled_;  // [1, D]
  // Temporary.
  ActivationSlot dz_;
  ActivationSlot dm_;
  ActivationSlot row_major_;  // in dm_'s place: a stage, or the head's dz
  ActivationSlot normed_;     // mixing's output, where second_norm follows
  ActivationSlot dpooled_;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_MODELS_CUDA_DEVICE_TOKEN_MODEL_H_
