#include "core/graph/graph.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"

namespace elastor {

int64_t FeatureShape::encoded_sequences() const {
  return std::ranges::count(sequences, false, &SequenceShape::pooled);
}

int64_t FeatureShape::positions() const {
  int64_t positions = 0;
  for (const SequenceShape& sequence : sequences) {
    if (!sequence.pooled) positions += sequence.positions;
  }
  return positions;
}

Graph::Graph(const FeatureShape& features, ParameterLayout parameters, std::vector<Node> nodes,
             std::vector<Probe> probes)
    : features_(features),
      parameters_(std::move(parameters)),
      nodes_(std::move(nodes)),
      probes_(std::move(probes)),
      uses_(nodes_.size()),
      probed_(nodes_.size()),
      parameter_uses_(parameters_.parameters().size()) {
  for (int i = 0; i < size(); ++i) {
    for (const int input : nodes_[i].inputs) {
      CHECK(input >= 0 && input < i) << "node " << i;
      ++uses_[input];
    }
    for (const int parameter : nodes_[i].parameters) ++parameter_uses_[parameter];
  }
  for (const Probe& probe : probes_) {
    CHECK(probe.node >= 0 && probe.node < size()) << probe.name;
    probed_[probe.node] = true;
  }
  for (int i = 0; i + 1 < size(); ++i) {
    const char* const kind = std::visit([](const auto& op) { return op.kName; }, nodes_[i].op);
    CHECK_GT(uses_[i], 0) << "nothing uses node " << i << " (" << kind << ")";
  }
  for (size_t p = 0; p < parameter_uses_.size(); ++p) {
    CHECK_GT(parameter_uses_[p], 0)
        << "nothing uses the parameter " << parameters_[static_cast<int>(p)].name;
  }
}

bool Graph::shares_parameters() const {
  return std::ranges::any_of(parameter_uses_, [](int uses) { return uses > 1; });
}

const char* Graph::whole_leaf_op() const {
  for (const Node& node : nodes_) {
    const char* const kind = std::visit(
        [](const auto& op) -> const char* { return op.needs_whole_leaf() ? op.kName : nullptr; },
        node.op);
    if (kind != nullptr) return kind;
  }
  return nullptr;
}

int64_t Graph::multiply_adds() const {
  int64_t sum = 0;
  for (const Node& node : nodes_) {
    sum += std::visit([](const auto& op) { return op.multiply_adds(); }, node.op);
  }
  return sum;
}

int64_t Graph::numbers_moved() const {
  int64_t sum = 0;
  for (const Node& node : nodes_) {
    sum += node.shape.features();
    for (const int input : node.inputs) sum += nodes_[input].shape.features();
  }
  return sum;
}

GraphBuilder::GraphBuilder(const FeatureShape& features, int64_t outputs)
    : features_(features), outputs_(outputs) {
  if (features.image.height > 0) {
    CHECK_EQ(features.numeric_fields, features.image.pixels());
    CHECK_EQ(features.inputs(), features.image.pixels());
    PatchInputOp input;
    input.image = features.image;
    const Value patches = Apply(input, std::span<const Value>());
    probes_.push_back({"embedding", shape(patches), patches.node});
    return;
  }
  EmbeddingInputOp input;
  input.numeric_fields = features.numeric_fields;
  input.categorical_fields = features.categorical_fields;
  input.positions = features.positions();
  input.width = features.row_width();
  std::vector<int> parameters;
  if (features.numeric_fields > 0) {
    const Init init{features.embedding_stddev, 0};
    const std::vector<int64_t> shape = {features.numeric_fields, features.row_width()};
    for (const char* name : {"numeric.vectors", "numeric.missing"}) {
      parameters.push_back(Parameter(name, shape, init, Decay::kEmbedding));
    }
  }
  Apply(input, std::span<const Value>(), parameters);
  probes_.push_back({"embedding", {features.fields(), features.embedding_width}, /*node=*/0});
}

void GraphBuilder::SetRows(Value encoded) {
  CHECK(probes_.size() == 1 && embeddings_.node < 0) << "the model has begun";
  rows_ = encoded;
  probes_[0].node = encoded.node;
}

Value GraphBuilder::Embeddings() {
  if (!features_.first_order) return rows_;
  if (embeddings_.node < 0) {
    embeddings_ = Columns(0, features_.embedding_width);
    probes_[0].node = embeddings_.node;
  }
  return embeddings_;
}

Value GraphBuilder::Columns(int64_t begin, int64_t count) {
  SliceOp columns;
  columns.tokens = features_.fields();
  columns.width = features_.row_width();
  columns.first_column = begin;
  columns.slice = {features_.fields(), count};
  return Apply(columns, rows_);
}

Value GraphBuilder::FirstOrder() {
  CHECK(features_.first_order);
  return Columns(features_.embedding_width, 1);
}

void GraphBuilder::CheckNewName(const std::string& name) {
  CHECK(names_.insert(name).second) << "the parameter " << name << " is declared twice";
}

int GraphBuilder::Parameter(const std::string& name, std::vector<int64_t> shape, Init init,
                            Decay decay) {
  CheckNewName(name);
  return parameters_.Declare(name, std::move(shape), init, decay);
}

int GraphBuilder::Statistic(const std::string& name, std::vector<int64_t> shape, double initial) {
  CheckNewName(name);
  return parameters_.DeclareStatistic(name, std::move(shape), initial);
}

Value GraphBuilder::Apply(const Op& op, std::span<const Value> inputs,
                          std::vector<int> parameters) {
  Node node{op, {}, std::move(parameters), {}, segment_};
  std::vector<Shape> shapes;
  for (const Value input : inputs) {
    node.inputs.push_back(input.node);
    shapes.push_back(shape(input));
  }
  node.shape = std::visit([&](const auto& kind) { return kind.OutputShape(shapes); }, op);
  nodes_.push_back(std::move(node));
  return {static_cast<int>(nodes_.size()) - 1};
}

Value GraphBuilder::Dropout(Value x, double rate) {
  DropoutOp dropout;
  dropout.rate = rate;
  dropout.layer = dropout_layers_++;
  return rate == 0 ? x : Apply(dropout, x);
}

Value GraphBuilder::Measure(const std::string& name, Value value, Shape shape, int64_t matrices) {
  probes_.push_back({name, shape, value.node, matrices});
  CHECK_EQ(probes_.back().features(), this->shape(value).features()) << name;
  return value;
}

Graph GraphBuilder::Finish(Value outputs) && {
  CHECK_EQ(shape(rows_).features(), features_.inputs()) << "positions that nothing encodes";
  CHECK_EQ(outputs.node + 1, static_cast<int>(nodes_.size()));
  parameters_.Finish();
  return Graph(features_, std::move(parameters_), std::move(nodes_), std::move(probes_));
}

}  // namespace elastor
