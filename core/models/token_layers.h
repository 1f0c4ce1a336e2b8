#ifndef ELASTOR_CORE_MODELS_TOKEN_LAYERS_H_
#define ELASTOR_CORE_MODELS_TOKEN_LAYERS_H_

#include <string>

#include "configs/proto/experiment.pb.h"
#include "core/models/layers.h"

namespace elastor {

// Parts of models whose state is a matrix of tokens X [T, D]. `config` is resolved and valid.

// Maps embeddings E [n, k] to X. E's features are cut into T groups of ceil(nk / T), the last
// padded with zeros, and each is projected, GROUPED by weights of its own, SHARED by one map for
// all; FULL has no groups but one map R^{nk} -> R^{TD}. The projection is linear, or with hidden >
// 0 an MLP. A norm over all of E may come first.
Layer Tokenizer(GraphBuilder* graph, const std::string& name, const TokenModelConfig& config);

// A per-token feed-forward network (P-FFN): token t has weights of its own; hidden width r D.
Layer FeedForward(GraphBuilder* graph, const std::string& name, const TokenModelConfig& config);

// Maps X to the logits: takes the mean over tokens, bilinear forms u' X v, sums over the columns of
// W * X, or all of X; then a linear layer or an MLP.
Layer Head(GraphBuilder* graph, const std::string& name, const TokenModelConfig& config);

inline bool PublicCode(const TokenModelConfig& config) {
  return config.convention() == TokenModelConfig::PUBLIC_CODE;
}
inline Shape TokenShape(const TokenModelConfig& config) {
  return {config.tokens(), config.token_width()};
}

}  // namespace elastor

#endif  // ELASTOR_CORE_MODELS_TOKEN_LAYERS_H_
