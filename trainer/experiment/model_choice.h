#ifndef ELASTOR_TRAINER_EXPERIMENT_MODEL_CHOICE_H_
#define ELASTOR_TRAINER_EXPERIMENT_MODEL_CHOICE_H_

#include <string>
#include <string_view>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "google/protobuf/descriptor.h"

namespace elastor {

// The models that an experiment can choose: the fields of ModelConfig's oneof.

// Returns the field of the chosen model, or null if none is chosen.
const google::protobuf::FieldDescriptor* ChosenModel(const ModelConfig& model);

// Returns the name of a model in `kind` and in results: "RANK_ELASTOR".
std::string KindName(const google::protobuf::FieldDescriptor& model);

// Returns the configuration of RankElastor or RankMixer, or null for any other model.
const TokenModelConfig* TokenModelOf(const ModelConfig& model);
TokenModelConfig* MutableTokenModelOf(ModelConfig* model);

// Sets how often the model applies its blocks. Returns false if the model has no such field.
bool SetIterations(int32_t iterations, ModelConfig* model);

// Chooses the model of this name, in upper or lower case. Keeps the previous model's fields that
// both models have. User error that lists the names; nothing has then changed.
Status ChooseModel(std::string_view kind, ModelConfig* model);

// Moves the fields of the first format, if there are any, into the model that their `kind` names
// (rank_elastor without one). Drops fields that this model does not have, as the first format
// ignored them. User error when a model is chosen beside them.
Status MoveFlatFields(ModelConfig* model);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_MODEL_CHOICE_H_
