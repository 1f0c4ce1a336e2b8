#include "nlohmann/json.hpp"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/experiment/config.h"
#include "xxhash.h"

namespace elastor {

std::string MakeModelHash(const Experiment& experiment, const DatasetInfo& data) {
  using Json = nlohmann::ordered_json;
  Experiment part;
  *part.mutable_model() = experiment.model();
  *part.mutable_embedding() = experiment.embedding();
  part.mutable_training()->set_seed(experiment.training().seed());
  Json all = {{"experiment", NumericHash(part)}, {"fields", Json::array()}};
  for (const DatasetInfo::Numeric& field : data.numeric) all["fields"].push_back(field.name);
  for (const DatasetInfo::Categorical& field : data.categorical) {
    all["fields"].push_back(
        {field.name, field.ids, field.multi_hot, field.mean_pooling, field.shares});
  }
  const std::string text = all.dump();
  return HashText(XXH3_64bits(text.data(), text.size()));
}

}  // namespace elastor
