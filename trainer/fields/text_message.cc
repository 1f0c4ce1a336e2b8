#include "trainer/fields/text_message.h"

#include <utility>
#include <vector>

#include "core/base/utf8.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "trainer/fields/field_values.h"

namespace elastor {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

std::string At(int line, int column) {
  return std::to_string(line + 1) + ":" + std::to_string(column + 1) + ": ";
}

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

// The last field that the text of a `root` names before a place; null: none.
const FieldDescriptor* FieldAt(const Descriptor* root, const std::string& text, int line,
                               int column) {
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  IgnoredErrors ignored;
  google::protobuf::io::Tokenizer tokens(&stream, &ignored);
  tokens.set_comment_style(google::protobuf::io::Tokenizer::SH_COMMENT_STYLE);
  std::vector<const Descriptor*> levels = {root};
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
  FirstError(const Descriptor* root, const std::string& file_text)
      : root_(root), file_text_(file_text) {}

  void AddError(int line, int column, const std::string& what) override {
    // A file of another kind may be one word of megabytes.
    constexpr size_t kMostBytes = 300;
    if (!text_.empty()) return;
    text_ = At(line, column) + what.substr(0, kMostBytes) +
            (what.size() > kMostBytes ? "..." : "") + PossibleNames(line, column, what);
  }
  const std::string& text() const { return text_; }

 private:
  std::string PossibleNames(int line, int column, const std::string& what) const {
    const std::vector<std::string> quoted = QuotedParts(what);
    // Message type "elastor.ModelConfig" has no field named "x".
    if (what.starts_with("Message type ") && quoted.size() == 2) {
      const Descriptor* type = root_->file()->pool()->FindMessageTypeByName(quoted[0]);
      return type == nullptr ? "" : " It has: " + ListNames(FieldNames(*type), quoted[1]);
    }
    // Unknown enumeration value of "x" for field "order".
    if (what.starts_with("Unknown enumeration value ") && quoted.size() == 2) {
      const FieldDescriptor* field = FieldAt(root_, file_text_, line, column);
      if (field == nullptr || field->enum_type() == nullptr) return "";
      return " Expected one of: " + ListNames(ValueNames(*field->enum_type()), quoted[0]);
    }
    return "";
  }

  const Descriptor* const root_;
  const std::string& file_text_;
  std::string text_;
};

// What is wrong with a value that the parser takes; empty: nothing. `index`: -1 in a singular
// field.
std::string WrongValue(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  if (field.enum_type() != nullptr) {
    const int value = index < 0 ? reflection.GetEnumValue(message, &field)
                                : reflection.GetRepeatedEnumValue(message, &field, index);
    if (field.enum_type()->FindValueByNumber(value) != nullptr) return "";
    return "is " + std::to_string(value) +
           "; expected one of: " + JoinNames(ValueNames(*field.enum_type()));
  }
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_STRING) return "";
  const std::string value = index < 0 ? reflection.GetString(message, &field)
                                      : reflection.GetRepeatedString(message, &field, index);
  return IsUtf8(value) ? "" : "is not UTF-8; expected UTF-8 text";
}

// The first such value of a message, as "line:column: field what"; empty: none.
std::string FirstWrongValue(const Message& message, const TextFormat::ParseInfoTree& places) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const int index = field->is_repeated() ? i : -1;
      if (field->message_type() != nullptr) {
        const Message& inner = index < 0 ? reflection.GetMessage(message, field)
                                         : reflection.GetRepeatedMessage(message, field, i);
        const TextFormat::ParseInfoTree* inner_places = places.GetTreeForNested(field, index);
        const std::string wrong =
            inner_places == nullptr ? "" : FirstWrongValue(inner, *inner_places);
        if (!wrong.empty()) return wrong;
        continue;
      }
      const std::string wrong = WrongValue(message, *field, index);
      const TextFormat::ParseLocation place = places.GetLocation(field, index);
      if (!wrong.empty()) return At(place.line, place.column) + field->name() + " " + wrong;
    }
  }
  return "";
}

}  // namespace

Status ParseTextMessage(const std::string& bytes, const std::string& source, Message* message) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  const std::string text = bytes.substr(bytes.starts_with(kByteOrderMark) ? 3 : 0);
  FirstError error(message->GetDescriptor(), text);
  TextFormat::ParseInfoTree places;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&places);
  if (!parser.ParseFromString(text, message)) return UserError(source + ":" + error.text());
  const std::string wrong = FirstWrongValue(*message, places);
  return wrong.empty() ? OkStatus() : UserError(source + ":" + wrong);
}

}  // namespace elastor
