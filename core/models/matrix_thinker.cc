// Matrix Thinker: a language model whose positions have matrices. The byte of position i has an
// embedding of two halves u_i, v_i in R^d, the position two learned vectors p_i, q_i:
//
//   M = u v^T + 0.1 p q^T;  M = M + O(attention(Q(N), K(N), V(N))), N = norm(M);  M = update(M)
//   logits = linear(head(norm(M)))
//
// all layers of attention and update one after another, and that T times with the same weights.
// Q, K, V and O are projections f(M) = SiLU(A M) B, whose A and B begin near the identity; norms
// are over the d x d elements, with a gain for each. What is causal is attention alone.
#include <cmath>

#include "core/models/layers.h"
#include "core/models/models.h"

namespace elastor {
namespace {

constexpr double kProjectionNoise = 0.02;
constexpr double kPositionScale = 0.1;
constexpr double kUpdateScale = 0.1;  // of Delta and Gamma at the start
constexpr double kGateBias = -2;

// A value of L positions, each a d x d matrix.
class Positions {
 public:
  Positions(GraphBuilder* graph, int64_t positions, int64_t d)
      : graph_(graph), positions_(positions), d_(d) {}

  int64_t count() const { return positions_; }
  int64_t d() const { return d_; }
  int64_t features() const { return d_ * d_; }

  // a_p b_p of [rows, terms] and [terms, columns].
  Value Product(Value a, Value b, int64_t rows, int64_t columns, int64_t terms) const {
    MatrixProductOp op;
    op.product = {positions_, rows, columns, terms};
    const Value both[] = {a, b};
    return graph_->Apply(op, both);
  }
  Value MatrixProduct(Value a, Value b) const { return Product(a, b, d_, d_, d_); }
  // The elements of x, so many a position, times one number a position.
  Value Scale(Value x, int64_t features, Value factor) const {
    return Product(x, factor, features, 1, 1);
  }
  Value Multiply(Value a, Value b) const {
    const Value both[] = {a, b};
    return graph_->Apply(MultiplyOp{}, both);
  }
  // Columns [first, first + count) of x, `width` a position.
  Value Columns(Value x, int64_t width, int64_t first, int64_t count) const {
    SliceOp op;
    op.tokens = positions_;
    op.width = width;
    op.first_column = first;
    op.slice = {positions_, count};
    return graph_->Apply(op, x);
  }

  // SiLU(A M) B, "name.row" and "name.column"; then `activation`.
  Layer Projection(const std::string& name, Activation activation = Activation::kIdentity) const {
    MatrixProductOp row;
    row.product = {positions_, d_, d_, d_};
    row.shared = MatrixProductOp::Shared::kFirst;
    row.activation = Activation::kSwish;
    MatrixProductOp column = row;
    column.shared = MatrixProductOp::Shared::kSecond;
    column.activation = activation;
    const Init init = {.stddev = kProjectionNoise, .diagonal = 1};
    const std::vector<int> a = {graph_->Parameter(name + ".row", {d_, d_}, init, Decay::kDense)};
    const std::vector<int> b = {graph_->Parameter(name + ".column", {d_, d_}, init, Decay::kDense)};
    return [graph = graph_, row, column, a, b](Value m) {
      return graph->Apply(column, graph->Apply(row, m, a), b);
    };
  }
  // M w for a learned w in R^d, "name".
  Layer Vector(const std::string& name) const {
    MatrixProductOp op;
    op.product = {positions_, d_, 1, d_};
    op.shared = MatrixProductOp::Shared::kSecond;
    const std::vector<int> w = {
        graph_->Parameter(name, {d_, 1}, Init::XavierNormal(d_, 1), Decay::kDense)};
    return [graph = graph_, op, w](Value m) { return graph->Apply(op, m, w); };
  }
  Layer MatrixNorm(const std::string& name) const {
    return Norm(graph_, name, RmsNorm(features()));
  }

 private:
  GraphBuilder* graph_;
  int64_t positions_;
  int64_t d_;
};

// u v^T + 0.1 p q^T; "positions" [L, 2d], the p and q.
Value Bytes(GraphBuilder* graph, const Positions& matrices) {
  const int64_t positions = matrices.count();
  const int64_t width = 2 * matrices.d();
  // The bytes' vectors, then the positions'.
  PadOp pad;
  pad.tokens = 2 * positions;
  pad.width = width;
  PositionOp add;
  add.tokens = 2 * positions;
  add.width = width;
  add.positions = positions;
  add.scale = std::sqrt(kPositionScale);  // of p and of q
  const std::vector<int> vectors = {
      graph->Parameter("positions", {positions, width},
                       Init{.stddev = graph->features().embedding_stddev}, Decay::kNone)};
  const Value x = graph->Apply(add, graph->Apply(pad, graph->Embeddings()), vectors);
  const Positions both(graph, 2 * positions, matrices.d());
  const Value u = both.Columns(x, width, 0, matrices.d());
  const Value v = both.Columns(x, width, matrices.d(), matrices.d());
  const Value outer = both.Product(u, v, matrices.d(), matrices.d(), 1);
  SliceOp half;
  half.tokens = 2 * positions;
  half.width = matrices.features();
  half.slice = {positions, matrices.features()};
  const Value of_bytes = graph->Apply(half, outer);
  half.first_token = positions;
  return graph->Add(of_bytes, graph->Apply(half, outer));
}

// Causal multi-head attention. A head is a block of d / h rows of Q, K and V, its scores are the
// Frobenius products <Q_i, K_j> / sqrt(elements of a block). MATRIX_PRODUCT: Q_i times the sum over
// j of w_ij K_j^T V_j.
Layer Attention(GraphBuilder* graph, const std::string& name, const Positions& matrices,
                const MatrixThinkerConfig& config) {
  const Layer query = matrices.Projection(name + ".query");
  const Layer key = matrices.Projection(name + ".key");
  const Layer value = matrices.Projection(name + ".value");
  const Layer output = matrices.Projection(name + ".output");
  const int64_t block_rows = matrices.d() / config.heads();
  AttentionOp op;
  op.attention.queries = op.attention.keys = matrices.count();
  op.attention.heads = config.heads();
  op.attention.width = op.attention.value_width = block_rows * matrices.d();
  op.attention.causal = true;
  op.attention.scale = 1 / std::sqrt(static_cast<double>(op.attention.width));
  const bool matrix_product = config.attention() == MatrixThinkerConfig::MATRIX_PRODUCT;
  if (matrix_product) op.attention.value_width = matrices.features();
  // These products are taken for every head of every position.
  MatrixProductOp key_value;
  key_value.product = {matrices.count() * config.heads(), matrices.d(), matrices.d(), block_rows};
  key_value.first_transposed = true;
  MatrixProductOp query_sum = key_value;
  query_sum.product = {key_value.product.count, block_rows, matrices.d(), matrices.d()};
  query_sum.first_transposed = false;
  return [=](Value n) {
    const Value q = query(n);
    const Value k = key(n);
    const Value v = value(n);
    const Value pair[] = {k, v};
    const Value inputs[] = {q, k, matrix_product ? graph->Apply(key_value, pair) : v};
    const Value seen = graph->Apply(op, inputs);
    const Value product[] = {q, seen};
    return output(matrix_product ? graph->Apply(query_sum, product) : seen);
  };
}

// What is added to M, of N = norm(M):
//
//   g_m ((I + Delta) N (I + Gamma) - N) + g_w (N a)(N b)^T
//
// Delta = s (SiLU(f_1(N)) * f_2(N)), or with a down-projection s f_3(SiLU(f_1(N)) * f_2(N)), Gamma
// likewise, with one learned number s for both; the gates g_m and g_w, one number each, are
// sigmoids of linear maps of N whose biases begin at -2.
Layer Update(GraphBuilder* graph, const std::string& name, const Positions& matrices,
             bool down_projection) {
  MatrixProductOp scale;
  scale.product = {matrices.count(), matrices.features(), 1, 1};
  scale.shared = MatrixProductOp::Shared::kSecond;
  const std::vector<int> s = {
      graph->Parameter(name + ".scale", {1, 1}, Init::Constant(kUpdateScale), Decay::kNone)};
  const auto factor = [&](const std::string& side) -> Layer {
    const Layer gate = matrices.Projection(name + "." + side + ".gate", Activation::kSwish);
    const Layer up = matrices.Projection(name + "." + side + ".up");
    Layer down = [](Value x) { return x; };
    if (down_projection) down = matrices.Projection(name + "." + side + ".down");
    return [=](Value n) {
      const Value gated = gate(n);
      return graph->Apply(scale, down(matrices.Multiply(gated, up(n))), s);
    };
  };
  const Layer delta = factor("delta");
  const Layer gamma = factor("gamma");
  LinearOp gate_map;
  gate_map.tokens = matrices.count();
  gate_map.in = matrices.features();
  gate_map.out = 2;
  gate_map.weights = LinearOp::Weights::kShared;
  gate_map.activation = Activation::kSigmoid;
  const std::vector<int> gate_parameters = {
      graph->Parameter(name + ".gates.weight", {2, gate_map.in}, Init::XavierNormal(gate_map.in, 2),
                       Decay::kDense),
      graph->Parameter(name + ".gates.bias", {2}, Init::Constant(kGateBias), Decay::kNone)};
  const Layer write_row = matrices.Vector(name + ".write.a");
  const Layer write_column = matrices.Vector(name + ".write.b");
  return [=](Value n) {
    // (I + D) N (I + G) - N = D N + (N + D N) G.
    const Value left = matrices.MatrixProduct(delta(n), n);
    const Value sum = graph->Add(n, left);
    const Value right = matrices.MatrixProduct(sum, gamma(n));
    const Value gates = graph->Apply(gate_map, n, gate_parameters);
    const Value gate_m = matrices.Columns(gates, 2, 0, 1);
    const Value gate_w = matrices.Columns(gates, 2, 1, 1);
    const Value change = matrices.Scale(graph->Add(left, right), matrices.features(), gate_m);
    const Value row = matrices.Scale(write_row(n), matrices.d(), gate_w);
    return graph->Add(change,
                      matrices.Product(row, write_column(n), matrices.d(), matrices.d(), 1));
  };
}

Layer Head(GraphBuilder* graph, const Positions& matrices, const MatrixThinkerConfig& config) {
  LinearOp linear;
  linear.tokens = matrices.count();
  linear.out = graph->outputs() / matrices.count();
  linear.weights = LinearOp::Weights::kShared;
  linear.bias = false;
  const Shape matrix = {matrices.d(), matrices.d()};
  Layer read;
  if (config.head() == MatrixThinkerConfig::MULTI_PROBE) {
    linear.in = config.probes();
    read = MultiProbe(graph, "head", matrix, linear.in, matrices.count());
  } else {
    linear.in = matrices.d();
    // Row i of W times row i of M, as sums over the rows of M^T.
    BlockTransposeOp transpose;
    transpose.count = matrices.count();
    transpose.tokens = transpose.width = matrices.d();
    WeightedPoolOp sums;
    sums.groups = matrices.count();
    sums.tokens = sums.width = matrices.d();
    const std::vector<int> w = {
        graph->Parameter("head.collapse.weight", {matrices.d(), matrices.d()},
                         Init::XavierNormal(matrices.d(), 1), Decay::kDense)};
    read = [=](Value m) { return graph->Apply(sums, graph->Apply(transpose, m), w); };
  }
  const Layer output = Linear(graph, "head.output", linear);
  return [=](Value m) { return output(read(m)); };
}

}  // namespace

Value MatrixThinker(GraphBuilder* graph, const MatrixThinkerConfig& config) {
  const FeatureShape& features = graph->features();
  const Positions matrices(graph, features.fields(), features.embedding_width / 2);
  const Shape matrix = {matrices.d(), matrices.d()};
  Value m = Bytes(graph, matrices);
  graph->Measure("iteration0", m, matrix, matrices.count());
  struct Block {
    Layer attention_norm;
    Layer attention;
    Layer update_norm;
    Layer update;
  };
  std::vector<Block> blocks;
  for (int64_t l = 0; l < config.layers(); ++l) {
    const std::string name = IndexedName("layer", l);
    Block block;
    block.attention_norm = matrices.MatrixNorm(name + ".attention.norm");
    block.attention = Attention(graph, name + ".attention", matrices, config);
    block.update_norm = matrices.MatrixNorm(name + ".update.norm");
    block.update = Update(graph, name + ".update", matrices, config.down_projection());
    blocks.push_back(std::move(block));
  }
  const Layer norm = matrices.MatrixNorm("norm");
  const Layer head = Head(graph, matrices, config);
  for (int64_t t = 1; t <= config.iterations(); ++t) {
    for (const Block& block : blocks) {
      if (config.recompute()) graph->BeginSegment();
      const Value seen = block.attention(block.attention_norm(m));
      m = graph->Add(m, graph->Dropout(seen, config.dropout()));
      const Value change = block.update(block.update_norm(m));
      m = graph->Add(m, graph->Dropout(change, config.dropout()));
      graph->EndSegment();
    }
    graph->Measure(IndexedName("iteration", t), m, matrix, matrices.count());
  }
  return head(norm(m));
}

}  // namespace elastor
