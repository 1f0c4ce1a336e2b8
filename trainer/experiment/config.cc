#include "trainer/experiment/config.h"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
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
#include "trainer/experiment/field_values.h"
#include "trainer/experiment/model_choice.h"
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

std::vector<std::string> QuotedParts(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t end = 0, begin; (begin = text.find('"', end)) != text.npos; ++end) {
    end = text.find('"', begin + 1);
    if (end == text.npos) break;
    parts.push_back(text.substr(begin + 1, end - begin - 1));
  }
  return parts;
}

std::string ListNames(const std::vector<std::string>& names, const std::string& found) {
  return JoinNames(names) + DidYouMean(names, found);
}

class IgnoredErrors : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override {}
};

// The last field that an experiment's text names before a place; null: none.
const FieldDescriptor* FieldAt(const std::string& text, int line, int column) {
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  IgnoredErrors ignored;
  google::protobuf::io::Tokenizer tokens(&stream, &ignored);
  tokens.set_comment_style(google::protobuf::io::Tokenizer::SH_COMMENT_STYLE);
  std::vector<const Descriptor*> levels = {Experiment::descriptor()};
  const FieldDescriptor* field = nullptr;
  while (tokens.Next() &&
         std::pair(tokens.current().line, tokens.current().column) < std::pair(line, column)) {
    const std::string& token = tokens.current().text;
    if (token == "{" || token == "<") {
      levels.push_back(field == nullptr ? nullptr : field->message_type());
    } else if ((token == "}" || token == ">") && levels.size() > 1) {
      levels.pop_back();
    } else if (const FieldDescriptor* named =
                   levels.back() == nullptr ? nullptr : levels.back()->FindFieldByName(token);
               named != nullptr) {
      field = named;
    }
  }
  return field;
}

// Keeps the first error of a text file as "line:column: what", with the names that are possible
// where the parser knows only that this one is not.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(const std::string& file_text) : file_text_(file_text) {}

  void AddError(int line, int column, const std::string& what) override {
    if (!text_.empty()) return;
    text_ = std::to_string(line + 1) + ":" + std::to_string(column + 1) + ": " + what +
            PossibleNames(line, column, what);
  }
  const std::string& text() const { return text_; }

 private:
  std::string PossibleNames(int line, int column, const std::string& what) const {
    const std::vector<std::string> quoted = QuotedParts(what);
    // Message type "elastor.ModelConfig" has no field named "x".
    if (what.starts_with("Message type ") && quoted.size() == 2) {
      const Descriptor* type =
          Experiment::descriptor()->file()->pool()->FindMessageTypeByName(quoted[0]);
      return type == nullptr ? "" : " It has: " + ListNames(FieldNames(*type), quoted[1]);
    }
    // Unknown enumeration value of "x" for field "order".
    if (what.starts_with("Unknown enumeration value ") && quoted.size() == 2) {
      const FieldDescriptor* field = FieldAt(file_text_, line, column);
      if (field == nullptr || field->enum_type() == nullptr) return "";
      return " Expected one of: " + ListNames(ValueNames(*field->enum_type()), quoted[0]);
    }
    return "";
  }

  const std::string& file_text_;
  std::string text_;
};

using FieldMark = decltype(operational);

// Clears, at every level, the fields that have the mark.
void ClearMarked(const FieldMark& mark, Message* message) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->options().GetExtension(mark)) {
      reflection.ClearField(message, field);
    } else if (field->message_type() != nullptr) {
      ClearMarked(mark, reflection.MutableMessage(message, field));
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
  FirstError error(text);
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  Experiment experiment;
  if (!parser.ParseFromString(text, &experiment)) return UserError(source + ":" + error.text());
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
  Experiment numeric = experiment;
  ClearMarked(operational, &numeric);
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
  if (experiment.training().has_warm_start()) {
    make_absolute(experiment.mutable_training()->mutable_warm_start()->mutable_path());
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
