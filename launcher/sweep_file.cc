#include "launcher/sweep_file.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "google/protobuf/text_format.h"
#include "launcher/tuning.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/experiment/overrides.h"
#include "trainer/fields/field_values.h"
#include "trainer/fields/text_message.h"

namespace elastor {
namespace {

constexpr std::string_view kBase = "base.";
constexpr std::string_view kResources = "resources.";
constexpr std::string_view kAxis = "axis.";
constexpr std::string_view kSlurm = "slurm.";
constexpr std::string_view kGapTest = "gap_test.";
constexpr std::string_view kMatch = "match.";
constexpr int64_t kMostCombinations = 100'000;

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
    if (!axis->label().empty()) return UserError("has label and no field; expected it in points");
    for (const Point& point : axis->point()) {
      if (point.label().empty()) return UserError("label: missing; expected one for every point");
    }
    return OkStatus();
  }
  if (axis->values().empty()) return UserError("values: empty; expected some of " + axis->field());
  if (!axis->label().empty()) {
    if (axis->label_size() != axis->values_size()) {
      return UserError(StrCat("label: has ", axis->label_size(), " for ", axis->values_size(),
                              " values; expected one each"));
    }
    if (axis->name().empty() || axis->name() == axis->field()) {
      return UserError("name: missing; expected one, for labels");
    }
  }
  if (axis->name().empty()) axis->set_name(axis->field());
  const std::string last = axis->field().substr(axis->field().rfind('.') + 1);
  for (int i = 0; i < axis->values_size(); ++i) {
    const std::string& value = axis->values(i);
    Point* point = axis->add_point();
    point->set_label(axis->label().empty() ? last + value : axis->label(i));
    point->add_set(axis->field() + "=" + value);
  }
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
  int64_t combinations = 1;
  for (const Axis& axis : sweep->axis()) {
    if (!__builtin_mul_overflow(combinations, int64_t{axis.point_size()}, &combinations) &&
        combinations <= kMostCombinations) {
      continue;
    }
    return UserError("axis: the axes make more than " + std::to_string(kMostCombinations) +
                     " runs; expected fewer axes or points");
  }
  return OkStatus();
}

// "path.to.field=value,value", other values for the axis of this field.
Status SetAxis(const std::string& assignment, Sweep* sweep) {
  const size_t equals = assignment.find('=');
  if (equals == assignment.npos) return UserError("expected axis.path.to.field=value,value");
  const std::string field = assignment.substr(0, equals);
  std::vector<std::string> fields;
  for (Axis& axis : *sweep->mutable_axis()) {
    if (!axis.field().empty()) fields.push_back(axis.field());
    if (axis.field() != field) continue;
    axis.clear_values();
    axis.clear_label();
    std::istringstream in(assignment.substr(equals + 1));
    for (std::string value; std::getline(in, value, ',');) axis.add_values(value);
    return OkStatus();
  }
  return UserError("no axis is of '" + field + "' alone; there are such of: " + JoinNames(fields) +
                   DidYouMean(fields, field));
}

// "name=value", a field of the message, which is called `what`.
Status SetOwnField(const std::string& assignment, const std::string& what,
                   google::protobuf::Message* message) {
  const size_t equals = assignment.find('=');
  if (equals == assignment.npos) return UserError("expected " + what + ".field=value");
  const std::string name = assignment.substr(0, equals);
  const google::protobuf::Descriptor& type = *message->GetDescriptor();
  const google::protobuf::FieldDescriptor* field = type.FindFieldByName(name);
  if (field != nullptr) return SetField(*field, assignment.substr(equals + 1), message);
  const std::vector<std::string> names = FieldNames(type);
  return UserError(type.name() + " has no field '" + name + "'; it has: " + JoinNames(names) +
                   DidYouMean(names, name));
}

// "from_step=N", of every test.
Status SetGapTests(const std::string& assignment, Sweep* sweep) {
  if (sweep->gap_test().empty()) return UserError("the sweep has no gap_test");
  for (GapTest& test : *sweep->mutable_gap_test()) {
    ELASTOR_RETURN_IF_ERROR(SetOwnField(assignment, "gap_test", &test));
  }
  return OkStatus();
}

Status ApplySweepOverrides(std::span<const std::string> overrides, Sweep* sweep) {
  std::vector<std::string> of_base;
  for (const std::string& assignment : overrides) {
    Status set;
    if (assignment.starts_with(kBase)) {
      of_base.push_back(assignment.substr(kBase.size()));
    } else if (assignment.starts_with(kResources)) {
      set = SetOwnField(assignment.substr(kResources.size()), "resources",
                        sweep->mutable_resources());
    } else if (assignment.starts_with(kSlurm)) {
      set = SetOwnField(assignment.substr(kSlurm.size()), "slurm", sweep->mutable_slurm());
    } else if (assignment.starts_with(kGapTest)) {
      set = SetGapTests(assignment.substr(kGapTest.size()), sweep);
    } else if (assignment.starts_with(kMatch)) {
      set = SetOwnField(assignment.substr(kMatch.size()), "match", sweep->mutable_match());
    } else if (assignment.starts_with(kAxis)) {
      set = SetAxis(assignment.substr(kAxis.size()), sweep);
    } else {
      set = UserError(
          "expected base.path.to.field=value, axis.path.to.field=value,value, "
          "resources.field=value, slurm.field=value, gap_test.field=value or match.field=value");
    }
    if (!set.ok()) return UserError("--set=" + assignment + ": " + set.message());
  }
  const Status set = ApplyOverrides(of_base, sweep->mutable_base());
  if (set.ok()) return OkStatus();
  return UserError(StrCat("--set=", kBase, WithoutFlag(set.message())));
}

// Refuses integers that are given and not positive.
Status CheckPositive(const std::string& prefix, const google::protobuf::Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> given;
  reflection.ListFields(message, &given);
  for (const google::protobuf::FieldDescriptor* field : given) {
    if (field->is_repeated() || field->cpp_type() != field->CPPTYPE_INT32) continue;
    const int32_t value = reflection.GetInt32(message, field);
    if (value > 0) continue;
    return UserError(prefix + field->name() + ": " + std::to_string(value) +
                     "; expected a positive number");
  }
  return OkStatus();
}

Status CheckResources(const Resources& resources) {
  ELASTOR_RETURN_IF_ERROR(CheckPositive("resources.", resources));
  const int ranks = std::max(1, resources.ranks()), nodes = std::max(1, resources.nodes());
  if (ranks % nodes == 0) return OkStatus();
  return UserError(
      StrCat("resources.nodes: ", ranks, " ranks cannot be dealt evenly to ", nodes, " nodes"));
}

// The base experiment of the file alone.
Status CompleteBase(Sweep* sweep) {
  ELASTOR_RETURN_IF_ERROR(ReadBase(sweep));
  const std::vector<std::string> changes(sweep->set().begin(), sweep->set().end());
  const Status changed = ApplyOverrides(changes, sweep->mutable_base());
  if (!changed.ok()) return UserError("set: " + WithoutFlag(changed.message()));
  sweep->clear_set();
  return OkStatus();
}

// Completes the sweep's tuning. REQUIRES: complete axes.
Status CompleteTuningOf(Sweep* sweep) {
  if (!sweep->has_tuning()) return OkStatus();
  Experiment base = sweep->base();
  ResolveDefaults(&base);
  ELASTOR_RETURN_IF_ERROR(
      CompleteTuning(base.optimizer().learning_rate(), sweep->mutable_tuning()));
  for (const Axis& axis : sweep->axis()) {
    for (const Point& point : axis.point()) {
      for (const std::string& assignment : point.set()) {
        const std::string field = assignment.substr(0, assignment.find('='));
        const auto same = [&](const TunedField& tuned) { return tuned.field() == field; };
        if (std::ranges::none_of(sweep->tuning().field(), same)) continue;
        return UserError(field + ": is varied by the axis '" + axis.name() +
                         "', too; expected one of the two");
      }
    }
  }
  return OkStatus();
}

// Checks the gap tests. REQUIRES: complete axes.
Status CheckGapTests(const Sweep& sweep) {
  const Axis* arms = nullptr;
  for (const Axis& axis : sweep.axis()) {
    if (axis.field() == "training.seed") continue;
    if (arms != nullptr || !axis.field().empty() || axis.name().find('.') != std::string::npos) {
      return UserError("the axis '" + axis.name() +
                       "'; expected one axis of points, the arms, and that of training.seed");
    }
    arms = &axis;
  }
  std::vector<std::string> labels;
  for (int i = 0; arms != nullptr && i < arms->point_size(); ++i) {
    labels.push_back(arms->point(i).label());
  }
  for (const GapTest& test : sweep.gap_test()) {
    for (const std::string& label : {test.first(), test.second()}) {
      if (std::ranges::find(labels, label) != labels.end()) continue;
      return UserError("'" + label + "' is no point; there are: " + JoinNames(labels) +
                       DidYouMean(labels, label));
    }
    if (test.first() == test.second()) {
      return UserError("'" + test.first() + "' twice; expected two different arms");
    }
    if (test.from_step() < 0) {
      return UserError(StrCat("from_step: ", test.from_step(), "; expected 0 or more"));
    }
  }
  return OkStatus();
}

Status CheckMatch(const SizeMatch& match) {
  const bool adds = match.has_multiply_adds();
  const int64_t target = adds ? match.multiply_adds() : match.dense_parameters();
  if (match.target_case() == SizeMatch::TARGET_NOT_SET || target > 0) return OkStatus();
  return UserError(StrCat("match.", adds ? "multiply_adds" : "dense_parameters", ": ", target,
                          "; expected a positive number"));
}

// All that follows the overrides; names what it finds wrong.
Status CompleteSweep(Sweep* sweep) {
  ELASTOR_RETURN_IF_ERROR(CompleteAxes(sweep));
  const Status tuned = CompleteTuningOf(sweep);
  if (!tuned.ok()) return UserError("tuning: " + tuned.message());
  if (const std::string& split = sweep->predictions();
      !split.empty() && split != "validation" && split != "test") {
    return UserError("predictions: '" + split + "'; expected validation or test");
  }
  if (!sweep->gap_test().empty()) {
    const Status tests = CheckGapTests(*sweep);
    if (!tests.ok()) return UserError("gap_test: " + tests.message());
  }
  ELASTOR_RETURN_IF_ERROR(CheckMatch(sweep->match()));
  ELASTOR_RETURN_IF_ERROR(CheckPositive("slurm.", sweep->slurm()));
  return CheckResources(sweep->resources());
}

}  // namespace

std::string WithoutFlag(const std::string& message) {
  constexpr std::string_view kFlag = "--set=";
  return message.starts_with(kFlag) ? message.substr(kFlag.size()) : message;
}

StatusOr<Sweep> LoadSweep(const std::string& path, std::span<const std::string> overrides) {
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Sweep sweep;
  ELASTOR_RETURN_IF_ERROR(ParseTextMessage(text, path, &sweep));
  const auto named = [&](const Status& status) {
    return status.ok() ? status : Status(status.code(), path + ": " + status.message());
  };
  ELASTOR_RETURN_IF_ERROR(named(CompleteBase(&sweep)));
  ELASTOR_RETURN_IF_ERROR(ApplySweepOverrides(overrides, &sweep));
  ELASTOR_RETURN_IF_ERROR(named(CompleteSweep(&sweep)));
  return sweep;
}

std::string SweepText(const Sweep& sweep) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  std::string text;
  Sweep written = sweep;
  // An axis of one field has its points from its values.
  for (Axis& axis : *written.mutable_axis()) {
    if (!axis.field().empty()) axis.clear_point();
  }
  CHECK(printer.PrintToString(written, &text));
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
