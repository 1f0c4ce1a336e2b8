// MaskNet (Wang et al. 2021): blocks whose input is multiplied by a mask made of the embeddings.
//
//   v_0 = vec(E), or its layer norm;  mask_i = W_i2 ReLU(W_i1 vec(E) + b_i1) + b_i2
//   block_i(v) = ReLU(LN(W_i (mask_i * v)))
//   serial:    v_i = block_i(v_{i-1});  logits = linear(v_L)
//   parallel:  logits = deep([block_1(v_0), ..., block_L(v_0)])
#include "core/models/deep_network.h"
#include "core/models/models.h"

namespace elastor {
namespace {

Value MaskBlock(GraphBuilder* graph, const std::string& name, const MaskNetConfig& config,
                int64_t width, Value x0, Value v) {
  const int64_t in = graph->shape(v).features();
  MlpOptions mask;
  mask.inputs = graph->shape(x0).features();
  mask.hidden = {std::max<int64_t>(1, static_cast<int64_t>(config.reduction_ratio() * in))};
  mask.outputs = in;
  LinearOp map;
  map.in = in;
  map.out = width;
  map.bias = false;
  const Value masked = Multiply(graph, v, Mlp(graph, name + ".mask", mask)(x0));
  const Value mapped = Linear(graph, name, map)(masked);
  const Value y = graph->Apply(ReluOp{}, Norm(graph, name + ".norm", LayerNorm(width))(mapped));
  return graph->Dropout(y, config.dropout());
}

}  // namespace

Value MaskNet(GraphBuilder* graph, const MaskNetConfig& config) {
  const Value x0 = graph->Embeddings();
  const int64_t features = graph->shape(x0).features();
  const bool serial = config.structure() == MaskNetConfig::SERIAL;
  Value v0 = x0;
  if (config.embedding_norm()) v0 = Norm(graph, "embedding_norm", LayerNorm(features))(x0);
  Value v = v0;
  Value blocks;
  for (int i = 0; i < config.blocks_size(); ++i) {
    const std::string name = IndexedName("block", i);
    v = MaskBlock(graph, name, config, config.blocks(i), x0, serial ? v : v0);
    if (!serial) blocks = i == 0 ? v : Concat(graph, blocks, v);
  }
  if (serial) {
    LinearOp head;
    head.in = graph->shape(v).features();
    head.out = graph->outputs();
    return Linear(graph, "head", head)(v);
  }
  MlpOptions deep;
  deep.inputs = graph->shape(blocks).features();
  deep.hidden.assign(config.hidden().begin(), config.hidden().end());
  deep.outputs = graph->outputs();
  deep.dropout = config.dropout();
  return Mlp(graph, "deep", deep)(blocks);
}

}  // namespace elastor
