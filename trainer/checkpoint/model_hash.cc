#include "nlohmann/json.hpp"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/experiment/config.h"
#include "xxhash.h"

namespace elastor {
namespace {

Experiment ModelPart(const Experiment& experiment) {
  Experiment part;
  *part.mutable_model() = experiment.model();
  *part.mutable_embedding() = experiment.embedding();
  part.mutable_training()->set_seed(experiment.training().seed());
  return part;
}

}  // namespace

std::string MakeModelHash(const ModelIdentity& model) {
  using Json = nlohmann::ordered_json;
  Json all = {{"experiment", NumericHash(ModelPart(model.experiment))}, {"fields", Json::array()}};
  for (const DatasetInfo::Numeric& field : model.data.numeric) all["fields"].push_back(field.name);
  for (const DatasetInfo::Categorical& field : model.data.categorical) {
    all["fields"].push_back(
        {field.name, field.ids, field.multi_hot, field.mean_pooling, field.shares});
  }
  const std::string text = all.dump();
  return HashText(XXH3_64bits(text.data(), text.size()));
}

Status CheckModel(const std::string& manifest_path, const CheckpointMetadata& metadata,
                  const ModelIdentity& model) {
  ELASTOR_ASSIGN_OR_RETURN(const Experiment stored,
                           ParseExperiment(metadata.experiment, manifest_path + ": experiment"));
  ELASTOR_ASSIGN_OR_RETURN(const Experiment trained, CompleteStored(stored));
  const std::string difference = NumericDifference(ModelPart(model.experiment), ModelPart(trained));
  if (!difference.empty()) {
    return UserError(difference + ", as in " + manifest_path +
                     ": a model's experiment must be that of its training");
  }
  if (const std::string hash = MakeModelHash({stored, model.data}); hash != metadata.model_hash) {
    return UserError(manifest_path + ": model_hash " + metadata.model_hash +
                     "; with this data it is " + hash +
                     ": the data's fields must be those of training");
  }
  return OkStatus();
}

}  // namespace elastor
