#ifndef ELASTOR_CORE_GRAPH_GRAPH_H_
#define ELASTOR_CORE_GRAPH_GRAPH_H_

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/ops/ops.h"
#include "core/parameters/parameter_layout.h"

namespace elastor {

// A behaviour sequence that the model reads id by id (docs/reference/models.md, "Behaviour
// sequences").
struct SequenceShape {
  std::string name;
  int64_t field = 0;      // index among the categorical fields
  int64_t target = 0;     // index of the categorical field that it is compared with
  int64_t positions = 0;  // L: the number of its latest ids that are read
  // The tables pool these ids by their mean: the sequence takes no positions of E.
  bool pooled = false;
  // It is read side by side with the other parallel sequences: in every row all have as many ids.
  bool parallel = false;
};

// The fields that a model is built for.
struct FeatureShape {
  int64_t numeric_fields = 0;
  int64_t categorical_fields = 0;
  int64_t embedding_width = 0;     // k
  double embedding_stddev = 1e-4;  // stddev of the numeric fields' initial vectors
  std::vector<SequenceShape> sequences = {};
  // Indices among all fields: what HSTU_RANKER reads behind its layers.
  std::vector<int64_t> request_fields = {};
  // Every vector has one more element, behind the others: the first-order weight of a linear model.
  bool first_order = false;
  // If there is an image, the numeric fields are its pixels, there are no other fields,
  // embedding_width is 1, and E is the pixels themselves [patches, patch^2].
  ImageShape image = {};

  int64_t row_width() const { return embedding_width + (first_order ? 1 : 0); }
  int64_t fields() const { return numeric_fields + categorical_fields; }
  int64_t inputs() const { return fields() * row_width(); }
  int64_t numeric_features() const { return numeric_fields * row_width(); }

  // The number of sequences that take positions, and the number of their positions in all.
  int64_t encoded_sequences() const;
  int64_t positions() const;
  // The number of features of node 0, and how many of them the tables fill.
  int64_t embedding_features() const { return inputs() + positions() * row_width(); }
  int64_t table_features() const { return embedding_features() - numeric_features(); }
};

// The output of a node, which has the node's number.
struct Value {
  int node = -1;
};

struct Node {
  Op op;
  std::vector<int> inputs;      // nodes whose outputs this node reads, in the op's order
  std::vector<int> parameters;  // indices in the graph's layout, in the op's order
  Shape shape;                  // shape of the output
  // Nodes of one segment stand together and run forward once more before their backward pass. Until
  // then, only values that other nodes read are kept. -1: the node is in no segment and its values
  // are kept.
  int segment = -1;
};

// A representation whose spectrum is measured: for every row one matrix [tokens, width], or several
// one after another, each measured by itself (as for the positions of a text).
struct Probe {
  std::string name;
  Shape shape;
  int node = -1;
  int64_t matrices = 1;
  int64_t features() const { return matrices * shape.features(); }
};

// A model: a static graph of ops from the embeddings (node 0) to the logits (the last node). Node 0
// holds the embeddings of the fields, then of the sequences' positions, or an image's patches. With
// first-order weights its vectors are k + 1 wide, and E is a slice of them. Every node comes after
// its inputs, and the outputs depend on all of them. It is data: executors run it
// (cpu/cpu_executor.h, cuda/device_executor.h).
//
// The backward pass visits the nodes in reverse. A value or a parameter that is used several times
// gets the sum of its uses' gradients: the last use's first, every earlier one added to the sum so
// far. That order is part of the numerics.
class Graph {
 public:
  Graph(const FeatureShape& features, ParameterLayout parameters, std::vector<Node> nodes,
        std::vector<Probe> probes);

  const FeatureShape& features() const { return features_; }
  const ParameterLayout& parameters() const { return parameters_; }
  std::span<const Node> nodes() const { return nodes_; }
  int size() const { return static_cast<int>(nodes_.size()); }
  const Node& operator[](int node) const { return nodes_[node]; }
  // Returns the measured representations, in order; probe 0 is the part of E that the model reads,
  // as [n, k].
  std::span<const Probe> probes() const { return probes_; }
  int64_t outputs() const { return nodes_.back().shape.features(); }  // logits per row

  // Returns how often a node's output is an input of other nodes, and how often a parameter is
  // used.
  int uses(int node) const { return uses_[node]; }
  int parameter_uses(int parameter) const { return parameter_uses_[parameter]; }
  bool shares_parameters() const;  // whether any nodes share a parameter
  bool probed(int node) const { return probed_[node]; }

  // Returns whether a training pass must hold all rows of a leaf, and the name of the first op that
  // needs it.
  bool needs_whole_leaf() const { return whole_leaf_op() != nullptr; }
  const char* whole_leaf_op() const;

  // Costs of a row's forward pass: multiply-adds of matrix products, and numbers that the ops read
  // and write.
  int64_t multiply_adds() const;
  int64_t numbers_moved() const;

 private:
  FeatureShape features_;
  ParameterLayout parameters_;
  std::vector<Node> nodes_;
  std::vector<Probe> probes_;
  std::vector<int> uses_;
  std::vector<bool> probed_;
  std::vector<int> parameter_uses_;
};

// Builds a graph, node by node. A mistake in the model (a shape that does not fit, a parameter name
// declared twice, a value that nothing uses) is a program error.
class GraphBuilder {
 public:
  // Node 0 exists from the start, with the parameters of numeric fields. outputs: the task's number
  // of outputs, which the model's last linear map must have.
  explicit GraphBuilder(const FeatureShape& features, int64_t outputs = 1);

  const FeatureShape& features() const { return features_; }
  int64_t outputs() const { return outputs_; }
  // The fields' vectors [n, row width]: node 0, or an encoder's result.
  Value Rows() const { return rows_; }
  void SetRows(Value encoded);
  // Returns E [n, k] as the model reads it.
  Value Embeddings();
  // Returns the first-order weights [n, 1]; those of numeric fields are multiplied by the values.
  // Call it at most once.
  Value FirstOrder();
  Shape shape(Value value) const { return nodes_[value.node].shape; }

  // Declares a parameter. Parameters lie in the flat array in the order of declaration, which is
  // part of the numerics.
  int Parameter(const std::string& name, std::vector<int64_t> shape, Init init, Decay decay);
  // A running mean over batches (ParameterLayout::DeclareStatistic).
  int Statistic(const std::string& name, std::vector<int64_t> shape, double initial);

  Value Apply(const Op& op, std::span<const Value> inputs, std::vector<int> parameters = {});
  Value Apply(const Op& op, Value input, std::vector<int> parameters = {}) {
    return Apply(op, {&input, 1}, std::move(parameters));
  }
  Value Add(Value a, Value b) {
    const Value both[] = {a, b};
    return Apply(AddOp{}, both);
  }
  // Ops applied from here to EndSegment are one segment (Node::segment), which trades time for
  // memory and changes no bit.
  void BeginSegment() { segment_ = segments_++; }
  void EndSegment() { segment_ = -1; }
  // Applies dropout. Every call numbers a dropout layer, even if the rate is 0 and nothing is
  // applied.
  Value Dropout(Value x, double rate);
  // Returns the number of the next op that drops attention's weights; these ops have their own
  // numbering.
  uint32_t NextAttentionDropout() { return attention_dropouts_++; }

  // Measures `value`, which holds `matrices` matrices of `shape`, under this name. Returns `value`.
  Value Measure(const std::string& name, Value value, Shape shape, int64_t matrices = 1);
  Value Measure(const std::string& name, Value value) { return Measure(name, value, shape(value)); }

  // Returns the graph that ends in `outputs`, the node applied last.
  Graph Finish(Value outputs) &&;

 private:
  void CheckNewName(const std::string& name);

  Value Columns(int64_t begin, int64_t count);  // columns of the rows

  FeatureShape features_;
  int64_t outputs_;
  ParameterLayout parameters_;
  std::set<std::string> names_;  // of the parameters
  std::vector<Node> nodes_;
  std::vector<Probe> probes_;
  Value rows_ = {0};
  Value embeddings_;  // E, if it is a slice of the rows
  uint32_t dropout_layers_ = 0;
  uint32_t attention_dropouts_ = 0;
  int segment_ = -1;
  int segments_ = 0;
};

// Returns "block0.mixing" for ("block", 0, ".mixing").
inline std::string IndexedName(const std::string& prefix, int64_t index,
                               const std::string& suffix = "") {
  return prefix + std::to_string(index) + suffix;
}

}  // namespace elastor

#endif  // ELASTOR_CORE_GRAPH_GRAPH_H_
