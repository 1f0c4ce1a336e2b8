#include "trainer/experiment/config.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "glog/logging.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/experiment/overrides.h"
#include "trainer/experiment/text_message.h"
#include "xxhash.h"

namespace elastor {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;
using google::protobuf::util::MessageDifferencer;

// Clears, at every level, the fields that do not change a number.
void ClearOperational(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->options().GetExtension(operational)) {
      reflection.ClearField(message, field);
    } else if (field->message_type() != nullptr) {
      ClearOperational(reflection.MutableMessage(message, field));
    }
  }
}

// Keeps the first difference, as "path: value; expected other".
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
  const std::string& text() const { return text_; }

 private:
  static std::string ValueOf(const Message& message, const MessageDifferencer::SpecificField& field,
                             int index) {
    std::string value;
    TextFormat::PrintFieldValueToString(message, field.field,
                                        field.field->is_repeated() ? index : -1, &value);
    return value;
  }
  void Keep(const Path& path, const std::string& found, const std::string& expected) {
    if (!text_.empty()) return;
    for (const auto& step : path) text_ += (text_.empty() ? "" : ".") + step.field->name();
    text_ += ": " + found + "; expected " + expected;
  }

  std::string text_;
};

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
  ELASTOR_RETURN_IF_ERROR(ValidateExperiment(experiment));
  return experiment;
}

StatusOr<Experiment> CompleteStored(Experiment experiment) {
  ELASTOR_RETURN_IF_ERROR(MoveFlatFields(experiment.mutable_model()));
  ResolveDefaults(&experiment);
  return experiment;
}

std::string NumericHash(const Experiment& experiment) {
  Experiment numeric = experiment;
  ClearOperational(&numeric);
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    CHECK(numeric.SerializeToCodedStream(&coded));
  }
  char hex[17];
  snprintf(hex, sizeof(hex), "%016llx",
           static_cast<unsigned long long>(XXH3_64bits(bytes.data(), bytes.size())));
  return hex;
}

std::string NumericDifference(const Experiment& found, const Experiment& expected) {
  // Two models have no fields to compare.
  const FieldDescriptor* model = ChosenModel(found.model());
  const FieldDescriptor* expected_model = ChosenModel(expected.model());
  if (model != expected_model) {
    return "model: " + model->name() + "; expected " + expected_model->name();
  }
  Experiment numeric_found = found;
  Experiment numeric_expected = expected;
  ClearOperational(&numeric_found);
  ClearOperational(&numeric_expected);
  FirstDifference first;
  MessageDifferencer differencer;
  differencer.ReportDifferencesTo(&first);
  differencer.Compare(numeric_found, numeric_expected);
  return first.text();
}

std::string ExperimentText(const Experiment& experiment) {
  std::string text;
  TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  CHECK(printer.PrintToString(experiment, &text));
  return text;
}

}  // namespace elastor
