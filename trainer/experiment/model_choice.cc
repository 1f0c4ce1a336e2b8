#include "trainer/experiment/model_choice.h"

#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/text.h"
#include "google/protobuf/text_format.h"
#include "trainer/fields/field_values.h"

namespace elastor {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

const OneofDescriptor& Models() { return *ModelConfig::descriptor()->FindOneofByName("model"); }

bool SameType(const FieldDescriptor& a, const FieldDescriptor& b) {
  return a.type() == b.type() && a.is_repeated() == b.is_repeated() &&
         a.message_type() == b.message_type() && a.enum_type() == b.enum_type();
}

// Chooses `chosen`, with those of the source's fields that it has too.
void ConvertModel(const Message& source, const FieldDescriptor& chosen, ModelConfig* model) {
  const std::unique_ptr<Message> shared(source.New());
  shared->CopyFrom(source);
  std::vector<const FieldDescriptor*> fields;
  shared->GetReflection()->ListFields(*shared, &fields);
  for (const FieldDescriptor* field : fields) {
    const FieldDescriptor* same = chosen.message_type()->FindFieldByName(field->name());
    if (same == nullptr || !SameType(*field, *same)) {
      shared->GetReflection()->ClearField(shared.get(), field);
    }
  }
  std::string text;
  CHECK(TextFormat::PrintToString(*shared, &text));
  SequencesConfig sequences;
  const bool reads_sequences = model->has_sequences();
  sequences.Swap(model->mutable_sequences());
  model->Clear();
  if (reads_sequences) model->mutable_sequences()->Swap(&sequences);
  CHECK(TextFormat::ParseFromString(text, model->GetReflection()->MutableMessage(model, &chosen)));
  // The one field of the token models that only RankElastor has.
  if (model->has_rank_mixer()) model->mutable_rank_mixer()->clear_mixing();
}

StatusOr<const FieldDescriptor*> FindModel(std::string_view kind) {
  std::vector<std::string> names;
  for (int i = 0; i < Models().field_count(); ++i) {
    names.push_back(KindName(*Models().field(i)));
    if (names.back() == UpperCase(kind)) return Models().field(i);
  }
  const std::string found = UpperCase(kind);
  const OneofDescriptor& encoders = *SequencesConfig::descriptor()->FindOneofByName("encoder");
  std::string hint = DidYouMean(names, found);
  for (int i = 0; i < encoders.field_count(); ++i) {
    if (KindName(*encoders.field(i)) == found) hint = "; it encodes sequences: model.sequences";
  }
  return UserError(StrCat("expected one of ", JoinNames(names), ", found '", kind, "'", hint));
}

}  // namespace

const FieldDescriptor* ChosenModel(const ModelConfig& model) {
  return model.GetReflection()->GetOneofFieldDescriptor(model, &Models());
}

std::string KindName(const FieldDescriptor& model) { return UpperCase(model.name()); }

const TokenModelConfig* TokenModelOf(const ModelConfig& model) {
  if (model.has_rank_mixer()) return &model.rank_mixer();
  return model.has_rank_elastor() ? &model.rank_elastor() : nullptr;
}

bool SetIterations(int32_t iterations, ModelConfig* model) {
  if (model->has_matrix_thinker()) {
    model->mutable_matrix_thinker()->set_iterations(iterations);
  } else if (TokenModelConfig* const tokens = MutableTokenModelOf(model); tokens != nullptr) {
    tokens->set_iterations(iterations);
  } else {
    return false;
  }
  return true;
}

TokenModelConfig* MutableTokenModelOf(ModelConfig* model) {
  if (model->has_rank_mixer()) return model->mutable_rank_mixer();
  return model->has_rank_elastor() ? model->mutable_rank_elastor() : nullptr;
}

Status ChooseModel(std::string_view kind, ModelConfig* model) {
  ELASTOR_ASSIGN_OR_RETURN(const FieldDescriptor* chosen, FindModel(kind));
  const FieldDescriptor* before = ChosenModel(*model);
  if (before == chosen) return OkStatus();
  const Reflection& reflection = *model->GetReflection();
  ConvertModel(before == nullptr ? *model : reflection.GetMessage(*model, before), *chosen, model);
  return OkStatus();
}

Status MoveFlatFields(ModelConfig* model) {
  const Reflection& reflection = *model->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*model, &fields);
  std::vector<std::string> flat;
  for (const FieldDescriptor* field : fields) {
    if (field->options().deprecated()) flat.push_back(field->name());
  }
  if (flat.empty()) return OkStatus();
  if (const FieldDescriptor* chosen = ChosenModel(*model); chosen != nullptr) {
    return UserError("model: has " + JoinNames(flat) + " beside " + chosen->name() +
                     "; expected all of a model's fields within it");
  }
  const FieldDescriptor* kind = ModelConfig::descriptor()->FindFieldByName("kind");
  ELASTOR_ASSIGN_OR_RETURN(const FieldDescriptor* chosen,
                           FindModel(reflection.GetEnum(*model, kind)->name()));
  ConvertModel(*model, *chosen, model);
  return OkStatus();
}

}  // namespace elastor
