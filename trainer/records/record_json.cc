#include "trainer/records/record_json.h"

#include <limits>
#include <span>
#include <utility>

#include "core/base/json.h"
#include "core/base/json_entry.h"
#include "core/base/text.h"

namespace elastor {
namespace {

constexpr int64_t kMostInteger = std::numeric_limits<int64_t>::max();
constexpr const char* kRankKinds[] = {"stable_rank_", "entropy_rank_"};
constexpr RankRecord SpectrumRecord::*kRanks[] = {&SpectrumRecord::stable,
                                                  &SpectrumRecord::entropy};

// Writing.

template <typename Value>
Json ValueJson(const Value& value) {
  if constexpr (requires { value.has_value(); }) {
    return value ? Json(*value) : Json(nullptr);
  } else {
    return Json(value);
  }
}

// Returns whether IfEmpty concerns the value.
template <typename Value>
bool IsEmpty(const Value& value) {
  if constexpr (requires { value.has_value(); }) {
    return !value;
  } else if constexpr (requires { value.empty(); }) {
    return value.empty();
  } else {
    return value == 0;
  }
}

template <typename Record>
void AddFields(std::span<const RecordField<Record>> fields, const Record& record, Json* json) {
  for (const RecordField<Record>& field : fields) {
    std::visit(
        [&](auto place) {
          const bool empty = IsEmpty(record.*place);
          if (empty && field.if_empty == IfEmpty::kLeftOut) return;
          (*json)[field.name] =
              empty && field.if_empty == IfEmpty::kNull ? Json(nullptr) : ValueJson(record.*place);
        },
        field.value);
  }
}

template <typename Record>
Json EventJson(const char* event, std::span<const RecordField<Record>> fields,
               const Record& record) {
  Json json = {{"event", event}};
  AddFields(fields, record, &json);
  return json;
}

// All that is known of a label.
void AddMetrics(const MetricValues& metrics, Json* json) {
  if (metrics.accuracy) return AddFields<MetricValues>(kClassFields, metrics, json);
  AddFields<BinaryValues>(kBinaryFields, metrics, json);
  AddFields<MetricValues>(kGroupFields, metrics, json);
  for (const SliceValues& slice : metrics.slices) {
    Json& added = (*json)["slices"].emplace_back();
    AddFields<SliceValues>(kSliceFields, slice, &added);
    AddFields<BinaryValues>(kBinaryFields, slice, &added);
  }
}

// The means, or what else there is of both kinds of ranks.
void AddRanks(std::span<const RecordField<RankRecord>> fields, const SpectrumRecord& record,
              Json* json) {
  for (const RecordField<RankRecord>& field : fields) {
    for (size_t kind = 0; kind < std::size(kRanks); ++kind) {
      (*json)[std::string(kRankKinds[kind]) + field.name] = *field.Number(record.*kRanks[kind]);
    }
  }
}

template <typename Record>
void AddSummaryMetrics(std::span<const RecordField<Record>> fields, const Record& record,
                       const BestValues& best, Json* json) {
  for (const RecordField<Record>& field : fields) {
    if (!field.in_summary) continue;
    std::visit([&](auto place) { (*json)[field.name] = ValueJson(record.*place); }, field.value);
    for (const auto& [name, value] : best) {
      if (name == field.name) (*json)["best_" + name] = ValueJson(value);
    }
  }
}

// Reading. These throw as JsonEntry does.

bool IsThere(const JsonEntry& entry, const std::string& name) {
  return entry.Has(name) && !entry.Member(name).json().is_null();
}

template <typename Value>
void Take(const JsonEntry& entry, const std::string& name, Value* value) {
  *value = {};
  if constexpr (std::is_same_v<Value, double>) *value = std::numeric_limits<double>::quiet_NaN();
  if (!IsThere(entry, name)) return;
  const JsonEntry found = entry.Member(name);
  if constexpr (std::is_same_v<Value, std::string>) {
    *value = found.Text();
  } else if constexpr (std::is_same_v<Value, bool>) {
    *value = found.Bool();
  } else if constexpr (std::is_same_v<Value, uint64_t>) {
    if (!found.json().is_number_unsigned()) found.Wrong("an integer of 0 or more");
    *value = found.json().get<uint64_t>();
  } else if constexpr (std::is_same_v<Value, int64_t> ||
                       std::is_same_v<Value, std::optional<int64_t>>) {
    *value = found.Integer(0, kMostInteger);
  } else {
    *value = found.Number();
  }
}

template <typename Record>
void TakeFields(std::span<const RecordField<Record>> fields, const JsonEntry& entry,
                Record* record) {
  if (!entry.json().is_object()) entry.Wrong("an object");
  for (const RecordField<Record>& field : fields) {
    std::visit([&](auto place) { Take(entry, field.name, &(record->*place)); }, field.value);
  }
}

// The elements of a list of objects; none if it is missing.
std::vector<JsonEntry> ListIn(const JsonEntry& entry, const std::string& name) {
  return IsThere(entry, name) ? entry.Member(name).Elements() : std::vector<JsonEntry>();
}

MetricValues TakeMetrics(const JsonEntry& entry) {
  MetricValues metrics;
  Take(entry, "label", &metrics.label);
  if (IsThere(entry, "accuracy")) {
    TakeFields<MetricValues>(kClassFields, entry, &metrics);
    return metrics;
  }
  TakeFields<BinaryValues>(kBinaryFields, entry, &metrics);
  TakeFields<MetricValues>(kGroupFields, entry, &metrics);
  for (const JsonEntry& slice : ListIn(entry, "slices")) {
    SliceValues& values = metrics.slices.emplace_back();
    TakeFields<SliceValues>(kSliceFields, slice, &values);
    TakeFields<BinaryValues>(kBinaryFields, slice, &values);
  }
  return metrics;
}

EvalRecord TakeEvaluation(const JsonEntry& entry) {
  EvalRecord record;
  TakeFields<EvalRecord>(kEvalFields, entry, &record);
  record.metrics = TakeMetrics(entry);
  for (const JsonEntry& label : ListIn(entry, "labels")) {
    record.labels.push_back(TakeMetrics(label));
  }
  return record;
}

SpectrumRecord TakeSpectrum(const JsonEntry& entry) {
  SpectrumRecord record;
  TakeFields<SpectrumRecord>(kSpectrumFields, entry, &record);
  for (size_t kind = 0; kind < std::size(kRanks); ++kind) {
    RankRecord& rank = record.*kRanks[kind];
    for (const RecordField<RankRecord>& field : kRankFields) {
      Take(entry, std::string(kRankKinds[kind]) + field.name,
           &(rank.*std::get<double RankRecord::*>(field.value)));
    }
    for (const JsonEntry& bin : ListIn(entry, std::string(kRankKinds[kind]) + "histogram")) {
      rank.histogram.push_back(bin.Integer(0, kMostInteger));
    }
  }
  for (const JsonEntry& value : ListIn(entry, "profile")) {
    record.profile.push_back(value.Number());
  }
  return record;
}

TrainRecord TakeTrain(const JsonEntry& entry) {
  TrainRecord record;
  TakeFields<TrainRecord>(kTrainFields, entry, &record);
  if (!IsThere(entry, "phase_s")) return record;
  for (const auto& [phase, seconds] : entry.Member("phase_s").Members()) {
    record.phase_seconds.emplace_back(phase, seconds.Number());
  }
  return record;
}

template <typename Record>
Record TakeRecord(std::span<const RecordField<Record>> fields, const JsonEntry& entry) {
  Record record;
  TakeFields(fields, entry, &record);
  return record;
}

decltype(RunRecord::values) TakeValues(const std::string& event, const JsonEntry& entry) {
  if (event == "train") return TakeTrain(entry);
  if (event == "eval") return TakeEvaluation(entry);
  if (event == "training_eval") return TrainingEvalRecord{TakeEvaluation(entry)};
  if (event == "spectrum" || event == "training_spectrum") return TakeSpectrum(entry);
  if (event == "scoring") return TakeRecord<ScoringRecord>(kScoringFields, entry);
  if (event == "ntk") return TakeRecord<NtkRecord>(kNtkFields, entry);
  if (event == "tables") return TakeRecord<TableRecord>(kTableFields, entry);
  if (event == "checkpoint") return TakeRecord<CheckpointRecord>(kCheckpointFields, entry);
  return std::monostate();
}

}  // namespace

std::string ToJson(const TrainRecord& record) {
  Json json = EventJson<TrainRecord>("train", kTrainFields, record);
  json["phase_s"] = Json::object();
  for (const auto& [phase, seconds] : record.phase_seconds) json["phase_s"][phase] = seconds;
  return json.dump();
}

std::string ToJson(const EvalRecord& record) {
  const bool training = record.split == "train";
  Json json = EventJson<EvalRecord>(training ? "training_eval" : "eval", kEvalFields, record);
  if (!record.metrics.label.empty()) json["label"] = record.metrics.label;
  AddMetrics(record.metrics, &json);
  for (const MetricValues& label : record.labels) {
    AddMetrics(label, &(json["labels"].emplace_back() = {{"label", label.label}}));
  }
  return json.dump();
}

std::string ToJson(const SpectrumRecord& record) {
  // Readers of one take no record of the other.
  const bool training = record.split == "train";
  const auto [head, rest] =
      std::pair(std::span(kSpectrumFields).first<3>(), std::span(kSpectrumFields).subspan<3>());
  Json json = EventJson<SpectrumRecord>(training ? "training_spectrum" : "spectrum", head, record);
  AddRanks(std::span(kRankFields).first<1>(), record, &json);
  AddFields<SpectrumRecord>(rest, record, &json);
  AddRanks(std::span(kRankFields).subspan<1>(), record, &json);
  json.update(Json{{"stable_rank_histogram", CoarseHistogram(record.stable.histogram)},
                   {"entropy_rank_histogram", CoarseHistogram(record.entropy.histogram)},
                   {"profile", record.profile}});
  return json.dump();
}

std::string ToJson(const ScoringRecord& record) {
  return EventJson<ScoringRecord>("scoring", kScoringFields, record).dump();
}

std::string ToJson(const NtkRecord& record) {
  return EventJson<NtkRecord>("ntk", kNtkFields, record).dump();
}

std::string ToJson(const CheckpointRecord& record) {
  return EventJson<CheckpointRecord>("checkpoint", kCheckpointFields, record).dump();
}

std::string ToJson(const TableRecord& record) {
  return EventJson<TableRecord>("tables", kTableFields, record).dump();
}

std::string ToJson(const Summary& summary) {
  Json json;
  AddFields<Summary>(kSummaryHeadFields, summary, &json);
  AddSummaryMetrics<BinaryValues>(kBinaryFields, summary.metrics, BestOf(summary), &json);
  AddSummaryMetrics<MetricValues>(kGroupFields, summary.metrics, BestOf(summary), &json);
  AddFields<Summary>(kSummaryFields, summary, &json);
  if (!summary.metrics.label.empty()) json["label"] = summary.metrics.label;
  if (summary.metrics.accuracy) {
    AddSummaryMetrics<MetricValues>(kClassFields, summary.metrics, {}, &json);
  }
  for (const Summary::Label& label : summary.labels) {
    Json& added = json["labels"].emplace_back() = {{"label", label.metrics.label},
                                                   {"rows", label.metrics.rows}};
    AddSummaryMetrics<BinaryValues>(kBinaryFields, label.metrics, BestOf(label), &added);
    AddSummaryMetrics<MetricValues>(kGroupFields, label.metrics, BestOf(label), &added);
  }
  json["spectrum"] = Json::array();
  for (const SpectrumRecord& record : summary.spectrum) {
    AddRanks(std::span(kRankFields).first<1>(), record,
             &(json["spectrum"].emplace_back() = {{"stage", record.stage}}));
  }
  json["communication"] = Json::array();
  for (const CommunicationRecord& record : summary.communication) {
    AddFields<CommunicationRecord>(kCommunicationFields, record,
                                   &json["communication"].emplace_back());
  }
  return json.dump(2) + "\n";
}

StatusOr<RunRecord> ParseRecord(std::string_view line) {
  constexpr char kExpected[] = "expected a record, a JSON object with event and step";
  Json json;
  try {
    json = ParseJson(line);
  } catch (const std::string& reason) {
    return UserError(StrCat(kExpected, "; found ", reason));
  }
  const JsonEntry entry(json);
  if (!entry.Has("event") || !json["event"].is_string() || !entry.Has("step") ||
      !json["step"].is_number_integer()) {
    return UserError(kExpected);
  }
  try {
    RunRecord record;
    record.event = entry.Member("event").Text();
    record.step = entry.Member("step").Integer(0, kMostInteger);
    record.values = TakeValues(record.event, entry);
    return record;
  } catch (const std::string& reason) {
    return UserError(reason);
  }
}

StatusOr<Summary> ParseSummary(std::string_view text) {
  try {
    const Json json = ParseJson(text);
    const JsonEntry entry(json);
    Summary summary;
    TakeFields<Summary>(kSummaryHeadFields, entry, &summary);
    TakeFields<Summary>(kSummaryFields, entry, &summary);
    summary.metrics = TakeMetrics(entry);
    Take(entry, "best_auc", &summary.best_auc);
    Take(entry, "best_gauc", &summary.best_gauc);
    for (const JsonEntry& label : ListIn(entry, "labels")) {
      Summary::Label& added = summary.labels.emplace_back(Summary::Label{TakeMetrics(label), {}});
      Take(label, "best_auc", &added.best_auc);
    }
    for (const JsonEntry& stage : ListIn(entry, "spectrum")) {
      summary.spectrum.push_back(TakeSpectrum(stage));
    }
    for (const JsonEntry& phase : ListIn(entry, "communication")) {
      summary.communication.push_back(TakeRecord<CommunicationRecord>(kCommunicationFields, phase));
    }
    return summary;
  } catch (const std::string& reason) {
    return UserError(reason);
  }
}

bool TakeLine(std::string_view* text, std::string_view* line) {
  const size_t end = text->find('\n');
  if (end == text->npos) return false;
  *line = text->substr(0, end);
  text->remove_prefix(end + 1);
  return true;
}

std::vector<int64_t> CoarseHistogram(const std::vector<int64_t>& histogram) {
  constexpr size_t kLogBins = 32;
  static_assert(kRankBins % kLogBins == 0);
  std::vector<int64_t> coarse(kLogBins);
  for (size_t b = 0; b < histogram.size(); ++b)
    coarse[b * kLogBins / histogram.size()] += histogram[b];
  return coarse;
}

}  // namespace elastor
