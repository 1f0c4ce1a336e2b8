#ifndef ELASTOR_CORE_MODELS_MODEL_LAYERS_H_
#define ELASTOR_CORE_MODELS_MODEL_LAYERS_H_

#include "core/layers/mixing.h"
#include "core/layers/mlp.h"
#include "core/layers/tokenizer.h"
#include "core/models/model_spec.h"
#include "core/kernels/norm.h"

namespace elastor {

// The layers that a ModelSpec means: convention and kind, in the layers' own options. A norm of
// width 0 is left out.

// kMlp.
MlpOptions BaselineLayers(const ModelSpec& spec);

// kRankElastor and kRankMixer (token_model.h).
TokenizerOptions TokenizerLayers(const ModelSpec& spec);
MixingOptions MixingLayers(const ModelSpec& spec);
NormShape SecondNorm(const ModelSpec& spec);       // after mixing
NormShape FeedForwardNorm(const ModelSpec& spec);  // of the residual block around a P-FFN, if any
MlpOptions TwoLayerFeedForward(const ModelSpec& spec);
MlpOptions HeadLayers(const ModelSpec& spec);

}  // namespace elastor

#endif  // ELASTOR_CORE_MODELS_MODEL_LAYERS_H_
