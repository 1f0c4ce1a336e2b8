// Prints docs/reference/experiment.md: every field of experiment.proto with its type, default,
// range and comment.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "configs/proto/commented_descriptors.h"
#include "configs/proto/experiment.pb.h"
#include "glog/logging.h"
#include "google/protobuf/descriptor.h"
#include "trainer/fields/field_words.h"

namespace elastor {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;

constexpr char kIntroduction[] =
    R"(# Every field of an experiment

Made from [experiment.proto](../configs/proto/experiment.proto) by
`bazel run //trainer/experiment:experiment_reference > docs/reference/experiment.md`; a test compares the two.

A field that is left out takes its default; so does a number that is 0 where the range has no 0, and
an empty list. `operational` fields do not change any number a run produces; all others are
`numeric` and must stay as they are when a run is resumed. The ranks of a job have the same value of
every field, but for those marked `per rank`.

`--set=path.to.field=value` sets any field, a list by commas. In the path of a model's field the
model may be left out, as in `--set=model.dropout=0.1`; `--set=model.kind=MLP` chooses another model.
Experiments and checkpoints of the first format, which had the fields of all models side by side
(`model { kind: MLP hidden: 400 }`), are still read.
)";

// A group of fields and the paths it stands at.
struct Group {
  const Descriptor* type;
  std::vector<std::string> paths;
  bool operational;
};

class Reference {
 public:
  explicit Reference(const Descriptor& experiment) { Collect(experiment, "", false); }

  std::string Text() const {
    std::string text = kIntroduction;
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

std::string Code(const std::string& text) { return "`" + text + "`"; }

// In a table a bar ends a cell.
template <typename D>
std::string Comment(const D& descriptor) {
  std::string comment;
  for (const char c : CommentOf(descriptor)) comment += c == '|' ? "\\|" : std::string(1, c);
  return comment;
}

// The comment, which every field has, and of a name the possible ones with theirs.
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
  std::string text = "\n## ";
  for (const std::string& path : group.paths) {
    text += (&path == &group.paths[0] ? "" : ", ") + (path.empty() ? "The experiment" : Code(path));
  }
  text += "\n\n";
  if (const std::string comment = Comment(*group.type); !comment.empty()) text += comment + "\n\n";
  text += "| field | type | default | range | | meaning |\n|---|---|---|---|---|---|\n";
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
