#include "trainer/fields/field_help.h"

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "configs/proto/commented_descriptors.h"
#include "configs/proto/experiment.pb.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "trainer/fields/field_values.h"
#include "trainer/fields/field_words.h"

namespace elastor {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;

constexpr size_t kLineLetters = 80;

// A field and where it stands.
struct Place {
  std::string path;
  const FieldDescriptor* field;
};

void Collect(const Descriptor& group, const std::string& prefix, std::vector<Place>* places) {
  for (int i = 0; i < group.field_count(); ++i) {
    const FieldDescriptor& field = *group.field(i);
    if (field.options().deprecated()) continue;
    places->push_back({prefix + field.name(), &field});
    if (field.message_type() == nullptr) continue;
    Collect(*field.message_type(), places->back().path + ".", places);
  }
}

// Words in lines, all but the first indented.
std::string Wrapped(const std::string& text, const std::string& first_indent,
                    const std::string& indent) {
  std::string lines, line = first_indent;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool begins = line == first_indent || line == indent;
    if (!begins && line.size() + 1 + word.size() > kLineLetters) {
      lines += std::exchange(line, indent) + "\n";
    }
    if (line != first_indent && line != indent) line += ' ';
    line += word;
  }
  return lines + line + "\n";
}

// "number, default 1e-3, a positive number"
std::string Facts(const FieldDescriptor& field) {
  std::string facts = TypeWords(field);
  if (field.message_type() == nullptr) {
    const std::string value = DefaultWords(field);
    if (value == kNoDefault) {
      facts += ", " + value;
    } else if (CommentOf(field).find("Left out:") == std::string::npos) {
      facts += ", default " + value;
    }
    if (const std::string range = FieldRange(field); !range.empty()) facts += ", " + range;
  }
  return facts + (field.options().GetExtension(operational) ? ", operational" : "");
}

std::string Meaning(const FieldDescriptor& field) {
  std::string comment = CommentOf(field), text;
  if (comment.empty() && field.message_type() != nullptr) {
    comment = CommentOf(*field.message_type());
  }
  if (!comment.empty()) text += Wrapped(comment, "    ", "    ");
  if (field.enum_type() == nullptr) return text;
  for (int i = 0; i < field.enum_type()->value_count(); ++i) {
    const EnumValueDescriptor& value = *field.enum_type()->value(i);
    comment = CommentOf(value);
    text += Wrapped(value.name() + (comment.empty() ? "" : ": " + comment), "      ", "          ");
  }
  return text;
}

std::string FieldText(const std::string& path, const FieldDescriptor& field) {
  return Wrapped(Facts(field), path + "  ", "        ") + Meaning(field);
}

// A group's comment and fields, which are at `path`.
std::string GroupText(const std::string& path, const FieldDescriptor& group) {
  std::string text = FieldText(path, group);
  const std::string comment = CommentOf(*group.message_type());
  if (!comment.empty() && !CommentOf(group).empty()) text += Wrapped(comment, "    ", "    ");
  for (int i = 0; i < group.message_type()->field_count(); ++i) {
    const FieldDescriptor& field = *group.message_type()->field(i);
    if (!field.options().deprecated()) text += "\n" + FieldText(path + "." + field.name(), field);
  }
  return text;
}

bool TakesName(const FieldDescriptor& field, const std::string& name) {
  return field.enum_type() != nullptr && field.enum_type()->FindValueByName(name) != nullptr;
}

bool EndsWith(const std::string& path, const std::string& topic) {
  const std::string text = UpperCase(path);
  return text == topic || text.ends_with("." + topic);
}

// model.dropout is the field of any model that has it: "MODEL.DROPOUT" to "DROPOUT".
std::string WithoutModel(const std::string& topic) {
  constexpr char kModel[] = "MODEL.";
  return topic.starts_with(kModel) ? topic.substr(sizeof(kModel) - 1) : topic;
}

Status UnknownTopic(const std::vector<Place>& places, const std::string& topic) {
  std::vector<std::string> names;
  std::string groups;
  for (const Place& place : places) {
    names.push_back(place.field->name());
    if (place.field->message_type() != nullptr && place.path == place.field->name()) {
      groups += (groups.empty() ? "" : ", ") + place.path;
    }
    if (place.field->enum_type() == nullptr) continue;
    for (const std::string& name : ValueNames(*place.field->enum_type())) names.push_back(name);
  }
  return UserError("--help=" + topic + ": no field, group or name; the groups: " + groups +
                   DidYouMean(names, topic));
}

}  // namespace

StatusOr<std::string> HelpOn(const std::string& message, const std::string& topic) {
  std::vector<Place> places;
  Collect(*CommentedDescriptors().FindMessageTypeByName("elastor." + message), "", &places);
  const std::string name = UpperCase(topic);
  std::vector<Place> found;
  const auto find = [&](const auto& is) {
    if (found.empty()) std::ranges::copy_if(places, std::back_inserter(found), is);
  };
  find([&](const Place& place) { return UpperCase(place.path) == name; });
  find([&](const Place& place) { return EndsWith(place.path, name); });
  find([&](const Place& place) { return EndsWith(place.path, WithoutModel(name)); });
  find([&](const Place& place) { return TakesName(*place.field, name); });
  if (found.empty()) return UnknownTopic(places, topic);

  // Fields of which the same is said, under the first of them.
  std::vector<std::vector<Place>> alike;
  for (const Place& place : found) {
    const auto same = std::ranges::find_if(alike, [&](const std::vector<Place>& group) {
      const FieldDescriptor& first = *group.front().field;
      return place.field->message_type() == nullptr && Facts(first) == Facts(*place.field) &&
             Meaning(first) == Meaning(*place.field);
    });
    if (same == alike.end()) {
      alike.push_back({place});
    } else {
      same->push_back(place);
    }
  }
  std::string help;
  for (const std::vector<Place>& group : alike) {
    if (!help.empty()) help += "\n";
    for (size_t i = 0; i + 1 < group.size(); ++i) help += group[i].path + "\n";
    const auto& [path, field] = group.back();
    help += field->message_type() != nullptr ? GroupText(path, *field) : FieldText(path, *field);
  }
  return help;
}

std::string ListModels() {
  const auto& pool = CommentedDescriptors();
  const auto& models = *pool.FindMessageTypeByName("elastor.ModelConfig")->FindOneofByName("model");
  const auto& encoders =
      *pool.FindMessageTypeByName("elastor.SequencesConfig")->FindOneofByName("encoder");
  size_t width = 0;
  for (int i = 0; i < models.field_count(); ++i) {
    width = std::max(width, models.field(i)->name().size() + 2);
  }
  std::string list;
  const auto add = [&](const FieldDescriptor& field, const std::string& comment) {
    std::string name = "  " + UpperCase(field.name());
    name.resize(width + 2, ' ');
    list += Wrapped(comment, name, std::string(width + 2, ' '));
  };
  std::string group;
  for (int i = 0; i < models.field_count(); ++i) {
    const FieldDescriptor& model = *models.field(i);
    if (model.options().GetExtension(model_group) != group) {
      group = model.options().GetExtension(model_group);
      list += (list.empty() ? "" : "\n") + group + "\n";
    }
    add(model, CommentOf(model));
  }
  list += "\nencoders of sequences, for every model (model.sequences)\n";
  for (int i = 0; i < encoders.field_count(); ++i) {
    add(*encoders.field(i), CommentOf(*encoders.field(i)->message_type()));
  }
  return list;
}

}  // namespace elastor
