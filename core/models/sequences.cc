// Encoders of behaviour sequences: each takes the positions of one off the end of E, the last
// sequence first, and puts one vector in the sequence's place among the fields.
#include "core/models/attention_layers.h"
#include "core/models/layers.h"
#include "core/models/models.h"

namespace elastor {
namespace {

// A sequence as its encoder finds it: the last of those that E still has.
struct LastSequence {
  std::string name;
  int64_t fields = 0;  // vectors of E before its positions
  int64_t positions = 0;
  int64_t width = 0;
  int64_t field = 0;  // of the vectors: its place
  int64_t target = 0;
  int64_t sequence = 0;  // its number among the sequences that have lengths
  int64_t sequences = 0;

  template <typename Op>
  Op MakeOp() const {
    Op op;
    op.fields = fields;
    op.positions = positions;
    op.width = width;
    op.sequence = sequence;
    op.sequences = sequences;
    return op;
  }
};

// Deep Interest Network (Zhou et al. 2018): "din.FIELD.hidden0", ... and "din.FIELD.score".
Value TargetAttention(GraphBuilder* graph, const DinConfig& config, const LastSequence& last,
                      Value e) {
  auto op = last.MakeOp<TargetAttentionOp>();
  op.target = last.target;
  op.field = last.field;
  op.hidden.assign(config.hidden().begin(), config.hidden().end());
  op.activation = GateActivation(config.activation());
  op.softmax = config.softmax();
  std::vector<int> parameters;
  for (int64_t i = 0; i < op.layers(); ++i) {
    const int64_t in = op.layer_in(i);
    const int64_t out = op.layer_out(i);
    const std::string name = i + 1 < op.layers() ? IndexedName("din." + last.name + ".hidden", i)
                                                 : "din." + last.name + ".score";
    parameters.push_back(
        graph->Parameter(name + ".weight", {out, in}, Init::XavierNormal(in, out), Decay::kDense));
    if (!op.has_bias(i)) continue;
    parameters.push_back(graph->Parameter(name + ".bias", {out}, Init::Constant(0), Decay::kNone));
  }
  return graph->Apply(op, e, parameters);
}

// The target behind the positions, as tokens; encode(tokens); the target's token in the field's
// place.
template <typename Encode>
Value EncodeTokens(GraphBuilder* graph, const LastSequence& last, Value e, const Encode& encode) {
  auto append = last.MakeOp<AppendTargetOp>();
  append.target = last.target;
  const Value x = encode(graph->Apply(append, e), append.tokens());
  auto read = last.MakeOp<ReadTargetOp>();
  read.field = last.field;
  const Value both[] = {e, x};
  return graph->Apply(read, both);
}

// HSTU (Zhai et al. 2024): blocks "hstu.FIELD.layer0", ... over the positions and the target.
Value TargetAwareHstu(GraphBuilder* graph, const HstuConfig& config, const LastSequence& last,
                      Value e) {
  HstuOptions block;
  block.sequence = last.sequence;
  block.sequences = last.sequences;
  block.heads = config.heads();
  block.width = config.attention_width();
  block.value_width = config.linear_width();
  return EncodeTokens(graph, last, e, [&](Value x, const Shape& tokens) {
    block.input = tokens;
    for (int64_t l = 0; l < config.layers(); ++l) {
      x = Hstu(graph, IndexedName("hstu." + last.name + ".layer", l), block)(x);
    }
    return x;
  });
}

// The behaviour sequence transformer (Chen et al. 2019): "bst.FIELD.positions" and layers
// "bst.FIELD.layer0", ... over the positions and the target.
Value TargetAwareTransformer(GraphBuilder* graph, const BstConfig& config, const LastSequence& last,
                             Value e) {
  BstOptions layer;
  layer.sequence = last.sequence;
  layer.sequences = last.sequences;
  layer.heads = config.heads();
  layer.dropout = config.dropout();
  return EncodeTokens(graph, last, e, [&](Value x, const Shape& tokens) {
    layer.input = tokens;
    const std::string name = "bst." + last.name;
    x = LearnedPositions(graph, tokens, graph->features().embedding_stddev, name + ".positions")(x);
    for (int64_t l = 0; l < config.layers(); ++l) {
      x = Bst(graph, IndexedName(name + ".layer", l), layer)(x);
    }
    return x;
  });
}

}  // namespace

void EncodeSequences(GraphBuilder* graph, const SequencesConfig& config) {
  if (config.has_tokens()) return;
  const FeatureShape& features = graph->features();
  LastSequence last;
  last.fields = features.fields() + features.positions();
  last.width = features.row_width();
  last.sequence = last.sequences = features.encoded_sequences();
  Value e = graph->Rows();
  for (auto s = features.sequences.rbegin(); s != features.sequences.rend(); ++s) {
    if (s->pooled) continue;
    last.name = s->name;
    last.fields -= s->positions;
    last.positions = s->positions;
    last.field = features.numeric_fields + s->field;
    last.target = features.numeric_fields + s->target;
    --last.sequence;
    if (config.has_hstu()) {
      e = TargetAwareHstu(graph, config.hstu(), last, e);
    } else if (config.has_bst()) {
      e = TargetAwareTransformer(graph, config.bst(), last, e);
    } else {
      e = TargetAttention(graph, config.din(), last, e);
    }
  }
  if (features.encoded_sequences() > 0) graph->SetRows(e);
}

}  // namespace elastor
