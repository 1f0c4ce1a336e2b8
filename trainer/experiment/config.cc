#include "trainer/experiment/config.h"

#include <cstdio>
#include <vector>

#include "core/base/file.h"
#include "glog/logging.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/overrides.h"
#include "xxhash.h"

namespace elastor {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;
using google::protobuf::util::MessageDifferencer;

// Keeps the first error of a text file as "line:column: what".
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& what) override {
    if (!text_.empty()) return;
    text_ = std::to_string(line + 1) + ":" + std::to_string(column + 1) + ": " + what +
            ValidFields(what);
  }
  const std::string& text() const { return text_; }

 private:
  // For `Message type "elastor.ModelConfig" has no field named "x"`: the fields it has.
  static std::string ValidFields(const std::string& what) {
    const std::string prefix = "Message type \"";
    if (what.find("has no field named") == what.npos || !what.starts_with(prefix)) return "";
    const std::string name =
        what.substr(prefix.size(), what.find('"', prefix.size()) - prefix.size());
    const Descriptor* type =
        google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(name);
    return type == nullptr ? "" : " It has: " + FieldNames(*type);
  }

  std::string text_;
};

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
  FirstError error;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  Experiment experiment;
  if (!parser.ParseFromString(text, &experiment)) return UserError(source + ":" + error.text());
  return experiment;
}

StatusOr<Experiment> ReadExperiment(const std::string& path) {
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseExperiment(text, path);
}

StatusOr<Experiment> LoadExperiment(const std::string& path,
                                    std::span<const std::string> overrides) {
  ELASTOR_ASSIGN_OR_RETURN(Experiment experiment, ReadExperiment(path));
  for (const std::string& assignment : overrides) {
    ELASTOR_RETURN_IF_ERROR(ApplyOverride(assignment, &experiment));
  }
  ResolveDefaults(&experiment);
  ELASTOR_RETURN_IF_ERROR(ValidateExperiment(experiment));
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
