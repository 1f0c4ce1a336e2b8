#ifndef ELASTOR_CORE_MODELS_ATTENTION_LAYERS_H_
#define ELASTOR_CORE_MODELS_ATTENTION_LAYERS_H_

#include <string>

#include "core/models/layers.h"

namespace elastor {

// Parts of models whose tokens attend to each other.

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
  double dropout = 0;  // dropout rate of the attention's weights
};
Layer Interacting(GraphBuilder* graph, const std::string& name, const InteractingOptions& options);

// A block of HSTU (Zhai et al. 2024, eqs. 1 to 3, with the public code's norm before and residual
// around it) on tokens [T, in], a sequence's positions, oldest first, and behind them its target:
// [T, in] of
//
//   Q, K, V, U = SiLU(W norm(x)), h d, h d, h dv and h dv features;  A = attention(Q, K, V)
//   y = x + W_o (norm(A) * U) + b_o
//
// Linear maps shared by the tokens, "name.query", "name.key", "name.value", "name.gate" without
// biases and "name.output"; layer norms of every token, "name.norm" and "name.output_norm"; A
// pointwise aggregated and causal with one "name.position_bias" [T] for all heads, N(0, 0.02^2). A
// token's y depends on no later token; tokens behind the target give finite values.
struct HstuOptions {
  Shape input;
  int64_t sequence = -1;  // index of the sequence whose lengths apply, among `sequences`; -1: every
                          // row has all tokens
  int64_t sequences = 1;
  int64_t heads = 1;
  int64_t width = 0;        // d
  int64_t value_width = 0;  // dv
};
Layer Hstu(GraphBuilder* graph, const std::string& name, const HstuOptions& options);

// A layer of the behaviour sequence transformer (Chen et al. 2019) on tokens [T, D], a sequence's
// positions and behind them its target, as in Hstu above but seen in both directions:
//
//   s = norm(x + dropout(attention(x)));  y = norm(s + dropout(W_2 leaky_relu(W_1 s + b_1) + b_2))
//
// Softmax attention of scores / sqrt(D / heads) with maps shared by the tokens, "name.query",
// ".key" without a bias, which would change no weight, ".value" and ".output"; layer norms
// "name.attention.norm" and "name.mlp.norm"; W_1 "name.mlp.hidden" of D features, W_2
// "name.mlp.output".
struct BstOptions {
  Shape input;
  int64_t sequence = -1;  // as in HstuOptions
  int64_t sequences = 1;
  int64_t heads = 1;
  double dropout = 0;
};
Layer Bst(GraphBuilder* graph, const std::string& name, const BstOptions& options);

// A transformer's layer with norms before its sublayers (Radford et al. 2019) on tokens [T, D]:
//
//   x = x + dropout(attention(norm(x)));  x = x + dropout(MLP(norm(x)))
//
// Softmax attention of scores / sqrt(D / heads), "name.attention.norm", ".query", ".key" and
// ".value" without biases, since a key's would change no weight, and ".output"; "name.mlp.norm" and
// GatedMlp "name.mlp". Norms are layer norms of a token.
struct TransformerOptions {
  Shape shape;
  int64_t heads = 1;
  bool causal = false;
  int64_t hidden = 0;
  bool gated = false;
  Activation activation = Activation::kGelu;
  double dropout = 0;
};
Layer TransformerLayer(GraphBuilder* graph, const std::string& name,
                       const TransformerOptions& options);

}  // namespace elastor

#endif  // ELASTOR_CORE_MODELS_ATTENTION_LAYERS_H_
