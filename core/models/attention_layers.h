#ifndef ELASTOR_CORE_MODELS_ATTENTION_LAYERS_H_
#define ELASTOR_CORE_MODELS_ATTENTION_LAYERS_H_

#include <functional>
#include <string>

#include "core/models/layers.h"

namespace elastor {

// Parts of models whose tokens look at each other.

// AutoInt's interacting layer (Song et al. 2019, section 4.4) on tokens [T, in]: [T, h d] of
//
//   ReLU(norm(Attention(W_q x, W_k x, W_v x) + residual(x)))
//
// with linear maps "name.query", "name.key" and "name.value" shared by the tokens, without biases.
// residual: W_res x, "name.residual", or x itself where in = h d, or nothing. norm: layer norm of
// every token, "name.norm", or nothing.
struct InteractingOptions {
  Shape input;
  int64_t heads = 1;
  int64_t width = 0;   // h d
  bool scale = false;  // scores / sqrt(d)
  bool residual = true;
  bool layer_norm = false;
};
Layer Interacting(GraphBuilder* graph, const std::string& name, const InteractingOptions& options);

}  // namespace elastor

#endif  // ELASTOR_CORE_MODELS_ATTENTION_LAYERS_H_
