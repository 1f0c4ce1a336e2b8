#include "trainer/score/onnx_graph.h"

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/text.h"
#include "core/kernels/sinkhorn.h"
#include "third_party/onnx.pb.h"

namespace elastor {
namespace {

using Dimensions = std::vector<int64_t>;
constexpr int64_t kRows = -1;  // of a Reshape: the rows, however many
constexpr int64_t kMostBytes = int64_t{1} << 31;

// Writes nodes one after another. A value is the name of a tensor; those of the graph are
// [N, features].
class OnnxWriter {
 public:
  OnnxWriter(const Graph& graph, int64_t outputs, const float* weights, const std::string& name)
      : graph_(graph), outputs_(outputs), weights_(weights) {
    model_.set_ir_version(7);
    model_.set_producer_name("elastor");
    model_.add_opset_import()->set_version(kOnnxOpset);
    proto()->set_name(name);
  }

  StatusOr<std::string> Write();

  // The op's ONNX nodes, of which the last one's output is the value.
  StatusOr<std::string> Map(const EmbeddingInputOp& op);
  StatusOr<std::string> Map(const AddOp&) { return Apply("Add", {input(0), input(1)}); }
  StatusOr<std::string> Map(const AppendHistoryOp& op);
  StatusOr<std::string> Map(const AppendTargetOp& op);
  StatusOr<std::string> Map(const AttentionOp& op);
  StatusOr<std::string> Map(const BatchNormOp&);
  StatusOr<std::string> Map(const BlockTransposeOp& op);
  StatusOr<std::string> Map(const CompressedInteractionOp& op);
  StatusOr<std::string> Map(const ConcatOp&) { return Concat(input(0), input(1)); }
  StatusOr<std::string> Map(const DropoutOp&) { return Apply("Identity", {input(0)}); }
  StatusOr<std::string> Map(const FactorizationPoolOp& op);
  StatusOr<std::string> Map(const GatedFeedForwardOp& op);
  StatusOr<std::string> Map(const GatedSumFeedForwardOp& op);
  StatusOr<std::string> Map(const JointLogitOp&);
  StatusOr<std::string> Map(const LinearOp& op) { return Linear(op, parameter(0)); }
  StatusOr<std::string> Map(const LogitSumOp&);
  StatusOr<std::string> Map(const MatrixProductOp& op);
  StatusOr<std::string> Map(const MeanLogitOp&) {
    return Concat(Mean(input(0), 1, /*keep=*/true), input(0));
  }
  StatusOr<std::string> Map(const MeanPoolOp& op);
  StatusOr<std::string> Map(const MixtureOp& op);
  StatusOr<std::string> Map(const MultiplyOp&) { return Apply("Mul", {input(0), input(1)}); }
  StatusOr<std::string> Map(const NormOp& op);
  StatusOr<std::string> Map(const PadOp& op);
  StatusOr<std::string> Map(const PairwiseDotOp& op);
  StatusOr<std::string> Map(const PositionOp& op);
  StatusOr<std::string> Map(const ReadTargetOp& op);
  StatusOr<std::string> Map(const ReluOp&) { return Apply("Relu", {input(0)}); }
  StatusOr<std::string> Map(const SigmoidGateOp&) {
    return Apply("Mul", {input(0), Apply("Sigmoid", {input(1)})});
  }
  StatusOr<std::string> Map(const SinkhornMixOp& op);
  StatusOr<std::string> Map(const SliceOp& op);
  StatusOr<std::string> Map(const SoftmaxGateOp& op);
  StatusOr<std::string> Map(const SumPoolOp& op);
  StatusOr<std::string> Map(const TargetAttentionOp& op);
  StatusOr<std::string> Map(const UpperTriangleOp& op);
  StatusOr<std::string> Map(const WeightedPoolOp& op);
  template <typename OtherOp>
  StatusOr<std::string> Map(const OtherOp&) {
    return UserError(StrCat("--mode=export: the model has ", OtherOp::kName,
                            ", which has no counterpart in ONNX"));
  }

 private:
  onnx::GraphProto* proto() { return model_.mutable_graph(); }
  const Node& node() const { return graph_[node_]; }
  std::string input(int i) const { return values_[node().inputs[i]]; }
  const ParameterInfo& info(int i) const { return graph_.parameters()[node().parameters[i]]; }
  std::span<const float> parameter(int i) const {
    return {weights_ + info(i).offset, static_cast<size_t>(info(i).size)};
  }

  // A node; returns its output. Attributes may be added to last().
  std::string Apply(const char* op, const std::vector<std::string>& inputs);
  onnx::NodeProto* last() { return proto()->mutable_node(proto()->node_size() - 1); }
  void SetInt(const char* name, int64_t value);
  void SetInts(const char* name, const Dimensions& values);

  // Tensors that are constant.
  std::string Floats(const Dimensions& shape, std::span<const float> values);
  std::string Integers(const Dimensions& values);
  std::string Scalar(double value) {
    const float number = static_cast<float>(value);
    return Floats({}, {&number, 1});
  }
  std::string Parameter(int i, const Dimensions& shape) { return Floats(shape, parameter(i)); }
  // Matrices [count][rows][columns], every `step`-th of which is taken from `first` on, transposed.
  std::string Transposed(std::span<const float> matrices, int64_t count, int64_t rows,
                         int64_t columns, int64_t first, int64_t step);

  std::string Reshape(const std::string& x, const Dimensions& shape) {
    return Apply("Reshape", {x, Integers(shape)});
  }
  std::string Flat(const std::string& x) { return Reshape(x, {kRows, node().shape.features()}); }
  std::string Transpose(const std::string& x, const Dimensions& order) {
    const std::string y = Apply("Transpose", {x});
    SetInts("perm", order);
    return y;
  }
  std::string Concat(const std::string& a, const std::string& b) {
    const std::string y = Apply("Concat", {a, b});
    SetInt("axis", 1);
    return y;
  }
  std::string Softmax(const std::string& x) {
    const std::string y = Apply("Softmax", {x});
    SetInt("axis", -1);
    return y;
  }
  std::string Mean(const std::string& x, int64_t axis, bool keep) {
    const std::string y = Apply("ReduceMean", {x});
    SetInts("axes", {axis});
    SetInt("keepdims", keep ? 1 : 0);
    return y;
  }
  std::string Sum(const std::string& x, int64_t axis, bool keep) {
    const std::string y = Apply("ReduceSum", {x, Integers({axis})});
    SetInt("keepdims", keep ? 1 : 0);
    return y;
  }
  std::string Activate(Activation activation, const std::string& x);

  // Of a value [N, tokens, width] the tokens [begin, end).
  std::string Tokens(const std::string& x, int64_t begin, int64_t end) {
    return Apply("Slice", {x, Integers({begin}), Integers({end}), Integers({1})});
  }
  // `yes` where `condition` is true, else 0.
  std::string OrZero(const std::string& condition, const std::string& yes) {
    return Apply("Where", {condition, yes, Scalar(0)});
  }
  // [N, 1], the lengths of `count` sequences from `sequence` on, together.
  std::string Length(int64_t sequence, int64_t count = 1);
  // Numbers first, first + step, ... compared with lengths: `shape` has one dimension of `places`,
  // as many as there are numbers, behind that of the rows.
  std::string Places(const char* compare, const std::string& length, int64_t first, int64_t step,
                     int64_t places, const Dimensions& shape);
  // 0, 1, ... compared with the lengths of a sequence.
  std::string Places(const char* compare, int64_t sequence, int64_t places,
                     const Dimensions& shape) {
    return Places(compare, Length(sequence), 0, 1, places, shape);
  }
  // E's vectors [N, fields, width] as features, with `vector` [N, 1, width] in the place of
  // `field`.
  std::string Replaced(const std::string& e, int64_t fields, int64_t field,
                       const std::string& vector);
  void Declare(const std::string& name, onnx::TensorProto::DataType type, int64_t features,
               onnx::ValueInfoProto* value);
  // A linear map by `weights`; its bias is the node's second parameter.
  std::string Linear(const LinearOp& op, std::span<const float> weights);

  const Graph& graph_;
  const int64_t outputs_;
  const float* const weights_;
  onnx::ModelProto model_;
  std::vector<std::string> values_;  // by node of the graph
  int node_ = 0;
  int64_t tensors_ = 0;
  int64_t constant_bytes_ = 0;
};

std::string OnnxWriter::Apply(const char* op, const std::vector<std::string>& inputs) {
  onnx::NodeProto* const added = proto()->add_node();
  added->set_op_type(op);
  for (const std::string& name : inputs) added->add_input(name);
  return *added->add_output() = StrCat("t", tensors_++);
}

void OnnxWriter::SetInt(const char* name, int64_t value) {
  onnx::AttributeProto* const attribute = last()->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}

void OnnxWriter::SetInts(const char* name, const Dimensions& values) {
  onnx::AttributeProto* const attribute = last()->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute->add_ints(value);
}

std::string OnnxWriter::Floats(const Dimensions& shape, std::span<const float> values) {
  constant_bytes_ += static_cast<int64_t>(values.size_bytes());
  const std::string name = StrCat("c", tensors_++);
  if (constant_bytes_ >= kMostBytes) return name;  // Write tells
  onnx::TensorProto* const tensor = proto()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t dimension : shape) tensor->add_dims(dimension);
  tensor->set_raw_data(values.data(), values.size_bytes());
  return name;
}

std::string OnnxWriter::Integers(const Dimensions& values) {
  onnx::TensorProto* const tensor = proto()->add_initializer();
  tensor->set_name(StrCat("c", tensors_++));
  tensor->set_data_type(onnx::TensorProto::INT64);
  tensor->add_dims(static_cast<int64_t>(values.size()));
  tensor->set_raw_data(values.data(), values.size() * sizeof(int64_t));
  return tensor->name();
}

std::string OnnxWriter::Transposed(std::span<const float> matrices, int64_t count, int64_t rows,
                                   int64_t columns, int64_t first, int64_t step) {
  std::vector<float> transposed;
  transposed.reserve(count * rows * columns);
  for (int64_t m = 0; m < count; ++m) {
    const float* const matrix = matrices.data() + (first + m * step) * rows * columns;
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) transposed.push_back(matrix[r * columns + c]);
    }
  }
  return Floats({count, columns, rows}, transposed);
}

// GELU is x Phi(x) by the error function, swish x sigmoid(x).
std::string OnnxWriter::Activate(Activation activation, const std::string& x) {
  switch (activation) {
    case Activation::kIdentity:
      return x;
    case Activation::kRelu:
      return Apply("Relu", {x});
    case Activation::kLeakyRelu:
      return Apply("LeakyRelu", {x});  // its default slope is ours
    case Activation::kTanh:
      return Apply("Tanh", {x});
    case Activation::kSigmoid:
      return Apply("Sigmoid", {x});
    case Activation::kSwish:
      return Apply("Mul", {x, Apply("Sigmoid", {x})});
    case Activation::kGelu:
      break;
  }
  const std::string erf = Apply("Erf", {Apply("Mul", {x, Scalar(std::sqrt(0.5))})});
  return Apply("Mul", {Apply("Mul", {x, Scalar(0.5)}), Apply("Add", {erf, Scalar(1)})});
}

StatusOr<std::string> OnnxWriter::Map(const EmbeddingInputOp& op) {
  if (op.numeric_fields == 0) return Apply("Identity", {std::string("embeddings")});
  const Dimensions vectors = {op.numeric_fields, op.width};
  const std::string missing = Reshape(Apply("IsNaN", {"numeric"}), {kRows, op.numeric_fields, 1});
  const std::string values = Reshape("numeric", {kRows, op.numeric_fields, 1});
  const std::string products = Apply("Mul", {values, Parameter(0, vectors)});
  const std::string chosen = Apply("Where", {missing, Parameter(1, vectors), products});
  const std::string numeric = Reshape(chosen, {kRows, op.numeric_features()});
  return graph_.features().table_features() == 0 ? numeric : Concat(numeric, "embeddings");
}

std::string OnnxWriter::Length(int64_t sequence, int64_t count) {
  Dimensions sequences(count);
  std::iota(sequences.begin(), sequences.end(), sequence);
  const std::string lengths = Apply("Gather", {"lengths", Integers(sequences)});
  SetInt("axis", 1);
  return count == 1 ? lengths : Sum(lengths, 1, /*keep=*/true);
}

std::string OnnxWriter::Places(const char* compare, const std::string& length, int64_t first,
                               int64_t step, int64_t places, const Dimensions& shape) {
  Dimensions numbers;
  for (int64_t i = 0; i < places; ++i) numbers.push_back(first + i * step);
  return Reshape(Apply(compare, {Integers(numbers), length}), shape);
}

std::string OnnxWriter::Replaced(const std::string& e, int64_t fields, int64_t field,
                                 const std::string& vector) {
  std::vector<std::string> parts;
  if (field > 0) parts.push_back(Tokens(e, 0, field));
  parts.push_back(vector);
  if (field + 1 < fields) parts.push_back(Tokens(e, field + 1, fields));
  const std::string y = Apply("Concat", parts);
  SetInt("axis", 1);
  return Flat(y);
}

// Products with matrices of 0 and 1: y_t is row t - L + length of [z; x], both of which begin where
// that is 0. Where x has its last positions, it stays in its place, with 0 where there are others.
StatusOr<std::string> OnnxWriter::Map(const AppendHistoryOp& op) {
  const std::string length = Reshape(Length(op.sequence), {kRows, 1, 1});
  const auto moved = [&](int i, int64_t first, int64_t count) {
    Dimensions lengths;
    for (int64_t t = 0; t < op.tokens(); ++t) {
      for (int64_t u = 0; u < count; ++u) lengths.push_back(first + u - t + op.positions);
    }
    const std::string is =
        Apply("Equal", {Reshape(Integers(lengths), {op.tokens(), count}), length});
    return Apply("MatMul", {OrZero(is, Scalar(1)), Reshape(input(i), {kRows, count, op.width})});
  };
  const auto in_place = [&] {
    const std::string x = Reshape(input(0), {kRows, op.positions + op.behind, op.width});
    const std::string is = Places("LessOrEqual", Length(op.sequence), op.positions + op.before, -1,
                                  op.tokens(), {kRows, op.tokens(), 1});
    return OrZero(is, Apply("Pad", {x, Integers({0, op.before, 0, 0, 0, 0})}));
  };
  const std::string x = op.last ? in_place() : moved(0, op.before, op.positions);
  return Flat(op.before == 0 ? x : Apply("Add", {x, moved(1, 0, op.before)}));
}

StatusOr<std::string> OnnxWriter::Map(const AppendTargetOp& op) {
  const int64_t tokens = op.positions + 1;
  const Dimensions mask = {kRows, tokens, 1};
  const std::string e = Reshape(input(0), {kRows, op.fields + op.positions, op.width});
  const std::string history =
      Apply("Pad", {Tokens(e, op.fields, op.fields + op.positions), Integers({0, 0, 0, 0, 1, 0})});
  const std::string seen = OrZero(Places("Less", op.sequence, tokens, mask), history);
  return Flat(Apply("Where", {Places("Equal", op.sequence, tokens, mask),
                              Tokens(e, op.target, op.target + 1), seen}));
}

StatusOr<std::string> OnnxWriter::Map(const ReadTargetOp& op) {
  const int64_t tokens = op.positions + 1;
  const std::string e = Reshape(input(0), {kRows, op.fields + op.positions, op.width});
  const std::string x = Reshape(input(1), {kRows, tokens, op.width});
  const std::string target = OrZero(Places("Equal", op.sequence, tokens, {kRows, tokens, 1}), x);
  return Replaced(e, op.fields, op.field, Sum(target, 1, /*keep=*/true));
}

StatusOr<std::string> OnnxWriter::Map(const TargetAttentionOp& op) {
  const std::string e = Reshape(input(0), {kRows, op.fields + op.positions, op.width});
  const std::string h = Tokens(e, op.fields, op.fields + op.positions);
  const std::string a = Apply("Expand", {Tokens(e, op.target, op.target + 1), Apply("Shape", {h})});
  std::string y = Apply("Concat", {a, h, Apply("Sub", {a, h}), Apply("Mul", {a, h})});
  SetInt("axis", 2);
  for (int64_t i = 0, p = 0; i < op.layers(); ++i) {
    const int64_t in = op.layer_in(i), out = op.layer_out(i);
    y = Apply("MatMul", {y, Transposed(parameter(p++), 1, out, in, 0, 1)});
    if (op.has_bias(i)) y = Apply("Add", {y, Parameter(p++, {out})});
    if (i + 1 < op.layers()) y = Activate(op.activation, y);
  }
  const std::string there = Places("Less", op.sequence, op.positions, {kRows, op.positions, 1});
  if (op.softmax) {
    y = Apply("Softmax", {Apply("Where", {there, y, Scalar(-FLT_MAX)})});
    SetInt("axis", 1);
  }
  const std::string weighted = Apply("Mul", {OrZero(there, y), OrZero(there, h)});
  return Replaced(e, op.fields, op.field, Sum(weighted, 1, /*keep=*/true));
}

StatusOr<std::string> OnnxWriter::Map(const AttentionOp& op) {
  const AttentionShape& a = op.attention;
  const auto heads = [&](int i, int64_t tokens, int64_t width, const Dimensions& order) {
    return Transpose(Reshape(input(i), {kRows, tokens, a.heads, width}), order);
  };
  const std::string q = heads(0, a.queries, a.width, {0, 2, 1, 3});
  const std::string k = heads(1, a.keys, a.width, {0, 2, 3, 1});
  const std::string v = heads(2, a.keys, a.value_width, {0, 2, 1, 3});
  std::string scores = Apply("Mul", {Apply("MatMul", {q, k}), Scalar(a.scale)});
  if (op.position_bias) {
    std::vector<float> bias(a.queries * a.keys);
    for (int64_t i = 0; i < a.queries; ++i) {
      for (int64_t j = 0; j < (a.causal ? a.position(i) + 1 : a.keys); ++j) {
        bias[i * a.keys + j] = parameter(0)[DifferenceOf(a, i, j)];
      }
    }
    scores = Apply("Add", {scores, Floats({a.queries, a.keys}, bias)});
  }
  std::vector<std::string> conditions;
  if (op.sequence >= 0) {  // a row has its sequences' tokens and the others
    const std::string length = Length(op.sequence, op.read_sequences);
    const Dimensions of_keys = {kRows, 1, 1, a.keys};
    conditions.push_back(a.last_keys
                             ? Places("Less", length, a.keys - 1 - op.others, -1, a.keys, of_keys)
                             : Places("Less", length, -op.others, 1, a.keys, of_keys));
    if (a.causal && !a.last_keys) {  // a query asks if it is one of them
      conditions.push_back(Places("Less", length, a.position(0) - op.others, 1, a.queries,
                                  {kRows, 1, a.queries, 1}));
    }
  }
  if (a.causal) {
    Dimensions keys(a.keys), queries(a.queries);
    std::iota(keys.begin(), keys.end(), 0);
    std::iota(queries.begin(), queries.end(), a.position(0));
    conditions.push_back(
        Apply("LessOrEqual", {Integers(keys), Reshape(Integers(queries), {a.queries, 1})}));
  }
  std::string sees;
  for (const std::string& condition : conditions) {
    sees = sees.empty() ? condition : Apply("And", {sees, condition});
  }
  std::string weights;
  if (a.kind == AttentionKind::kSilu) {
    weights = Apply(
        "Mul", {Activate(Activation::kSwish, scores), Scalar(1.0 / static_cast<double>(a.keys))});
  } else {
    weights = Softmax(sees.empty() ? scores : Apply("Where", {sees, scores, Scalar(-FLT_MAX)}));
  }
  if (!sees.empty()) weights = OrZero(sees, weights);
  return Flat(Transpose(Apply("MatMul", {weights, v}), {0, 2, 1, 3}));
}

StatusOr<std::string> OnnxWriter::Map(const BatchNormOp&) {
  const Dimensions shape = {node().shape.features()};
  std::vector<float> factor, shift;
  for (int64_t i = 0; i < shape[0]; ++i) {
    const double scale =
        parameter(0)[i] / std::sqrt(static_cast<double>(parameter(3)[i]) + kBatchNormEpsilon);
    factor.push_back(static_cast<float>(scale));
    shift.push_back(static_cast<float>(parameter(1)[i] - parameter(2)[i] * scale));
  }
  return Apply("Add", {Apply("Mul", {input(0), Floats(shape, factor)}), Floats(shape, shift)});
}

StatusOr<std::string> OnnxWriter::Map(const BlockTransposeOp& op) {
  const Dimensions blocks = {kRows, op.tokens, op.tokens, op.width / op.tokens};
  return Flat(Transpose(Reshape(input(0), blocks), {0, 2, 1, 3}));
}

StatusOr<std::string> OnnxWriter::Map(const CompressedInteractionOp& op) {
  const std::string a = Reshape(input(0), {kRows, op.first, 1, op.width});
  const std::string b = Reshape(input(op.one_input() ? 0 : 1), {kRows, 1, op.b_tokens(), op.width});
  const int64_t pairs = op.first * op.b_tokens();
  const std::string products = Reshape(Apply("Mul", {a, b}), {kRows, pairs, op.width});
  const std::string y = Apply("MatMul", {Parameter(0, {op.maps, pairs}), products});
  return Flat(Apply("Add", {y, Parameter(1, {op.maps, 1})}));
}

// Half of the square of the sum less the sum of squares.
StatusOr<std::string> OnnxWriter::Map(const FactorizationPoolOp& op) {
  const std::string x = Reshape(input(0), {kRows, op.tokens, op.width});
  const std::string sum = Sum(x, 1, /*keep=*/false);
  const std::string squares = Sum(Apply("Mul", {x, x}), 1, /*keep=*/false);
  return Apply("Mul", {Apply("Sub", {Apply("Mul", {sum, sum}), squares}), Scalar(0.5)});
}

// Tokens come first meanwhile: [T, N, D] times [T, D, H].
StatusOr<std::string> OnnxWriter::Map(const GatedFeedForwardOp& op) {
  const int64_t t = op.tokens, d = op.width, h = op.hidden;
  const std::string x = Transpose(Reshape(input(0), {kRows, t, d}), {1, 0, 2});
  const auto up = [&](int64_t which) {
    return Apply("MatMul", {x, Transposed(parameter(0), t, h, d, which, 2)});
  };
  const std::string gate = Activate(op.activation, up(0));
  const std::string gated = Apply("Mul", {gate, up(1)});
  const std::string down = Apply("MatMul", {gated, Transposed(parameter(1), t, d, h, 0, 1)});
  const std::string residual = Apply("MatMul", {x, Transposed(parameter(2), t, d, d, 0, 1)});
  return Flat(Transpose(Apply("Add", {down, residual}), {1, 0, 2}));
}

StatusOr<std::string> OnnxWriter::Map(const GatedSumFeedForwardOp& op) {
  const int64_t t = op.tokens, d = op.width, h = op.hidden;
  const std::string x = Transpose(Reshape(input(0), {kRows, t, d}), {1, 0, 2});
  const auto affine = [&](const std::string& from, const std::string& weights,
                          const std::string& bias) {
    return Apply("Add", {Apply("MatMul", {from, weights}), bias});
  };
  const auto up = [&](int64_t which) {
    std::vector<float> bias;  // of [T, 3, H]
    for (int64_t token = 0; token < t; ++token) {
      const auto own = parameter(1).subspan((token * 3 + which) * h, h);
      bias.insert(bias.end(), own.begin(), own.end());
    }
    return affine(x, Transposed(parameter(0), t, h, d, which, 3), Floats({t, 1, h}, bias));
  };
  const std::string a = up(0);
  const std::string u = Apply("Add", {a, Activate(op.activation, up(1))});
  const std::string gated = Apply("Mul", {u, up(2)});
  const std::string down =
      affine(gated, Transposed(parameter(2), t, d, h, 0, 1), Parameter(3, {t, 1, d}));
  const std::string residual =
      affine(x, Transposed(parameter(4), t, d, d, 0, 1), Parameter(5, {t, 1, d}));
  return Flat(Transpose(Apply("Add", {down, residual}), {1, 0, 2}));
}

std::string OnnxWriter::Linear(const LinearOp& op, std::span<const float> weights) {
  const int64_t t = op.tokens;
  std::string y;
  if (op.weights == LinearOp::Weights::kInterleaved) {
    const std::string x = Reshape(input(0), {kRows, op.in, t});
    y = Apply("MatMul", {Floats({op.out, op.in}, weights), x});
    if (op.bias) y = Apply("Add", {y, Parameter(1, {op.out, 1})});
    y = Flat(Activate(op.activation, y));
  } else if (op.maps() == 1) {  // one for all tokens
    const std::string x = t == 1 ? input(0) : Reshape(input(0), {kRows, t, op.in});
    y = Apply("MatMul", {x, Reshape(Transposed(weights, 1, op.out, op.in, 0, 1), {op.in, op.out})});
    if (op.bias) y = Apply("Add", {y, Parameter(1, {op.out})});
    y = Activate(op.activation, y);
    if (t > 1) y = Flat(y);
  } else {
    const std::string x = Transpose(Reshape(input(0), {kRows, t, op.in}), {1, 0, 2});
    y = Apply("MatMul", {x, Transposed(weights, t, op.out, op.in, 0, 1)});
    if (op.bias) y = Apply("Add", {y, Parameter(1, {t, 1, op.out})});
    y = Flat(Transpose(Activate(op.activation, y), {1, 0, 2}));
  }
  return node().inputs.size() > 1 ? Apply("Add", {y, input(1)}) : y;
}

// -log(exp(softplus(-b) - a) + exp(-b)).
StatusOr<std::string> OnnxWriter::Map(const JointLogitOp&) {
  const auto column = [&](int64_t i) {
    const std::string y = Apply("Gather", {input(0), Integers({i})});
    SetInt("axis", 1);
    return y;
  };
  const std::string a = column(0);
  const std::string b = Apply("Neg", {column(1)});
  const std::string first = Apply("Sub", {Apply("Softplus", {b}), a});
  const std::string most = Apply("Max", {first, b});
  const std::string least = Apply("Min", {first, b});
  const std::string log =
      Apply("Log", {Apply("Add", {Apply("Exp", {Apply("Sub", {least, most})}), Scalar(1)})});
  return Concat(a, Apply("Neg", {Apply("Add", {most, log})}));
}

StatusOr<std::string> OnnxWriter::Map(const LogitSumOp&) {
  return Apply("Add", {Sum(input(0), 1, /*keep=*/true), Parameter(0, {1})});
}

StatusOr<std::string> OnnxWriter::Map(const MatrixProductOp& op) {
  using Shared = MatrixProductOp::Shared;
  const ProductShape& p = op.product;
  int read = 0;
  const auto factor = [&](Shared place, int64_t rows, int64_t columns, bool transposed) {
    const Dimensions stored = transposed ? Dimensions{columns, rows} : Dimensions{rows, columns};
    if (op.shared == place) {
      return transposed ? Transpose(Parameter(0, stored), {1, 0}) : Parameter(0, stored);
    }
    const std::string x = Reshape(input(read++), {kRows, p.count, stored[0], stored[1]});
    return transposed ? Transpose(x, {0, 1, 3, 2}) : x;
  };
  const std::string a = factor(Shared::kFirst, p.rows, p.terms, op.first_transposed);
  const std::string b = factor(Shared::kSecond, p.terms, p.columns, op.second_transposed);
  return Flat(Activate(op.activation, Apply("MatMul", {a, b})));
}

StatusOr<std::string> OnnxWriter::Map(const MeanPoolOp& op) {
  return Mean(Reshape(input(0), {kRows, op.tokens, op.width}), 1, /*keep=*/false);
}

StatusOr<std::string> OnnxWriter::Map(const MixtureOp& op) {
  const MixtureShape& m = op.mixture;
  const std::string shares = Softmax(Reshape(input(1), {kRows, m.mixtures, m.experts}));
  return Flat(Apply("MatMul", {shares, Reshape(input(0), {kRows, m.experts, m.width})}));
}

StatusOr<std::string> OnnxWriter::Map(const NormOp& op) {
  const int64_t width = op.norm.width;
  const std::string all = node().inputs.size() > 1 ? Apply("Add", {input(0), input(1)}) : input(0);
  std::string x = Reshape(all, {kRows, node().shape.features() / width, width});
  const bool layer = op.norm.kind == NormKind::kLayer;
  if (layer) x = Apply("Sub", {x, Mean(x, -1, /*keep=*/true)});
  const std::string square = Mean(Apply("Mul", {x, x}), -1, /*keep=*/true);
  const std::string scale = Apply("Sqrt", {Apply("Add", {square, Scalar(op.norm.epsilon)})});
  std::string y = Apply("Mul", {Apply("Div", {x, scale}), Parameter(0, {width})});
  if (layer) y = Apply("Add", {y, Parameter(1, {width})});
  return Flat(y);
}

StatusOr<std::string> OnnxWriter::Map(const PadOp& op) {
  const int64_t features = graph_[node().inputs[0]].shape.features();
  return Apply("Pad", {input(0), Integers({0, 0, 0, op.tokens * op.width - features})});
}

StatusOr<std::string> OnnxWriter::Map(const PairwiseDotOp& op) {
  const std::string a = Reshape(input(0), {kRows, op.first, op.width});
  const std::string b = Reshape(input(1), {kRows, op.second, op.width});
  return Flat(Apply("MatMul", {a, Transpose(b, {0, 2, 1})}));
}

StatusOr<std::string> OnnxWriter::Map(const PositionOp& op) {
  std::vector<float> added(op.tokens * op.width);
  for (int64_t i = 0; i < op.parameter_features(); ++i) {
    added[op.first_feature() + i] = static_cast<float>(op.scale) * parameter(0)[i];
  }
  const std::string positions = Floats({1, op.tokens * op.width}, added);
  // A constant is one row, which the ops behind it repeat.
  if (node().inputs.empty()) return Apply("Identity", {positions});
  const std::string x =
      op.input_scale == 1 ? input(0) : Apply("Mul", {input(0), Scalar(op.input_scale)});
  return Apply("Add", {x, positions});
}

// The matrices are constants.
StatusOr<std::string> OnnxWriter::Map(const SinkhornMixOp& op) {
  const SinkhornShape shape = op.matrices();
  std::span<const float> logits = parameter(0);
  std::vector<float> product(op.rank > 0 ? shape.elements() : 0);
  if (op.rank > 0) {
    MultiplyFactors<float>(op.blocks, op.rank, op.columns(), logits.data(), parameter(1).data(),
                           product.data());
    logits = product;
  }
  Sinkhorn<float> sinkhorn(shape);
  sinkhorn.Compute(logits.data());
  LinearOp map;
  map.tokens = op.problems();
  map.in = map.out = shape.size;
  map.bias = false;
  if (!op.within()) map.weights = LinearOp::Weights::kInterleaved;
  return Linear(map, {sinkhorn.matrices(), static_cast<size_t>(shape.elements())});
}

StatusOr<std::string> OnnxWriter::Map(const SliceOp& op) {
  const std::string x = Reshape(input(0), {kRows, op.tokens, op.width});
  const Dimensions end = {op.first_token + op.slice.tokens, op.first_column + op.slice.width};
  return Flat(Apply(
      "Slice", {x, Integers({op.first_token, op.first_column}), Integers(end), Integers({1, 2})}));
}

StatusOr<std::string> OnnxWriter::Map(const SoftmaxGateOp& op) {
  const std::string shares = Reshape(Softmax(input(1)), {kRows, op.tokens, 1});
  return Flat(Apply("Mul", {Reshape(input(0), {kRows, op.tokens, op.width}), shares}));
}

StatusOr<std::string> OnnxWriter::Map(const SumPoolOp& op) {
  return Sum(Reshape(input(0), {kRows, op.tokens, op.width}), 2, /*keep=*/false);
}

StatusOr<std::string> OnnxWriter::Map(const UpperTriangleOp& op) {
  Dimensions places;
  for (int64_t i = 0; i < op.size; ++i) {
    for (int64_t j = i + 1; j < op.size; ++j) places.push_back(i * op.size + j);
  }
  const std::string y = Apply("Gather", {input(0), Integers(places)});
  SetInt("axis", 1);
  return y;
}

// Features come first meanwhile: [N, K, G, T] times [K, T, 1].
StatusOr<std::string> OnnxWriter::Map(const WeightedPoolOp& op) {
  const std::string x =
      Transpose(Reshape(input(0), {kRows, op.groups, op.tokens, op.width}), {0, 3, 1, 2});
  const std::string y = Apply("MatMul", {x, Parameter(0, {op.width, op.tokens, 1})});
  return Flat(Transpose(Reshape(y, {kRows, op.width, op.groups}), {0, 2, 1}));
}

void OnnxWriter::Declare(const std::string& name, onnx::TensorProto::DataType type,
                         int64_t features, onnx::ValueInfoProto* value) {
  value->set_name(name);
  onnx::TypeProto::Tensor* const tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape()->add_dim()->set_dim_param("N");
  tensor->mutable_shape()->add_dim()->set_dim_value(features);
}

StatusOr<std::string> OnnxWriter::Write() {
  const FeatureShape& features = graph_.features();
  if (features.numeric_fields > 0) {
    Declare("numeric", onnx::TensorProto::FLOAT, features.numeric_fields, proto()->add_input());
  }
  if (features.table_features() > 0) {
    Declare("embeddings", onnx::TensorProto::FLOAT, features.table_features(),
            proto()->add_input());
  }
  if (features.encoded_sequences() > 0) {
    Declare("lengths", onnx::TensorProto::INT64, features.encoded_sequences(),
            proto()->add_input());
  }
  for (node_ = 0; node_ < graph_.size(); ++node_) {
    StatusOr<std::string> value = std::visit([this](const auto& op) { return Map(op); }, node().op);
    ELASTOR_RETURN_IF_ERROR(value.status());
    values_.push_back(std::move(value).value());
  }
  if (graph_.outputs() == outputs_) {
    Apply("Identity", {values_.back()});
  } else {
    Apply("Slice", {values_.back(), Integers({0}), Integers({outputs_}), Integers({1})});
  }
  last()->set_output(0, "logits");
  Apply("Sigmoid", {"logits"});
  last()->set_output(0, "probabilities");
  Declare("logits", onnx::TensorProto::FLOAT, outputs_, proto()->add_output());
  Declare("probabilities", onnx::TensorProto::FLOAT, outputs_, proto()->add_output());
  if (static_cast<int64_t>(model_.ByteSizeLong()) < kMostBytes && constant_bytes_ < kMostBytes) {
    return model_.SerializeAsString();
  }
  return UserError(StrCat("--mode=export: the dense parameters have ", constant_bytes_,
                          " bytes; an ONNX file holds less than 2 GiB"));
}

}  // namespace

StatusOr<std::string> OnnxModel(const Graph& graph, int64_t outputs, const float* weights,
                                const std::string& name) {
  return OnnxWriter(graph, outputs, weights, name).Write();
}

}  // namespace elastor
