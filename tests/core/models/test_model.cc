#include "tests/core/models/test_model.h"

#include <algorithm>

#include "core/base/log.h"
#include "google/protobuf/text_format.h"
#include "trainer/experiment/config_defaults.h"

namespace elastor {

TestModel MakeTestModel(const FeatureShape& features, const std::string& text) {
  Experiment experiment;
  CHECK(google::protobuf::TextFormat::MergeFromString(text, experiment.mutable_model())) << text;
  ResolveDefaults(&experiment);
  TestModel model = {experiment.model(), features};
  model.features.first_order = HasFirstOrder(model.config);
  return model;
}

bool HasDropout(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) {
    const auto* const attention = std::get_if<AttentionOp>(&node.op);
    return std::holds_alternative<DropoutOp>(node.op) ||
           (attention != nullptr && attention->dropout > 0);
  });
}

}  // namespace elastor
