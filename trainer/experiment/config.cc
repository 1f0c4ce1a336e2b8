#include "trainer/experiment/config.h"

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/experiment/overrides.h"
#include "trainer/fields/text_message.h"
#include "xxhash.h"

namespace elastor {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;
using google::protobuf::util::MessageDifferencer;

using FieldMark = decltype(operational);

// Calls fn(group) for a field that is a group, or for every group of a list.
template <typename Fn>
void ForEachGroup(const FieldDescriptor& field, Message* message, const Fn& fn) {
  const Reflection& reflection = *message->GetReflection();
  if (!field.is_repeated()) return fn(reflection.MutableMessage(message, &field));
  for (int i = 0; i < reflection.FieldSize(*message, &field); ++i) {
    fn(reflection.MutableRepeatedMessage(message, &field, i));
  }
}

// Clears, at every level, the fields that have the mark.
void ClearMarked(const FieldMark& mark, Message* message) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->options().GetExtension(mark)) {
      reflection.ClearField(message, field);
    } else if (field->message_type() != nullptr) {
      ForEachGroup(*field, message, [&](Message* group) { ClearMarked(mark, group); });
    }
  }
}

// Compares the values of a scalar field, whether it is set or not.
bool SameValue(const Message& a, const Message& b, const FieldDescriptor& field) {
  const int count = field.is_repeated() ? a.GetReflection()->FieldSize(a, &field) : 1;
  if (field.is_repeated() && b.GetReflection()->FieldSize(b, &field) != count) return false;
  for (int i = 0; i < count; ++i) {
    const int index = field.is_repeated() ? i : -1;
    std::string value, other;
    TextFormat::PrintFieldValueToString(a, &field, index, &value);
    TextFormat::PrintFieldValueToString(b, &field, index, &other);
    if (value != other) return false;
  }
  return true;
}

bool DependsOnOthers(const FieldDescriptor& field) {
  return !field.options().GetExtension(rule).default_words().empty();
}

// Clears, at every level, the plain fields that `is_default(message, field)` says it of, and the
// groups that nothing is left in; a chosen model stays.
template <typename IsDefault>
void ClearDefaults(const Message& defaults, Message* message, const IsDefault& is_default) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->message_type() == nullptr) {
      if (is_default(defaults, message, *field)) reflection.ClearField(message, field);
      continue;
    }
    if (field->is_repeated()) continue;  // groups of a list stand for themselves
    Message* group = reflection.MutableMessage(message, field);
    ClearDefaults(reflection.GetMessage(defaults, field), group, is_default);
    const bool chosen = field->real_containing_oneof() != nullptr;
    if (!chosen && group->ByteSizeLong() == 0) reflection.ClearField(message, field);
  }
}

std::string NumericBytes(const Experiment& resolved) {
  const Experiment experiment = NumericFields(resolved);
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  CHECK(experiment.SerializeToCodedStream(&coded));
  coded.Trim();
  return bytes;
}

// Adds every field that is set, by its path.
void AddFields(const Message& message, const std::string& path,
               std::map<std::string, std::string>* fields) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    const std::string name = path + field->name();
    if (field->message_type() != nullptr && field->is_repeated()) {
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        AddFields(reflection.GetRepeatedMessage(message, field, i), StrCat(name, ".", i, "."),
                  fields);
      }
      continue;
    }
    if (field->message_type() != nullptr) {
      AddFields(reflection.GetMessage(message, field), name + ".", fields);
      continue;
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && !field->is_repeated()) {
      (*fields)[name] = reflection.GetString(message, field);
      continue;
    }
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    std::string& text = (*fields)[name];
    for (int i = 0; i < count; ++i) {
      std::string value;
      TextFormat::PrintFieldValueToString(message, field, field->is_repeated() ? i : -1, &value);
      text += (i == 0 ? "" : ", ") + value;
    }
  }
}

// A field and its two values.
struct Difference {
  std::string field;
  std::string found;
  std::string expected;
};

// Keeps the first difference.
class FirstDifference : public MessageDifferencer::Reporter {
 public:
  using Path = std::vector<MessageDifferencer::SpecificField>;

  void ReportAdded(const Message&, const Message& expected, const Path& path) override {
    Keep(path, "unset", ValueOf(expected, path.back(), path.back().new_index));
  }
  void ReportDeleted(const Message& found, const Message&, const Path& path) override {
    Keep(path, ValueOf(found, path.back(), path.back().index), "unset");
  }
  void ReportModified(const Message& found, const Message& expected, const Path& path) override {
    Keep(path, ValueOf(found, path.back(), path.back().index),
         ValueOf(expected, path.back(), path.back().new_index));
  }
  const std::optional<Difference>& difference() const { return difference_; }

 private:
  static std::string ValueOf(const Message& message, const MessageDifferencer::SpecificField& field,
                             int index) {
    if (field.field->message_type() != nullptr) return "set";
    std::string value;
    TextFormat::PrintFieldValueToString(message, field.field,
                                        field.field->is_repeated() ? index : -1, &value);
    return value;
  }
  void Keep(const Path& path, const std::string& found, const std::string& expected) {
    if (difference_) return;
    difference_ = {"", found, expected};
    std::string& name = difference_->field;
    for (const auto& step : path) name += (name.empty() ? "" : ".") + step.field->name();
  }

  std::optional<Difference> difference_;
};

// The first difference, in the order of experiment.proto, among the fields without the mark.
std::optional<Difference> DifferenceBut(const FieldMark& ignored, Experiment found,
                                        Experiment expected) {
  // Two models have no fields to compare.
  const FieldDescriptor* model = ChosenModel(found.model());
  const FieldDescriptor* expected_model = ChosenModel(expected.model());
  if (model != expected_model) return Difference{"model", model->name(), expected_model->name()};
  ClearMarked(ignored, &found);
  ClearMarked(ignored, &expected);
  FirstDifference first;
  MessageDifferencer differencer;
  differencer.ReportDifferencesTo(&first);
  differencer.Compare(found, expected);
  return first.difference();
}

}  // namespace

StatusOr<Experiment> ParseExperiment(const std::string& text, const std::string& source) {
  Experiment experiment;
  ELASTOR_RETURN_IF_ERROR(ParseTextMessage(text, source, &experiment));
  return experiment;
}

StatusOr<Experiment> ReadExperiment(const std::string& path) {
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ELASTOR_ASSIGN_OR_RETURN(Experiment experiment, ParseExperiment(text, path));
  const Status moved = MoveFlatFields(experiment.mutable_model());
  if (!moved.ok()) return UserError(path + ": " + moved.message());
  return experiment;
}

StatusOr<Experiment> LoadExperiment(const std::string& path,
                                    std::span<const std::string> overrides) {
  ELASTOR_ASSIGN_OR_RETURN(Experiment experiment, ReadExperiment(path));
  ELASTOR_RETURN_IF_ERROR(ApplyOverrides(overrides, &experiment));
  ResolveDefaults(&experiment);
  // As it will be written: a directory's name may be no UTF-8 either.
  ELASTOR_RETURN_IF_ERROR(ValidateExperiment(WithAbsolutePaths(experiment)));
  return experiment;
}

StatusOr<Experiment> CompleteStored(Experiment experiment) {
  ELASTOR_RETURN_IF_ERROR(MoveFlatFields(experiment.mutable_model()));
  ResolveDefaults(&experiment);
  return experiment;
}

std::string NumericHash(const Experiment& experiment) {
  const std::string bytes = NumericBytes(experiment);
  char hex[17];
  snprintf(hex, sizeof(hex), "%016llx",
           static_cast<unsigned long long>(XXH3_64bits(bytes.data(), bytes.size())));
  return hex;
}

Experiment NumericFields(Experiment experiment) {
  ClearMarked(operational, &experiment);
  return experiment;
}

Experiment DistinctFields(const Experiment& experiment) {
  Experiment distinct = NumericFields(experiment);
  // Defaults that depend on no other field are those of any experiment with this model.
  Experiment defaults;
  if (const FieldDescriptor* model = ChosenModel(experiment.model()); model != nullptr) {
    ModelConfig* config = defaults.mutable_model();
    config->GetReflection()->MutableMessage(config, model);
  }
  ResolveDefaults(&defaults);
  ClearDefaults(defaults, &distinct,
                [](const Message& defaults, Message* message, const FieldDescriptor& field) {
                  return !DependsOnOthers(field) && SameValue(*message, defaults, field);
                });
  // The others are tried, one after the other.
  const std::string bytes = NumericBytes(experiment);
  ClearDefaults(defaults, &distinct,
                [&](const Message&, Message* message, const FieldDescriptor& field) {
                  if (!DependsOnOthers(field)) return false;
                  const std::unique_ptr<Message> given(message->New());
                  given->CopyFrom(*message);
                  message->GetReflection()->ClearField(message, &field);
                  Experiment resolved = distinct;
                  ResolveDefaults(&resolved);
                  const bool same = NumericBytes(resolved) == bytes;
                  if (!same) message->CopyFrom(*given);
                  return same;
                });
  return distinct;
}

std::map<std::string, std::string> FieldTexts(const Experiment& experiment) {
  std::map<std::string, std::string> fields;
  AddFields(experiment, "", &fields);
  return fields;
}

std::map<std::string, std::string> SettingTexts(const Experiment& experiment) {
  std::map<std::string, std::string> settings = FieldTexts(DistinctFields(experiment));
  const FieldDescriptor* model = ChosenModel(experiment.model());
  if (model != nullptr) settings["model"] = KindName(*model);
  const std::map<std::string, std::string> all = FieldTexts(experiment);
  for (const char* name :
       {"optimizer.learning_rate", "training.batch_size", "training.epochs", "training.seed"}) {
    if (const auto field = all.find(name); field != all.end()) settings.insert(*field);
  }
  return settings;
}

std::string NumericDifference(const Experiment& found, const Experiment& expected) {
  const auto difference = DifferenceBut(operational, found, expected);
  if (!difference) return "";
  return difference->field + ": " + difference->found + "; expected " + difference->expected;
}

std::string RankDifference(const Experiment& found, const Experiment& of_rank_0) {
  const auto difference = DifferenceBut(per_rank, found, of_rank_0);
  if (!difference) return "";
  return difference->field + " is " + difference->found + ", expected rank 0's " +
         difference->expected;
}

Experiment WithAbsolutePaths(Experiment experiment) {
  const auto make_absolute = [](std::string* path) {
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(*path, error);
    if (!path->empty() && !error) *path = absolute.string();
  };
  if (experiment.has_data()) make_absolute(experiment.mutable_data()->mutable_path());
  if (experiment.embedding().has_tier()) {
    make_absolute(experiment.mutable_embedding()->mutable_tier()->mutable_path());
  }
  if (experiment.has_publish()) make_absolute(experiment.mutable_publish()->mutable_path());
  if (!experiment.parallel().machine().empty()) {
    make_absolute(experiment.mutable_parallel()->mutable_machine());
  }
  if (experiment.training().has_warm_start()) {
    make_absolute(experiment.mutable_training()->mutable_warm_start()->mutable_path());
  }
  if (experiment.training().has_continued_from()) {
    make_absolute(experiment.mutable_training()->mutable_continued_from()->mutable_path());
  }
  return experiment;
}

std::string ExperimentText(const Experiment& experiment) {
  std::string text;
  TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  CHECK(printer.PrintToString(experiment, &text));
  return text;
}

}  // namespace elastor
