#include "trainer/experiment/overrides.h"

#include <vector>

#include "core/base/log.h"
#include "core/base/text.h"
#include "google/protobuf/descriptor.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/fields/field_values.h"

namespace elastor {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr char kChoosesModel[] = "model.kind=";

std::vector<std::string> SplitPath(std::string_view path) {
  std::vector<std::string> names;
  for (size_t dot; (dot = path.find('.')) != path.npos; path.remove_prefix(dot + 1)) {
    names.emplace_back(path.substr(0, dot));
  }
  names.emplace_back(path);
  return names;
}

// Puts the chosen model's name into a path that begins with "model" and leaves it out.
Status CompletePath(const ModelConfig& model, std::vector<std::string>* path) {
  if (path->size() < 2 || path->front() != "model") return OkStatus();
  const FieldDescriptor* chosen = ChosenModel(model);
  const FieldDescriptor* named = ModelConfig::descriptor()->FindFieldByName((*path)[1]);
  if (named != nullptr && named->name() == "sequences") return OkStatus();
  if (named == nullptr || named->real_containing_oneof() == nullptr) {
    if (chosen == nullptr) chosen = ModelConfig::descriptor()->FindOneofByName("model")->field(0);
    path->insert(path->begin() + 1, chosen->name());
    return OkStatus();
  }
  if (chosen == nullptr || chosen == named) return OkStatus();
  return UserError("the model is " + chosen->name() + "; --set=" + kChoosesModel +
                   KindName(*named) + " chooses " + named->name());
}

// The fields from the experiment's down to the one that is set.
StatusOr<std::vector<const FieldDescriptor*>> FindFields(const std::vector<std::string>& path) {
  std::vector<const FieldDescriptor*> fields;
  const Descriptor* level = Experiment::descriptor();
  for (const std::string& name : path) {
    if (level == nullptr) return UserError(fields.back()->name() + " has no fields of its own");
    const FieldDescriptor* field = level->FindFieldByName(name);
    if (field == nullptr) {
      const std::vector<std::string> names = FieldNames(*level);
      return UserError(level->name() + " has no field '" + name + "'; it has: " + JoinNames(names) +
                       DidYouMean(names, name));
    }
    if (field->is_repeated() && field->message_type() != nullptr) {
      return UserError(field->name() +
                       " is a list of groups; expected it in the experiment's file, not a flag");
    }
    fields.push_back(field);
    level = field->message_type();  // null for a plain value
  }
  if (level == nullptr) return fields;
  return UserError(fields.back()->name() +
                   " is a group of fields; set one of: " + JoinNames(FieldNames(*level)));
}

Status Apply(const std::vector<std::string>& path, const std::string& value,
             Experiment* experiment) {
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<const FieldDescriptor*> fields, FindFields(path));
  Message* parent = experiment;
  for (size_t i = 0; i + 1 < fields.size(); ++i) {
    parent = parent->GetReflection()->MutableMessage(parent, fields[i]);
  }
  return SetField(*fields.back(), value, parent);
}

}  // namespace

Status ApplyOverride(std::string_view assignment, Experiment* experiment) {
  const size_t equals = assignment.find('=');
  Experiment changed = *experiment;
  const auto apply = [&]() -> Status {
    if (equals == assignment.npos || equals == 0) return UserError("expected path.to.field=value");
    const std::string value(assignment.substr(equals + 1));
    if (assignment.starts_with(kChoosesModel)) return ChooseModel(value, changed.mutable_model());
    std::vector<std::string> path = SplitPath(assignment.substr(0, equals));
    ELASTOR_RETURN_IF_ERROR(CompletePath(changed.model(), &path));
    return Apply(path, value, &changed);
  };
  const Status status = apply();
  if (!status.ok()) return UserError(StrCat("--set=", assignment, ": ", status.message()));
  experiment->Swap(&changed);
  return OkStatus();
}

Status ApplyOverrides(std::span<const std::string> assignments, Experiment* experiment) {
  for (const bool chooses_model : {true, false}) {
    for (const std::string& assignment : assignments) {
      if (assignment.starts_with(kChoosesModel) != chooses_model) continue;
      ELASTOR_RETURN_IF_ERROR(ApplyOverride(assignment, experiment));
    }
  }
  return OkStatus();
}

}  // namespace elastor
