// RankElastor and RankMixer (RankElastor, fig. 3):
//
//   E [n, k] -> tokenizer -> X [T, D] -> (token mixing -> P-FFN) x blocks -> head -> logit
//
// With iterations t > 1 all blocks are applied t times, with the same weights.
//
// RankElastor mixes by a learned map (eq. 3) and has gated P-FFNs (eq. 4); RankMixer mixes by block
// transpose (eq. 2) and has two-layer P-FFNs. Where norms and residuals stand is the convention:
//
//                 input norm   mixing                                 P-FFN
//   paper         none         M = LN_D(X + W X)                      Z = F(M)
//   public code   RMS_nk       M = RMS_D(X + W RMS_TD(X))             Z = M + F(RMS_D(M))
//                              RankMixer: RMS_D(LN_D(X + PX))
//
// Without its map (Table 3) RankElastor mixes by block transpose, P for W, or not at all: M is the
// norm of X.
#include "core/models/models.h"
#include "core/models/token_layers.h"

namespace elastor {
namespace {

// W vec(X) + b, or with blocks of width d* > 1 (W (x) I_{d*}) vec(X) + b (Theorem 3.1). vec(X) is
// token after token; the paper's vec(X^T) is the same vector.
Layer LearnedMap(GraphBuilder* graph, const std::string& name, const TokenModelConfig& config) {
  LinearOp map;
  map.tokens = config.mixing().block_width();
  map.in = map.out = TokenShape(config).features() / map.tokens;
  if (map.tokens > 1) map.weights = LinearOp::Weights::kInterleaved;
  return Linear(graph, name, map);
}

// P vec(X).
Layer BlockTranspose(GraphBuilder* graph, const TokenModelConfig& config) {
  BlockTransposeOp transpose;
  transpose.tokens = config.tokens();
  transpose.width = config.token_width();
  return [=](Value x) { return graph->Apply(transpose, x); };
}

Layer RankElastorMixing(GraphBuilder* graph, const std::string& name,
                        const TokenModelConfig& config) {
  const Shape shape = TokenShape(config);
  const MixingConfig::Kind kind = config.mixing().kind();
  const bool mixes = kind != MixingConfig::IDENTITY;
  const bool public_code = PublicCode(config);
  Layer pre_norm = [](Value x) { return x; };
  if (public_code && mixes) pre_norm = Norm(graph, name + ".pre_norm", RmsNorm(shape.features()));
  Layer map;
  if (kind == MixingConfig::LEARNED) map = LearnedMap(graph, name, config);
  if (kind == MixingConfig::BLOCK_TRANSPOSE) map = BlockTranspose(graph, config);
  const Layer norm =
      Norm(graph, name + ".norm", public_code ? RmsNorm(shape.width) : LayerNorm(shape.width));
  if (!mixes) return norm;
  return [=](Value x) { return norm(graph->Add(x, map(pre_norm(x)))); };
}

Layer RankMixerMixing(GraphBuilder* graph, const std::string& block,
                      const TokenModelConfig& config) {
  const int64_t width = config.token_width();
  const Layer transpose = BlockTranspose(graph, config);
  const Layer norm = Norm(graph, block + ".mixing.norm", LayerNorm(width));
  Layer second_norm = [](Value m) { return m; };
  if (PublicCode(config)) second_norm = Norm(graph, block + ".norm", RmsNorm(width));
  return [=](Value x) { return second_norm(norm(graph->Add(x, transpose(x)))); };
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
  struct Block {
    std::string name;
    Layer mixing;
    Layer feed_forward;
  };
  std::vector<Block> blocks;
  for (int64_t i = 0; i < config.blocks(); ++i) {
    const std::string block = IndexedName("block", i);
    blocks.push_back({block, make_mixing(block), FeedForwardBlock(graph, block + ".ffn", config)});
  }
  for (int64_t t = 0; t < config.iterations(); ++t) {
    const std::string iteration = config.iterations() > 1 ? IndexedName("iteration", t, ".") : "";
    for (const Block& block : blocks) {
      const std::string name = iteration + block.name;
      const Value m = graph->Measure(name + ".mixing", block.mixing(x), shape);
      x = graph->Dropout(block.feed_forward(m), config.dropout());
      graph->Measure(name + ".ffn", x, shape);
    }
  }
  return Head(graph, "head", config)(x);
}

}  // namespace

Value RankElastor(GraphBuilder* graph, const TokenModelConfig& config) {
  return TokenModel(graph, config, [&](const std::string& block) {
    return RankElastorMixing(graph, block + ".mixing", config);
  });
}

Value RankMixer(GraphBuilder* graph, const TokenModelConfig& config) {
  return TokenModel(graph, config, [&](const std::string& block) {
    return RankMixerMixing(graph, block, config);
  });
}

}  // namespace elastor
