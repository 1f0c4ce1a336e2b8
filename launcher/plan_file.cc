#include "launcher/plan_file.h"

#include <limits>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/json_entry.h"
#include "core/base/text.h"

namespace elastor {
namespace {

// The largest integers that a plan file may hold. Products of two, and sums over a plan, are within
// their types.
constexpr int64_t kMostInteger = int64_t{1} << 60, kMostRanks = 1 << 15, kMostMinutes = 1 << 24,
                  kMostBytes = int64_t{1} << 46, kMostGigabytes = kMostBytes / 1'000'000'000;

// A field of a record: its name in the record's JSON, and how it is written and read.
template <typename Record>
struct PlanField {
  const char* name;
  Json (*write)(const Record& record);
  void (*read)(const JsonEntry& value, Record* record);  // throws as JsonEntry does
  bool optional = false;                                 // earlier builds did not write it
};

std::vector<std::string> TextsOf(const JsonEntry& json) {
  std::vector<std::string> texts;
  for (const JsonEntry& text : json.Elements()) texts.push_back(text.Text());
  return texts;
}

template <typename Record, typename Value>
Record RecordOf(Value Record::*);
template <auto kMember>
using RecordWith = decltype(RecordOf(kMember));

template <auto kMember>
Json Write(const RecordWith<kMember>& record) {
  return record.*kMember;
}

template <auto kMember>
constexpr PlanField<RecordWith<kMember>> TextField(const char* name) {
  return {name, Write<kMember>,
          [](const JsonEntry& value, auto* record) { record->*kMember = value.Text(); }};
}

template <auto kMember>
constexpr PlanField<RecordWith<kMember>> NumberField(const char* name) {
  return {name, Write<kMember>,
          [](const JsonEntry& value, auto* record) { record->*kMember = value.Number(); }};
}

template <auto kMember, int64_t kLeast, int64_t kMost>
constexpr PlanField<RecordWith<kMember>> IntegerField(const char* name) {
  return {name, Write<kMember>, [](const JsonEntry& value, auto* record) {
            using Type = std::remove_reference_t<decltype(record->*kMember)>;
            record->*kMember = static_cast<Type>(value.Integer(kLeast, kMost));
          }};
}

constexpr PlanField<PlannedRun> kRunFields[] = {
    TextField<&PlannedRun::folder>("folder"),
    {"stage", [](const PlannedRun& run) -> Json { return StageName(run.stage); },
     [](const JsonEntry& value, PlannedRun* run) {
       run->stage = value.Text() == StageName(Stage::kTune) ? Stage::kTune : Stage::kFinal;
     }},
    TextField<&PlannedRun::model>("model"),
    IntegerField<&PlannedRun::seed, std::numeric_limits<int64_t>::min(),
                 std::numeric_limits<int64_t>::max()>("seed"),
    {"columns", Write<&PlannedRun::columns>,
     [](const JsonEntry& value, PlannedRun* run) { run->columns = TextsOf(value); }},
    IntegerField<&PlannedRun::ranks, 1, kMostRanks>("ranks"),
    IntegerField<&PlannedRun::threads, 1, kMostRanks>("threads"),
    IntegerField<&PlannedRun::gpus, 0, kMostRanks>("gpus"),
    {"nodes", Write<&PlannedRun::nodes>,
     [](const JsonEntry& value, PlannedRun* run) {
       run->nodes = static_cast<int>(value.Integer(1, run->ranks));
     }},
    IntegerField<&PlannedRun::memory_gb, 0, kMostGigabytes>("memory_gb"),
    IntegerField<&PlannedRun::minutes, 0, kMostMinutes>("minutes"),
    IntegerField<&PlannedRun::dense_parameters, 0, kMostInteger>("dense_parameters"),
    IntegerField<&PlannedRun::embedding_parameters, 0, kMostInteger>("embedding_parameters"),
    IntegerField<&PlannedRun::multiply_adds, 0, kMostInteger>("multiply_adds"),
    IntegerField<&PlannedRun::bytes_of_rank, 0, kMostBytes>("bytes_of_rank"),
    IntegerField<&PlannedRun::steps, 0, kMostInteger>("steps"),
    IntegerField<&PlannedRun::samples, 0, kMostInteger>("samples"),
};

// The metric of a tuning whose name is left out.
const std::string kDefaultMetric = TunedConfiguration().metric;

constexpr PlanField<TunedConfiguration> kTunedFields[] = {
    TextField<&TunedConfiguration::name>("configuration"),
    TextField<&TunedConfiguration::chosen>("chosen"),
    {"logloss",
     [](const TunedConfiguration& tuned) {
       return tuned.metric == kDefaultMetric ? Json(tuned.value) : Json();
     },
     [](const JsonEntry& value, TunedConfiguration* tuned) { tuned->value = value.Number(); },
     /*optional=*/true},
    {"metric",
     [](const TunedConfiguration& tuned) {
       return tuned.metric == kDefaultMetric ? Json() : Json(tuned.metric);
     },
     [](const JsonEntry& value, TunedConfiguration* tuned) { tuned->metric = value.Text(); },
     /*optional=*/true},
    {"value",
     [](const TunedConfiguration& tuned) {
       return tuned.metric == kDefaultMetric ? Json() : Json(tuned.value);
     },
     [](const JsonEntry& value, TunedConfiguration* tuned) { tuned->value = value.Number(); },
     /*optional=*/true},
    {"bound",
     [](const TunedConfiguration& tuned) {
       return tuned.bound.empty() ? Json() : Json(tuned.bound);
     },
     [](const JsonEntry& value, TunedConfiguration* tuned) { tuned->bound = value.Text(); },
     /*optional=*/true},
    TextField<&TunedConfiguration::warning>("warning"),
    TextField<&TunedConfiguration::failure>("failure"),
};

template <typename Record>
Json JsonOf(const Record& record, std::span<const PlanField<Record>> fields) {
  Json json;
  for (const PlanField<Record>& field : fields) {
    Json value = field.write(record);
    if (!field.optional || !value.is_null()) json[field.name] = std::move(value);
  }
  return json;
}

template <typename Record>
Record RecordFrom(const JsonEntry& json, std::span<const PlanField<Record>> fields) {
  Record record;
  for (const PlanField<Record>& field : fields) {
    if (field.optional && !json.Has(field.name)) continue;
    field.read(json.Member(field.name), &record);
  }
  return record;
}

Json JsonOf(const PlannedRun& run) { return JsonOf<PlannedRun>(run, kRunFields); }
PlannedRun RunFrom(const JsonEntry& json) { return RecordFrom<PlannedRun>(json, kRunFields); }

Status DamagedPlan(const std::string& path, const std::string& what) {
  return UserError(path + ": " + what + "; expected the plan that a launcher wrote");
}

}  // namespace

Status WritePlan(const Plan& plan, const SweepFiles& files) {
  Json tuned = Json::array(), later = Json::array();
  for (const TunedConfiguration& each : plan.tuned) {
    tuned.push_back(JsonOf<TunedConfiguration>(each, kTunedFields));
  }
  for (const LaterRuns& each : plan.later) {
    later.push_back({{"run", JsonOf(each.each)}, {"count", each.count}});
  }
  const Json sweep = {
      {"sweep", plan.name}, {"columns", plan.columns}, {"tuned", tuned}, {"later", later}};
  std::string text = sweep.dump() + "\n";
  for (const PlannedRun& run : plan.runs) text += JsonOf(run).dump() + "\n";
  return WriteFileAtomically(files.Plan(), text);
}

StatusOr<Plan> ReadPlan(const SweepFiles& files) {
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(files.Plan()));
  Plan plan;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    try {
      const Json json = ParseJson(line);
      const JsonEntry entry(json);
      if (number > 1) {
        plan.runs.push_back(RunFrom(entry));
        if (plan.runs.back().columns.size() == plan.columns.size()) continue;
        entry.Member("columns").Wrong(StrCat(plan.columns.size(), " texts"));
      }
      plan.name = entry.Member("sweep").Text();
      plan.columns = TextsOf(entry.Member("columns"));
      for (const JsonEntry& each : entry.Member("tuned").Elements()) {
        plan.tuned.push_back(RecordFrom<TunedConfiguration>(each, kTunedFields));
      }
      for (const JsonEntry& each : entry.Member("later").Elements()) {
        plan.later.push_back(
            {RunFrom(each.Member("run")), each.Member("count").Integer(0, kMostInteger)});
      }
    } catch (const std::string& mistake) {
      return DamagedPlan(files.Plan(), StrCat("line ", number, ": ", mistake));
    }
  }
  if (number == 0) return DamagedPlan(files.Plan(), "is empty");
  return plan;
}

}  // namespace elastor
