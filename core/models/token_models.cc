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
#include "core/models/models.h"
#include "core/models/token_layers.h"

namespace elastor {
namespace {

// Full mixing W vec(X) + b, or with blocks of width d* > 1 (W (x) I_{d*}) vec(X) + b (Theorem 3.1).
// vec(X) is token after token; the paper's vec(X^T) is the same vector.
Layer LearnedMixing(GraphBuilder* graph, const std::string& name, const TokenModelConfig& config) {
  const Shape shape = TokenShape(config);
  LinearOp mix;
  mix.tokens = config.mixing().block_width();
  mix.in = mix.out = shape.features() / mix.tokens;
  if (mix.tokens > 1) mix.weights = LinearOp::Weights::kInterleaved;
  const bool public_code = PublicCode(config);
  Layer pre_norm = [](Value x) { return x; };
  if (public_code) pre_norm = Norm(graph, name + ".pre_norm", RmsNorm(shape.features()));
  const Layer map = Linear(graph, name, mix);
  const Layer norm =
      Norm(graph, name + ".norm", public_code ? RmsNorm(shape.width) : LayerNorm(shape.width));
  return [=](Value x) { return norm(graph->Add(x, map(pre_norm(x)))); };
}

Layer TransposeMixing(GraphBuilder* graph, const std::string& block,
                      const TokenModelConfig& config) {
  BlockTransposeOp transpose;
  transpose.tokens = config.tokens();
  transpose.width = config.token_width();
  const Layer norm = Norm(graph, block + ".mixing.norm", LayerNorm(transpose.width));
  Layer second_norm = [](Value m) { return m; };
  if (PublicCode(config)) second_norm = Norm(graph, block + ".norm", RmsNorm(transpose.width));
  return [=](Value x) { return second_norm(norm(graph->Add(x, graph->Apply(transpose, x)))); };
}

Layer FeedForwardBlock(GraphBuilder* graph, const std::string& name,
                       const TokenModelConfig& config) {
  const Layer feed_forward = FeedForward(graph, name, config);
  if (!PublicCode(config)) return feed_forward;
  const Layer norm = Norm(graph, name + ".norm", RmsNorm(config.token_width()));
  return [=](Value m) { return graph->Add(m, feed_forward(norm(m))); };
}

// make_mixing(block's name): the mixing of a block.
template <typename MakeMixing>
Value TokenModel(GraphBuilder* graph, const TokenModelConfig& config,
                 const MakeMixing& make_mixing) {
  const Shape shape = TokenShape(config);
  Value x = Tokenizer(graph, "tokenizer", config)(graph->Embeddings());
  graph->Measure("tokens", x, shape);
  for (int64_t i = 0; i < config.blocks(); ++i) {
    const std::string block = IndexedName("block", i);
    const Layer mixing = make_mixing(block);
    const Layer feed_forward = FeedForwardBlock(graph, block + ".ffn", config);
    const Value m = graph->Measure(block + ".mixing", mixing(x), shape);
    x = graph->Dropout(feed_forward(m), config.dropout());
    graph->Measure(block + ".ffn", x, shape);
  }
  return Head(graph, "head", config)(x);
}

}  // namespace

Value RankElastor(GraphBuilder* graph, const TokenModelConfig& config) {
  return TokenModel(graph, config, [&](const std::string& block) {
    return LearnedMixing(graph, block + ".mixing", config);
  });
}

Value RankMixer(GraphBuilder* graph, const TokenModelConfig& config) {
  return TokenModel(graph, config, [&](const std::string& block) {
    return TransposeMixing(graph, block, config);
  });
}

}  // namespace elastor
