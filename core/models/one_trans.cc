// OneTrans (arXiv 2510.26104): one transformer over the tokens of histories, oldest first, and T
// tokens made of all other fields behind them.
//
//   H = MLP_s(h) + P for the positions h of sequence s;  X = split(MLP(E))
//   Z = X + W_o attention(Q, K, V of RMS(X));  X = Z + W_2 SiLU(W_1 RMS(Z))        a block
//   logits = linear(mean of the T tokens)
//
// Q, K, V, W_1 and W_2 are one set for the tokens of histories and an own set for each of the T.
// Attention is causal over the whole order. Of the histories' tokens only the latest ask and go on,
// block after block fewer.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/models/layers.h"
#include "core/models/models.h"

namespace elastor {
namespace {

// The tokens on their way: the histories' [history, D], if there are any, and the others [T, D].
struct Tokens {
  int64_t history = 0;  // the number of the histories' tokens
  Value of_history;
  Value others;
};

struct Network {
  GraphBuilder* graph;
  const OneTransConfig& config;

  int64_t width() const { return config.token_width(); }
  Shape others() const { return {config.tokens(), width()}; }

  // Both parts, one behind the other.
  Value Whole(const Tokens& x) const {
    return x.history == 0 ? x.others : Concat(graph, x.of_history, x.others);
  }
  // Parts of x with as many tokens as `like`.
  Tokens Parts(Value x, const Tokens& like) const {
    const int64_t all = like.history + config.tokens();
    Tokens parts = {like.history, {}, CutTokens(graph, x, all, like.history, config.tokens())};
    if (like.history > 0) parts.of_history = CutTokens(graph, x, all, 0, like.history);
    return parts;
  }
  // The same, without all but the last `count` tokens of the histories.
  Tokens Latest(const Tokens& x, int64_t count) const {
    if (count == 0) return {0, {}, x.others};
    return {count, CutTokens(graph, x.of_history, x.history, x.history - count, count), x.others};
  }
  Tokens Add(const Tokens& a, const Tokens& b) const {
    Tokens sum = {a.history, {}, graph->Add(a.others, b.others)};
    if (a.history > 0) sum.of_history = graph->Add(a.of_history, b.of_history);
    return sum;
  }
  // A norm with one gain for all tokens.
  Tokens Norm(const std::string& name, const Tokens& x) const {
    const Layer norm = elastor::Norm(graph, name, RmsNorm(width()));
    Tokens y = {x.history, {}, {}};
    if (x.history > 0) y.of_history = norm(x.of_history);
    y.others = norm(x.others);
    return y;
  }
  // Linear maps of x, `in` features a token: "name.history.suffix" shared by the histories' tokens
  // and "name.suffix", an own one for each other token.
  Tokens Map(const std::string& name, const char* suffix, const Tokens& x, int64_t in, int64_t out,
             bool bias, Activation activation = Activation::kIdentity) const {
    Tokens y = {x.history, {}, {}};
    if (x.history > 0) {
      LinearOp shared = SharedMap({x.history, in}, out, bias);
      shared.activation = activation;
      y.of_history = Linear(graph, name + ".history" + suffix, shared)(x.of_history);
    }
    LinearOp own;
    own.tokens = config.tokens();
    own.in = in;
    own.out = out;
    own.bias = bias;
    own.activation = activation;
    y.others = Linear(graph, name + suffix, own)(x.others);
    return y;
  }

  // `queries` of the histories' tokens, and all others, look at the tokens up to themselves.
  Tokens Attention(const std::string& name, const Tokens& x, int64_t queries) const {
    const Tokens asking = Latest(x, queries);
    const Value q = Whole(Map(name, ".query", asking, width(), width(), /*bias=*/false));
    const Value k = Whole(Map(name, ".key", x, width(), width(), /*bias=*/false));
    const Value v = Whole(Map(name, ".value", x, width(), width(), /*bias=*/false));
    AttentionOp op;
    op.attention.queries = queries + config.tokens();
    op.attention.keys = x.history + config.tokens();
    op.attention.heads = config.heads();
    op.attention.width = op.attention.value_width = width() / config.heads();
    op.attention.scale = 1 / std::sqrt(static_cast<double>(op.attention.width));
    op.attention.causal = true;
    if (x.history > 0) {
      op.attention.last_keys = true;
      op.sequence = 0;
      op.sequences = op.read_sequences = graph->features().encoded_sequences();
      op.others = config.tokens();
    }
    const Value inputs[] = {q, k, v};
    const LinearOp output = SharedMap({op.attention.queries, width()}, width());
    return Parts(Linear(graph, name + ".output", output)(graph->Apply(op, inputs)), asking);
  }

  Tokens FeedForward(const std::string& name, const Tokens& x) const {
    const int64_t hidden = config.expansion() * width();
    const Tokens h = Map(name, ".hidden", x, width(), hidden, /*bias=*/true, Activation::kSwish);
    return Map(name, ".output", h, hidden, width(), /*bias=*/true);
  }

  // The number of the histories' tokens, of `all`, that ask in a block.
  int64_t Queries(int64_t block, int64_t all) const {
    const int64_t last = config.blocks() - 1;
    if (block == last) return 0;
    if (!config.pyramid()) return all;
    const int64_t step = config.pyramid_multiple();
    const int64_t linear = (all * (last - block) + last - 1) / last;
    return std::min(all, (linear + step - 1) / step * step);
  }
};

// The positions of all sequences as the tokens of one history, those of the first sequence first.
// `rows` are the fields' vectors and the positions'.
Value HistoryTokens(const Network& network, Value rows) {
  GraphBuilder* const graph = network.graph;
  const FeatureShape& features = graph->features();
  AppendHistoryOp append;
  append.width = network.width();
  append.sequences = features.encoded_sequences();
  Value history;
  for (const SequenceShape& sequence : features.sequences) {
    append.positions = sequence.positions;
    const MlpOptions options = {
        .tokens = sequence.positions,
        .inputs = features.embedding_width,
        .hidden = {network.config.history_hidden().begin(), network.config.history_hidden().end()},
        .outputs = network.width(),
        .weights = LinearOp::Weights::kShared,
        .activation = Activation::kSwish};
    const Value positions = CutTokens(graph, rows, features.fields() + features.positions(),
                                      features.fields() + append.before, sequence.positions);
    const Value x = Mlp(graph, "history." + sequence.name, options)(positions);
    const Value both[] = {x, history};
    history = graph->Apply(append, std::span(both, append.before > 0 ? 2 : 1));
    append.before += append.positions;
    ++append.sequence;
  }
  return LearnedPositions(graph, {append.before, network.width()}, features.embedding_stddev,
                          "history.positions")(history);
}

// The vectors of the fields that are no histories.
Value OtherFields(GraphBuilder* graph) {
  const FeatureShape& features = graph->features();
  std::vector<bool> read(features.fields(), true);
  for (const SequenceShape& sequence : features.sequences) {
    if (!sequence.pooled) read[features.numeric_fields + sequence.field] = false;
  }
  return FieldsOf(graph, read);
}

}  // namespace

Value OneTrans(GraphBuilder* graph, const OneTransConfig& config) {
  const Network network = {graph, config};
  const FeatureShape& features = graph->features();
  const Value rows = graph->Rows();
  const bool reads_histories = graph->shape(rows).features() > features.inputs();
  Tokens x;
  if (reads_histories) {
    graph->SetRows(
        CutTokens(graph, rows, features.fields() + features.positions(), 0, features.fields()));
    x.history = features.positions();
    x.of_history = HistoryTokens(network, rows);
  }
  const Value fields = reads_histories ? OtherFields(graph) : graph->Embeddings();
  const MlpOptions tokenizer = {
      .inputs = graph->shape(fields).features(),
      .hidden = {config.tokenizer_hidden().begin(), config.tokenizer_hidden().end()},
      .outputs = network.others().features(),
      .activation = Activation::kSwish};
  x.others = Mlp(graph, "tokenizer", tokenizer)(fields);
  graph->Measure("tokens", x.others, network.others());
  const int64_t all = x.history;
  for (int64_t b = 0; b < config.blocks(); ++b) {
    const std::string name = IndexedName("block", b);
    const int64_t queries = network.Queries(b, all);
    const Tokens normal = network.Norm(name + ".attention.norm", x);
    const Tokens seen = network.Attention(name + ".attention", normal, queries);
    x = network.Add(network.Latest(x, queries), seen);
    graph->Measure(name + ".attention", x.others, network.others());
    const Tokens change = network.FeedForward(name + ".ffn", network.Norm(name + ".ffn.norm", x));
    x = network.Add(x, change);
    graph->Measure(name + ".ffn", x.others, network.others());
  }
  MeanPoolOp mean;
  mean.tokens = config.tokens();
  mean.width = network.width();
  LinearOp head;
  head.in = network.width();
  head.out = graph->outputs();
  return Linear(graph, "head", head)(graph->Apply(mean, x.others));
}

}  // namespace elastor
