// The ranker of DLRMv4 (MLPerf; meta-recsys/generative-recommenders): layers of HSTU over C
// contextual tokens, the L positions of a history, oldest first, and the candidate.
//
//   x = sqrt(d) (MLP(content) + MLP(action)) + position + W time    history and candidate
//   x = sqrt(d) W_i e_i + position_i                                contextual tokens
//   [U, V, Q, K] = W LN(x) + b, U <- SiLU(U)                        a layer
//   A = causal SiLU attention(Q, K, V);  x = x + W_o [U, A, U * LN(A)]
//   logits = MLP(LN(W [x_candidate, request fields]) * MLP(candidate's vectors))
//
// Rows have their history at the end of the L positions. Columns of the history (items, actions,
// times) are sequences that stand side by side.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/models/layers.h"
#include "core/models/models.h"

namespace elastor {
namespace {

NormShape LayerNormOfLayer(int64_t width) { return {NormKind::kLayer, width, 1e-6}; }

struct Ranker {
  GraphBuilder* graph;
  const HstuRankerConfig& config;
  const Value rows;  // of all fields, then of all positions

  const FeatureShape& features() const { return graph->features(); }
  int64_t width() const { return config.token_width(); }
  int64_t positions() const { return features().sequences[0].positions; }
  // The history's positions and the candidate.
  int64_t events() const { return positions() + 1; }
  double root() const { return std::sqrt(static_cast<double>(width())); }

  // The positions of sequence s as [L, k], of which a row has the last ones.
  Value History(int64_t s) const {
    const int64_t all = features().fields() + features().positions();
    AppendHistoryOp op;
    op.positions = features().sequences[s].positions;
    CHECK_EQ(op.positions, positions());
    op.width = features().embedding_width;
    op.sequence = s;
    op.sequences = features().encoded_sequences();
    return graph->Apply(
        op, CutTokens(graph, rows, all, features().fields() + s * op.positions, op.positions));
  }

  // The same with 0 for the candidate.
  Value WithoutCandidate(Value x) const {
    PadOp pad;
    pad.tokens = events();
    pad.width = graph->shape(x).features() / positions();
    return graph->Apply(pad, x);
  }

  // x * sigmoid(LN(x)) of a linear map of every token.
  Value Hidden(const std::string& name, Value x, const Shape& tokens, int64_t hidden) const {
    const Value h = Linear(graph, name, SharedMap(tokens, hidden))(x);
    const Value both[] = {h, Norm(graph, name + ".norm", LayerNorm(hidden))(h)};
    return graph->Apply(SigmoidGateOp{}, both);
  }

  // A hidden layer, a linear map and a norm of every token.
  Value Encode(const std::string& name, Value x, const Shape& tokens, int64_t hidden) const {
    const Value h = Hidden(name + ".hidden", x, tokens, hidden);
    const LinearOp output = SharedMap({tokens.tokens, hidden}, width());
    const Value y = Linear(graph, name + ".output", output)(h);
    return Norm(graph, name + ".norm", LayerNorm(width()))(y);
  }

  // sqrt(d) x + P.
  Value AddPositions(const std::string& name, Value x, int64_t tokens) const {
    PositionOp op;
    op.tokens = op.positions = tokens;
    op.width = width();
    op.input_scale = root();
    return graph->Apply(op, x, {Vectors(name, tokens, width())});
  }

  int Vectors(const std::string& name, int64_t count, int64_t size) const {
    return graph->Parameter(name, {count, size}, Init{.stddev = features().embedding_stddev},
                            Decay::kNone);
  }

  // What was done; with the candidate nothing yet, for which a vector is learned.
  Value Action(int64_t s) const {
    const Shape tokens = {events(), features().embedding_width};
    PositionOp op;
    op.tokens = tokens.tokens;
    op.width = tokens.width;
    const std::string name = "action." + features().sequences[s].name;
    const Value known = WithoutCandidate(History(s));
    const Value x = graph->Apply(op, known, {Vectors(name + ".candidate", 1, tokens.width)});
    return Encode(name, x, tokens, config.content_hidden());
  }

  Value Content(int64_t s) const {
    const SequenceShape& sequence = features().sequences[s];
    const Value history = History(s);
    const Value x = Concat(graph, history, Target(sequence));
    return Encode("content." + sequence.name, x, {events(), features().embedding_width},
                  config.content_hidden());
  }

  // W e, 0 for the candidate.
  Value Time(int64_t s) const {
    const LinearOp map =
        SharedMap({positions(), features().embedding_width}, width(), /*bias=*/false);
    const Layer to_tokens = Linear(graph, "time." + features().sequences[s].name, map);
    return WithoutCandidate(to_tokens(History(s)));
  }

  Value Target(const SequenceShape& sequence) const {
    return CutTokens(graph, graph->Embeddings(), features().fields(),
                     features().numeric_fields + sequence.target, 1);
  }

  // `context` contextual tokens, then the history and the candidate.
  Value HstuLayer(const std::string& name, Value x, int64_t context, bool last) const {
    const int64_t all = context + events();
    const int64_t heads = config.heads();
    const int64_t value_width = heads * config.linear_width();
    // In the last layer the candidate alone asks.
    const int64_t asking = last ? 1 : all;
    const auto of_asking = [&](Value y) { return CutTokens(graph, y, all, all - asking, asking); };
    const auto map = [&](const char* suffix, int64_t tokens, int64_t out, Activation activation) {
      LinearOp op = SharedMap({tokens, width()}, out);
      op.activation = activation;
      return Linear(graph, name + suffix, op);
    };
    const Value normal = Norm(graph, name + ".norm", LayerNormOfLayer(width()))(x);
    const Value asked = of_asking(normal);
    const Value u = map(".gate", asking, value_width, Activation::kSwish)(asked);
    const Value v = map(".value", all, value_width, Activation::kIdentity)(normal);
    const int64_t query_width = heads * config.attention_width();
    const Value q = map(".query", asking, query_width, Activation::kIdentity)(asked);
    const Value k = map(".key", all, query_width, Activation::kIdentity)(normal);
    AttentionOp op;
    op.attention = {.kind = AttentionKind::kSilu,
                    .queries = asking,
                    .keys = all,
                    .heads = heads,
                    .width = config.attention_width(),
                    .value_width = config.linear_width(),
                    .scale = 1 / std::sqrt(static_cast<double>(config.attention_width())),
                    .causal = true,
                    .last_keys = true};
    op.sequence = 0;
    op.sequences = features().encoded_sequences();
    op.others = context + 1;
    const Value inputs[] = {q, k, v};
    const Value a = graph->Apply(op, inputs);
    const Value normal_a = Norm(graph, name + ".output.norm", LayerNormOfLayer(value_width))(a);
    const Value gated = Multiply(graph, u, normal_a);
    // W_o by its three parts.
    const LinearOp part = SharedMap({asking, value_width}, width(), /*bias=*/false);
    Value y = of_asking(x);
    const auto add = [&](const char* suffix, Value z) {
      const Value dropped = graph->Dropout(z, config.dropout());
      y = graph->Add(Linear(graph, name + suffix, part)(dropped), y);
    };
    add(".output.gate", u);
    add(".output.attention", a);
    add(".output.gated", gated);
    return y;
  }
};

}  // namespace

Value HstuRanker(GraphBuilder* graph, const HstuRankerConfig& config) {
  const FeatureShape& features = graph->features();
  const Ranker ranker = {graph, config, graph->Rows()};
  const int64_t fields = features.fields();
  graph->SetRows(CutTokens(graph, ranker.rows, fields + features.positions(), 0, fields));

  std::vector<bool> in_context(fields, true), of_candidate(fields, false),
      of_request(fields, false);
  for (const int64_t field : features.request_fields) {
    of_request[field] = true;
    in_context[field] = false;
  }
  // The sum of what contents and actions make of an event, and that of its times.
  Value x, time;
  const auto add = [&](Value* sum, Value y) { *sum = sum->node < 0 ? y : graph->Add(*sum, y); };
  for (int64_t s = 0; s < features.encoded_sequences(); ++s) {
    const SequenceShape& sequence = features.sequences[s];
    in_context[features.numeric_fields + sequence.field] = false;
    if (IsContent(config, sequence.name)) {
      in_context[features.numeric_fields + sequence.target] = false;
      of_candidate[features.numeric_fields + sequence.target] = true;
      add(&x, ranker.Content(s));
    } else if (std::ranges::count(config.actions(), sequence.name) > 0) {
      add(&x, ranker.Action(s));
    } else {
      add(&time, ranker.Time(s));
    }
  }
  x = ranker.AddPositions("positions", x, ranker.events());
  if (time.node >= 0) x = graph->Add(x, time);

  const int64_t context = std::ranges::count(in_context, true);
  if (context > 0) {
    LinearOp own;
    own.tokens = context;
    own.in = features.embedding_width;
    own.out = ranker.width();
    const Value c = Linear(graph, "context", own)(FieldsOf(graph, in_context));
    AppendHistoryOp append;
    append.before = context;
    append.positions = ranker.positions();
    append.width = ranker.width();
    append.sequences = features.encoded_sequences();
    append.last = true;
    append.behind = 1;
    const Value both[] = {x, ranker.AddPositions("context.positions", c, context)};
    x = graph->Apply(append, both);
  }
  x = graph->Dropout(x, config.input_dropout());
  for (int64_t l = 0; l < config.layers(); ++l) {
    x = ranker.HstuLayer(IndexedName("layer", l), x, context, /*last=*/l + 1 == config.layers());
  }

  if (!features.request_fields.empty()) x = Concat(graph, x, FieldsOf(graph, of_request));
  const LinearOp output = SharedMap({1, graph->shape(x).features()}, ranker.width());
  x = Linear(graph, "output", output)(x);
  x = Norm(graph, "output.norm", LayerNorm(ranker.width()))(x);
  const Value candidate = FieldsOf(graph, of_candidate);
  const Shape vectors = {1, graph->shape(candidate).features()};
  const Value item = ranker.Encode("item", candidate, vectors, config.item_hidden());
  const Value z = Multiply(graph, x, item);
  const Value hidden = ranker.Hidden("head.hidden", z, {1, ranker.width()}, config.head_hidden());
  LinearOp head;
  head.in = config.head_hidden();
  head.out = graph->outputs();
  return Linear(graph, "head.output", head)(hidden);
}

}  // namespace elastor
