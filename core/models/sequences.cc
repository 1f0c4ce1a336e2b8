// Encoders of behaviour sequences: each takes the positions of one off the end of E, the last
// sequence first, and puts one vector in the sequence's place among the fields.
#include "core/models/layers.h"
#include "core/models/models.h"

namespace elastor {
namespace {

// Deep Interest Network (Zhou et al. 2018): "din.FIELD.hidden0", ... and "din.FIELD.score".
Value TargetAttention(GraphBuilder* graph, const DinConfig& config, TargetAttentionOp op,
                      const std::string& field, Value e) {
  op.hidden.assign(config.hidden().begin(), config.hidden().end());
  op.activation = GateActivation(config.activation());
  op.softmax = config.softmax();
  std::vector<int> parameters;
  for (int64_t i = 0; i < op.layers(); ++i) {
    const int64_t in = op.layer_in(i);
    const int64_t out = op.layer_out(i);
    const std::string name = i + 1 < op.layers() ? IndexedName("din." + field + ".hidden", i)
                                                 : "din." + field + ".score";
    parameters.push_back(
        graph->Parameter(name + ".weight", {out, in}, Init::XavierNormal(in, out), Decay::kDense));
    if (!op.has_bias(i)) continue;
    parameters.push_back(graph->Parameter(name + ".bias", {out}, Init::Constant(0), Decay::kNone));
  }
  return graph->Apply(op, e, parameters);
}

}  // namespace

void EncodeSequences(GraphBuilder* graph, const SequencesConfig& config) {
  const FeatureShape& features = graph->features();
  TargetAttentionOp op;
  op.fields = features.fields() + features.positions();
  op.width = features.row_width();
  op.sequence = op.sequences = features.encoded_sequences();
  Value e = graph->Rows();
  for (auto s = features.sequences.rbegin(); s != features.sequences.rend(); ++s) {
    if (s->pooled) continue;
    op.fields -= s->positions;
    op.positions = s->positions;
    op.field = features.numeric_fields + s->field;
    op.target = features.numeric_fields + s->target;
    --op.sequence;
    e = TargetAttention(graph, config.din(), op, s->name, e);
  }
  if (features.encoded_sequences() > 0) graph->SetRows(e);
}

}  // namespace elastor
