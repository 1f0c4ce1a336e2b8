// Prints docs/reference/experiment.md: every field of experiment.proto with its type, default,
// range and comment.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "configs/proto/commented_descriptors.h"
#include "configs/proto/experiment.pb.h"
#include "core/base/log.h"
#include "google/protobuf/descriptor.h"
#include "trainer/fields/field_words.h"

namespace elastor {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;

constexpr char kIntroduction[] =
    R"(# Every field of an experiment

For everybody who writes or changes an experiment: this page says what each field means, which
values it may hold, and which it has when it is left out. On a terminal `trainer --help=TOPIC`
prints the same.

- [Defaults, kinds and letters](#defaults-kinds-and-letters)
)";

constexpr char kRules[] =
    R"(
## Defaults, kinds and letters

A field that is left out takes its default; so do an empty text and an empty list. A number that is
written counts as it is: 0 is refused where the range has no 0.

The column *kind* says what a field may change:

- `numeric` fields decide the numbers of a run. They must stay as they are when a run is resumed.
- `operational` fields change no number that a run produces.
- `per rank` fields may differ between the ranks of a job. Every other field must be equal on all
  ranks.

Write `--set=path.to.field=value` to set a field; commas separate the values of a list. A path may
leave the model out, as in `--set=model.dropout=0.1`. Write `--set=model.kind=MLP` to choose another
model.

Letters: n fields, k = `embedding.width`, T tokens, D features of a token, V virtual shards.

The first format of experiments had the fields of all models side by side
(`model { kind: MLP hidden: 400 }`). The trainer still reads such experiments and checkpoints.

This page is made from [experiment.proto](../../configs/proto/experiment.proto) by
`bazel run //trainer/experiment:experiment_reference > docs/reference/experiment.md`. A test
compares the two.
)";

// A group of fields and the paths it stands at.
struct Group {
  const Descriptor* type;
  std::vector<std::string> paths;
  bool operational;
};

std::string Code(const std::string& text) { return "`" + text + "`"; }

std::string Heading(const Group& group) {
  std::string heading;
  for (const std::string& path : group.paths) {
    heading += (heading.empty() ? "" : ", ") + (path.empty() ? "The experiment" : Code(path));
  }
  return heading;
}

// The anchor that GitHub gives a heading.
std::string Anchor(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    if (c >= 'A' && c <= 'Z') anchor += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-') anchor += c;
    if (c == ' ') anchor += '-';
  }
  return anchor;
}

class Reference {
 public:
  explicit Reference(const Descriptor& experiment) { Collect(experiment, "", false); }

  std::string Text() const {
    std::string text = kIntroduction;
    for (const Group& group : groups_) {
      text += "- [" + Heading(group) + "](#" + Anchor(Heading(group)) + ")\n";
    }
    text += kRules;
    for (const Group& group : groups_) text += GroupText(group);
    return text;
  }

 private:
  void Collect(const Descriptor& type, const std::string& path, bool operational);
  std::string GroupText(const Group& group) const;
  std::string Row(const FieldDescriptor& field, const Group& group) const;
  std::string Meaning(const FieldDescriptor& field) const;

  std::vector<Group> groups_;
};

void Reference::Collect(const Descriptor& type, const std::string& path, bool operational) {
  const auto known = std::find_if(groups_.begin(), groups_.end(),
                                  [&](const Group& group) { return group.type == &type; });
  if (known != groups_.end()) {
    known->paths.push_back(path);
  } else {
    groups_.push_back({&type, {path}, operational});
  }
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.message_type() == nullptr || field.options().deprecated()) continue;
    Collect(*field.message_type(), path + (path.empty() ? "" : ".") + field.name(),
            operational || field.options().GetExtension(elastor::operational));
  }
}

// In a table a bar ends a cell.
template <typename D>
std::string Comment(const D& descriptor) {
  std::string comment;
  for (const char c : CommentOf(descriptor)) comment += c == '|' ? "\\|" : std::string(1, c);
  return comment;
}

// The field's comment; for a name also the possible names with their comments.
std::string Reference::Meaning(const FieldDescriptor& field) const {
  std::string meaning = Comment(field);
  CHECK(!meaning.empty() || field.message_type() != nullptr)
      << field.full_name() << " has no comment";
  if (field.enum_type() == nullptr) return meaning;
  std::string names;
  for (int i = 0; i < field.enum_type()->value_count(); ++i) {
    const EnumValueDescriptor& value = *field.enum_type()->value(i);
    const std::string comment = Comment(value);
    names += (i == 0 ? "" : "; ") + Code(value.name()) + (comment.empty() ? "" : ": " + comment);
  }
  return meaning + (meaning.empty() ? "" : "<br>") + names;
}

std::string Reference::Row(const FieldDescriptor& field, const Group& group) const {
  const std::string& prefix = group.paths[0];
  const bool is_group = field.message_type() != nullptr;
  const bool operational = group.operational || field.options().GetExtension(elastor::operational);
  const bool per_rank = field.options().GetExtension(elastor::per_rank);
  const std::string cells[] = {Code(prefix + (prefix.empty() ? "" : ".") + field.name()),
                               TypeWords(field),
                               is_group                ? ""
                               : DefaultIsValue(field) ? Code(DefaultWords(field))
                                                       : DefaultWords(field),
                               FieldRange(field),
                               per_rank      ? "operational, per rank"
                               : operational ? "operational"
                               : is_group    ? ""
                                             : "numeric",
                               Meaning(field)};
  std::string row = "|";
  for (const std::string& cell : cells) row += " " + cell + (cell.empty() ? "|" : " |");
  return row + "\n";
}

std::string Reference::GroupText(const Group& group) const {
  std::string text = "\n## " + Heading(group) + "\n\n";
  if (const std::string comment = Comment(*group.type); !comment.empty()) text += comment + "\n\n";
  text += "| field | type | default | range | kind | meaning |\n|---|---|---|---|---|---|\n";
  for (int i = 0; i < group.type->field_count(); ++i) {
    const FieldDescriptor& field = *group.type->field(i);
    if (!field.options().deprecated()) text += Row(field, group);
  }
  return text;
}

}  // namespace
}  // namespace elastor

int main() {
  const elastor::Reference reference(
      *elastor::CommentedDescriptors().FindMessageTypeByName("elastor.Experiment"));
  std::fputs(reference.Text().c_str(), stdout);
}
