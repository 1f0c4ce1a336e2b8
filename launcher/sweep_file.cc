#include "launcher/sweep_file.h"

#include <set>
#include <string_view>
#include <utility>

#include "core/base/file.h"
#include "glog/logging.h"
#include "google/protobuf/text_format.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/field_values.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/experiment/overrides.h"
#include "trainer/experiment/text_message.h"

namespace elastor {
namespace {

constexpr std::string_view kBase = "base.";
constexpr std::string_view kResources = "resources.";

// What ApplyOverride says of an assignment that comes from no flag.
std::string WithoutFlag(const std::string& message) {
  constexpr std::string_view kFlag = "--set=";
  return message.starts_with(kFlag) ? message.substr(kFlag.size()) : message;
}

Status ReadBase(Sweep* sweep) {
  if (sweep->base_file().empty()) return MoveFlatFields(sweep->mutable_base()->mutable_model());
  if (sweep->has_base()) {
    return UserError("has base_file and base; expected one of them, and `set` for changes");
  }
  ELASTOR_ASSIGN_OR_RETURN(*sweep->mutable_base(), ReadExperiment(sweep->base_file()));
  sweep->clear_base_file();
  return OkStatus();
}

// Gives the axis the name and the points that a single field stands for.
Status CompleteAxis(Axis* axis) {
  if (axis->field().empty() == axis->point().empty()) {
    return UserError("expected a field with values, or points");
  }
  if (axis->field().empty()) {
    if (axis->name().empty()) return UserError("name: missing; expected one, for axes with points");
    if (!axis->values().empty()) return UserError("has values and no field");
    for (const Point& point : axis->point()) {
      if (point.label().empty()) return UserError("label: missing; expected one for every point");
    }
    return OkStatus();
  }
  if (axis->values().empty()) return UserError("values: empty; expected some of " + axis->field());
  if (axis->name().empty()) axis->set_name(axis->field());
  const std::string last = axis->field().substr(axis->field().rfind('.') + 1);
  for (const std::string& value : axis->values()) {
    Point* point = axis->add_point();
    point->set_label(last + value);
    point->add_set(axis->field() + "=" + value);
  }
  axis->clear_field();
  axis->clear_values();
  return OkStatus();
}

Status CompleteAxes(Sweep* sweep) {
  std::set<std::string> names;
  for (int i = 0; i < sweep->axis_size(); ++i) {
    Axis* axis = sweep->mutable_axis(i);
    const std::string name = axis->name().empty() ? axis->field() : axis->name();
    const std::string who = "axis " + (name.empty() ? std::to_string(i + 1) : "'" + name + "'");
    const Status complete = CompleteAxis(axis);
    if (!complete.ok()) return UserError(who + ": " + complete.message());
    if (!names.insert(name).second) return UserError(who + ": there are two of this name");
    std::set<std::string> labels;
    for (const Point& point : axis->point()) {
      if (labels.insert(point.label()).second) continue;
      return UserError(who + ": has the point '" + point.label() + "' twice");
    }
  }
  return OkStatus();
}

Status SetResource(const std::string& name, const std::string& value, Resources* resources) {
  const std::vector<std::string> names = FieldNames(*Resources::descriptor());
  const google::protobuf::FieldDescriptor* field = Resources::descriptor()->FindFieldByName(name);
  if (field != nullptr) return SetField(*field, value, resources);
  return UserError("Resources has no field '" + name + "'; it has: " + JoinNames(names) +
                   DidYouMean(names, name));
}

Status ApplySweepOverrides(std::span<const std::string> overrides, Sweep* sweep) {
  std::vector<std::string> of_base;
  for (const std::string& assignment : overrides) {
    const size_t equals = assignment.find('=');
    if (assignment.starts_with(kBase)) {
      of_base.push_back(assignment.substr(kBase.size()));
      continue;
    }
    if (!assignment.starts_with(kResources) || equals == assignment.npos) {
      return UserError("--set=" + assignment +
                       ": expected base.path.to.field=value or resources.ranks=N or "
                       "resources.threads=N");
    }
    const std::string name = assignment.substr(kResources.size(), equals - kResources.size());
    const Status set = SetResource(name, assignment.substr(equals + 1), sweep->mutable_resources());
    if (!set.ok()) return UserError("--set=" + assignment + ": " + set.message());
  }
  const Status set = ApplyOverrides(of_base, sweep->mutable_base());
  if (set.ok()) return OkStatus();
  return UserError("--set=" + std::string(kBase) + WithoutFlag(set.message()));
}

// All but the overrides, of the file alone.
Status Complete(Sweep* sweep) {
  ELASTOR_RETURN_IF_ERROR(ReadBase(sweep));
  const std::vector<std::string> changes(sweep->set().begin(), sweep->set().end());
  const Status changed = ApplyOverrides(changes, sweep->mutable_base());
  if (!changed.ok()) return UserError("set: " + WithoutFlag(changed.message()));
  sweep->clear_set();
  return CompleteAxes(sweep);
}

}  // namespace

StatusOr<Sweep> LoadSweep(const std::string& path, std::span<const std::string> overrides) {
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Sweep sweep;
  ELASTOR_RETURN_IF_ERROR(ParseTextMessage(text, path, &sweep));
  const Status complete = Complete(&sweep);
  if (!complete.ok()) return Status(complete.code(), path + ": " + complete.message());
  ELASTOR_RETURN_IF_ERROR(ApplySweepOverrides(overrides, &sweep));
  if (const std::string& split = sweep.predictions();
      !split.empty() && split != "validation" && split != "test") {
    return UserError(path + ": predictions: '" + split + "'; expected validation or test");
  }
  if (sweep.resources().ranks() < 0 || sweep.resources().threads() < 0) {
    return UserError(path + ": resources: expected positive numbers");
  }
  return sweep;
}

std::string SweepText(const Sweep& sweep) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  std::string text;
  CHECK(printer.PrintToString(sweep, &text));
  return text;
}

std::vector<Combination> Product(const Sweep& sweep) {
  std::vector<Combination> product(1);
  for (const Axis& axis : sweep.axis()) {
    std::vector<Combination> longer;
    for (const Combination& shorter : product) {
      for (const Point& point : axis.point()) {
        longer.push_back(shorter);
        longer.back().points.push_back(&point);
      }
    }
    product = std::move(longer);
  }
  return product;
}

StatusOr<Experiment> MakeExperiment(const Sweep& sweep, const Combination& combination) {
  std::vector<std::string> assignments;
  for (const Point* point : combination.points) {
    assignments.insert(assignments.end(), point->set().begin(), point->set().end());
  }
  Experiment experiment = sweep.base();
  const Status applied = ApplyOverrides(assignments, &experiment);
  if (applied.ok()) return experiment;
  const std::string message = WithoutFlag(applied.message());
  for (int i = 0; i < sweep.axis_size(); ++i) {
    for (const std::string& assignment : combination.points[i]->set()) {
      if (!message.starts_with(assignment + ":")) continue;
      return UserError("axis '" + sweep.axis(i).name() + "': " + message);
    }
  }
  return UserError(message);
}

}  // namespace elastor
