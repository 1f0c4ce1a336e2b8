#ifndef ELASTOR_TESTS_CORE_MODELS_TEST_MODEL_H_
#define ELASTOR_TESTS_CORE_MODELS_TEST_MODEL_H_

#include <string>

#include "configs/proto/experiment.pb.h"
#include "core/graph/graph.h"
#include "core/models/models.h"

namespace elastor {

// A model for tests, and the fields and outputs it is built for.
struct TestModel {
  ModelConfig config;
  FeatureShape features;
  int64_t outputs = 1;

  Graph graph() const { return MakeModel(config, features, outputs); }
};

// Whether training drops anything at random.
bool HasDropout(const Graph& graph);

// The model that `text` describes, a ModelConfig in text format in which a later value of a field
// takes the place of an earlier one, with every default filled in.
TestModel MakeTestModel(const FeatureShape& features, const std::string& text);

}  // namespace elastor

#endif  // ELASTOR_TESTS_CORE_MODELS_TEST_MODEL_H_
