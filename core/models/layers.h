#ifndef ELASTOR_CORE_MODELS_LAYERS_H_
#define ELASTOR_CORE_MODELS_LAYERS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace elastor {

// Parts of models. A layer is declared once, which declares its parameters as "name.weight" and so
// on, and is then applied to values. Every application uses the same parameters.
using Layer = std::function<Value(Value)>;

inline NormShape LayerNorm(int64_t width) { return {NormKind::kLayer, width, 1e-5}; }  // PyTorch's
inline NormShape RmsNorm(int64_t width) { return {NormKind::kRms, width, 1e-12}; }  // public code's

// Returns the sum of the features of every token of x, as one token.
Value SumPool(GraphBuilder* graph, Value x, Shape shape);

// Returns the logit of the linear model: the sum of all fields' first-order weights.
Value FirstOrderLogit(GraphBuilder* graph);

// Returns [a | b] as one token.
Value Concat(GraphBuilder* graph, Value a, Value b);

// Returns the tokens [first, first + count) of x, which has `tokens` of them.
Value CutTokens(GraphBuilder* graph, Value x, int64_t tokens, int64_t first, int64_t count);

// Returns the vectors of the fields of E for which `read` holds, one at least.
Value FieldsOf(GraphBuilder* graph, const std::vector<bool>& read);

// Returns a * b, element by element, in a's shape.
Value Multiply(GraphBuilder* graph, Value a, Value b);

// Returns x_i . x_j for i < j, pair by pair, of the tokens of x as one of `shape`.
Value DotProducts(GraphBuilder* graph, Value x, Shape shape);

// Returns the logits of a network of crosses with a deep network beside it, "head" of [crosses |
// deep].
Value CrossHead(GraphBuilder* graph, Value crosses, Value deep);

// Returns the sum of x's features and of "bias" [1], zero at the start: the logit of a model
// without a last linear map.
Value LogitSum(GraphBuilder* graph, Value x);

// Returns a linear map to `out` features that all tokens of `input` share.
LinearOp SharedMap(const Shape& input, int64_t out, bool bias = true);

// Makes a linear layer: "name.weight", Xavier normal, and "name.bias", zero.
Layer Linear(GraphBuilder* graph, const std::string& name, const LinearOp& op);

// Makes a norm: "name.gain", one, and for layer norm "name.bias", zero.
Layer Norm(GraphBuilder* graph, const std::string& name, const NormShape& norm);

// Makes a batch norm: "name.gain", one; "name.bias", zero; "name.running_mean" and
// "name.running_variance".
Layer BatchNorm(GraphBuilder* graph, const std::string& name, int64_t features);

// Adds P to x: a learned vector "positions", or another name, for each token, N(0, stddev^2).
Layer LearnedPositions(GraphBuilder* graph, const Shape& shape, double stddev,
                       const std::string& name = "positions");

// Computes K bilinear forms of each of `matrices` matrices [T, D] one after another, all by the
// same probes: p_k = u_k' M v_k as [matrices, K]. "name.right.weight" [K, D], the v_k, and
// "name.left.weight" [K, T], the u_k. For every row and matrix, M V' [T, K] is kept.
Layer MultiProbe(GraphBuilder* graph, const std::string& name, const Shape& matrix, int64_t probes,
                 int64_t matrices = 1);

// Per token: hidden layers "name.hidden0", ..., each Linear, optional norm, activation, dropout;
// then the linear layer "name.output", if there is one. tokens = 1: the plain multi-layer
// perceptron.
struct MlpOptions {
  int64_t tokens = 1;
  int64_t inputs = 0;  // per token
  std::vector<int64_t> hidden;
  int64_t outputs = 0;  // per token; 0: the last hidden layer gives the result
  LinearOp::Weights weights = LinearOp::Weights::kOwn;
  Activation activation = Activation::kRelu;
  // The norm before the activation, which must then be ReLU.
  enum class HiddenNorm {
    kNone,
    kRms,    // over each token's hidden features
    kBatch,  // each feature over the rows of a leaf; replaces the linear map's bias
  } hidden_norm = HiddenNorm::kNone;
  double dropout = 0;
};
Layer Mlp(GraphBuilder* graph, const std::string& name, const MlpOptions& options);

// `count` linear maps [count, out, in] of one input, side by side: [count, out]. op: a map of one
// token.
Layer SideBySide(GraphBuilder* graph, const std::string& name, int64_t count, const LinearOp& op);

// `count` networks of one input, side by side: [count, last width]. The first layer's maps are
// SideBySide, and those of later layers are a token's own. options.tokens must be 1, without norms.
Layer SideBySide(GraphBuilder* graph, const std::string& name, int64_t count,
                 const MlpOptions& options);

// One hidden layer, plain or gated (Shazeer 2020), with maps of the tokens and weights of `hidden`:
//   W act(V x + b) + c,   W (act(U x + a) * (V x + b)) + c
// In the plain form V, "name.hidden", is `hidden` with its activation. In the gated form U,
// "name.gate", is `hidden` with its activation, and V is linear. W, "name.output", has `outputs`
// outputs; c exists only with output_bias.
Layer GatedMlp(GraphBuilder* graph, const std::string& name, const LinearOp& hidden, bool gated,
               int64_t outputs, bool output_bias = true);

}  // namespace elastor

#endif  // ELASTOR_CORE_MODELS_LAYERS_H_
