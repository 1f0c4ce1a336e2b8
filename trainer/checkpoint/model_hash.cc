#include "core/base/hash_text.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/experiment/config.h"

namespace elastor {
namespace {

Experiment ModelPart(const Experiment& experiment) {
  Experiment part;
  *part.mutable_model() = experiment.model();
  *part.mutable_embedding() = experiment.embedding();
  part.mutable_training()->set_seed(experiment.training().seed());
  if (!experiment.task().labels().empty()) {
    *part.mutable_task()->mutable_labels() = experiment.task().labels();
  }
  return part;
}

std::string LabelsText(const Experiment& experiment) {
  std::string text;
  for (const std::string& label : experiment.task().labels()) {
    text += (text.empty() ? "" : ", ") + label;
  }
  return text.empty() ? "all" : text;
}

Status AnotherModel(const std::string& difference, const std::string& manifest_path) {
  return UserError(difference + ", as in " + manifest_path +
                   ": a model's experiment must be that of its training");
}

}  // namespace

std::string MakeModelHash(const ModelIdentity& model) {
  Json all = {{"experiment", NumericHash(ModelPart(model.experiment))}, {"fields", Json::array()}};
  for (const DatasetInfo::Numeric& field : model.data.numeric) all["fields"].push_back(field.name);
  for (const DatasetInfo::Categorical& field : model.data.categorical) {
    all["fields"].push_back(
        {field.name, field.ids, field.multi_hot, field.mean_pooling, field.shares});
  }
  const DatasetInfo::Image& image = model.data.image;
  if (image.height > 0) all["image"] = {image.height, image.width};
  return HashTextOf(all.dump());
}

Status CheckModelExperiment(const std::string& manifest_path, const CheckpointMetadata& metadata,
                            const ModelIdentity& model) {
  ELASTOR_ASSIGN_OR_RETURN(const Experiment stored,
                           ParseExperiment(metadata.experiment, manifest_path + ": experiment"));
  ELASTOR_ASSIGN_OR_RETURN(const Experiment trained, CompleteStored(stored));
  const std::string difference = NumericDifference(ModelPart(model.experiment), ModelPart(trained));
  return difference.empty() ? OkStatus() : AnotherModel(difference, manifest_path);
}

Status CheckModel(const std::string& manifest_path, const CheckpointMetadata& metadata,
                  const ModelIdentity& model) {
  ELASTOR_ASSIGN_OR_RETURN(const Experiment stored,
                           ParseExperiment(metadata.experiment, manifest_path + ": experiment"));
  if (const std::string hash = MakeModelHash({stored, model.data}); hash != metadata.model_hash) {
    return UserError(manifest_path + ": model_hash " + metadata.model_hash +
                     "; with this data it is " + hash +
                     ": the data's fields must be those of training");
  }
  return OkStatus();
}

Status CheckLabels(const std::string& manifest_path, const CheckpointMetadata& metadata,
                   const ModelIdentity& model) {
  ELASTOR_ASSIGN_OR_RETURN(const Experiment trained,
                           ParseExperiment(metadata.experiment, manifest_path + ": experiment"));
  const std::string found = LabelsText(model.experiment);
  const std::string expected = LabelsText(trained);
  if (found == expected) return OkStatus();
  return AnotherModel("task.labels: " + found + "; expected " + expected, manifest_path);
}

Status CheckEncoding(const std::string& manifest_path, const CheckpointMetadata& metadata,
                     const ModelIdentity& model) {
  if (!metadata.encoding) return OkStatus();
  const DataEncoding data = EncodingOf(model.data);
  // Without names in the experiment, a model learns all labels.
  if (model.experiment.task().labels().empty()) {
    const std::string difference = LabelDifference(data, *metadata.encoding, manifest_path);
    if (!difference.empty()) {
      return UserError("data.path: " + model.experiment.data().path() + ": " + difference +
                       "; expected data with the labels that the model has learned");
    }
  }
  const std::string difference = EncodingDifference(data, *metadata.encoding, manifest_path);
  if (difference.empty()) return OkStatus();
  return UserError("data.path: " + model.experiment.data().path() + ": " + difference +
                   "; prepare the rows with the training set's schema and "
                   "--vocabulary_from=the training set");
}

void WarnOfUnknownEncoding(const std::string& manifest_path, const CheckpointMetadata& metadata,
                           const Communicator& communicator) {
  if (metadata.encoding || communicator.rank() != 0) return;
  LOG(WARNING) << manifest_path
               << ": of an earlier version, which does not tell how the training data was encoded; "
                  "whether other data is encoded alike cannot be checked";
}

}  // namespace elastor
