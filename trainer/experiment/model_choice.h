#ifndef ELASTOR_TRAINER_EXPERIMENT_MODEL_CHOICE_H_
#define ELASTOR_TRAINER_EXPERIMENT_MODEL_CHOICE_H_

#include <string>
#include <string_view>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "google/protobuf/descriptor.h"

namespace elastor {

// The models that an experiment can choose: the fields of ModelConfig's oneof.

// null: none is chosen.
const google::protobuf::FieldDescriptor* ChosenModel(const ModelConfig& model);

// "RANK_ELASTOR": the name of a model in `kind` and in results.
std::string KindName(const google::protobuf::FieldDescriptor& model);

// Of RankElastor and RankMixer; null: it is another model.
const TokenModelConfig* TokenModelOf(const ModelConfig& model);
TokenModelConfig* MutableTokenModelOf(ModelConfig* model);

// How often the model applies its blocks. False where it has no such field.
bool SetIterations(int32_t iterations, ModelConfig* model);

// Chooses the model of this name, in any case. It keeps, of the one chosen before, the fields that
// both have. User error that lists the names; nothing has then changed.
Status ChooseModel(std::string_view kind, ModelConfig* model);

// Moves the fields of the first format, if there are any, into the model that their `kind` names
// (rank_elastor without one). Those that this model does not have are dropped, as they were without
// meaning then. User error when a model is chosen beside them.
Status MoveFlatFields(ModelConfig* model);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_MODEL_CHOICE_H_
