#include "trainer/plot/run_history.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "core/base/file.h"
#include "core/base/json_entry.h"
#include "google/protobuf/text_format.h"
#include "trainer/experiment/config.h"

namespace elastor {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

// Every field that is set, by its path.
void AddFields(const Message& message, const std::string& path,
               std::map<std::string, std::string>* fields) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    const std::string name = path + field->name();
    if (field->message_type() != nullptr) {
      AddFields(reflection.GetMessage(message, field), name + ".", fields);
      continue;
    }
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    std::string& text = (*fields)[name];
    for (int i = 0; i < count; ++i) {
      std::string value;
      TextFormat::PrintFieldValueToString(message, field, field->is_repeated() ? i : -1, &value);
      text += (i == 0 ? "" : ", ") + value;
    }
  }
}

void AddRecord(RunRecord record, RunHistory* run) {
  const std::string event = TextIn(record, "event");
  if (event == "train") {
    run->train.push_back(std::move(record));
  } else if (event == "eval") {
    run->evaluations.push_back(std::move(record));
  } else if (event == "spectrum") {
    // A run that went on may have measured a step twice.
    const auto of_another = [&record](const RunRecord& other) {
      return other["step"] != record["step"] || TextIn(other, "stage") == TextIn(record, "stage");
    };
    if (run->spectra.empty() || std::ranges::any_of(run->spectra.back(), of_another)) {
      run->spectra.emplace_back();
    }
    run->spectra.back().push_back(std::move(record));
  }
}

Status ReadMetrics(RunHistory* run) {
  const std::string path = run->folder + "/metrics.jsonl";
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  size_t number = 0;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    RunRecord record = RunRecord::parse(line, nullptr, /*allow_exceptions=*/false);
    ++number;
    if (NestsTooDeep(line) || !record.is_object() || !record.contains("event") ||
        !record.contains("step") || !record["step"].is_number_integer()) {
      return UserError(path + ":" + std::to_string(number) +
                       ": expected a record, a JSON object with event and step");
    }
    AddRecord(std::move(record), run);
  }
  if (!run->train.empty() || !run->evaluations.empty() || !run->spectra.empty()) return OkStatus();
  return UserError(path + ": has no records yet; they begin after training.log_every_steps steps");
}

StatusOr<RunHistory> ReadRun(const std::string& folder) {
  RunHistory run;
  run.folder = folder;
  ELASTOR_ASSIGN_OR_RETURN(const bool holds_run, IsThere(folder + "/metrics.jsonl"));
  if (!holds_run) {
    return UserError(folder + ": holds no run (no metrics.jsonl); expected the --output_dir of a " +
                     "training run");
  }
  ELASTOR_ASSIGN_OR_RETURN(run.experiment, ReadFile(folder + "/experiment.textproto"));
  ELASTOR_ASSIGN_OR_RETURN(const bool finished, IsThere(folder + "/summary.json"));
  if (finished) {
    ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(folder + "/summary.json"));
    run.summary = RunRecord::parse(text, nullptr, /*allow_exceptions=*/false);
    if (NestsTooDeep(text) || !run.summary->is_object())
      return UserError(folder + "/summary.json: is damaged");
    if (const std::string mode = TextIn(*run.summary, "mode"); mode != "train") {
      return UserError(folder + ": is of mode " + mode + "; expected a training run");
    }
  }
  ELASTOR_RETURN_IF_ERROR(ReadMetrics(&run));
  ELASTOR_ASSIGN_OR_RETURN(Experiment experiment, ReadExperiment(folder + "/experiment.textproto"));
  ELASTOR_ASSIGN_OR_RETURN(experiment, CompleteStored(std::move(experiment)));
  run.name = experiment.name();
  run.data = experiment.data().path();
  AddFields(experiment, "", &run.fields);
  return run;
}

// What is left of the folders' paths without the directories that all of them are in.
void NameByFolders(std::vector<RunHistory>* runs) {
  std::vector<std::filesystem::path> rest;
  for (const RunHistory& run : *runs) {
    rest.push_back(std::filesystem::path(run.folder).lexically_normal() / "");
  }
  const auto in_one = [&] {
    return std::ranges::all_of(rest, [&](const std::filesystem::path& path) {
      return std::distance(path.begin(), path.end()) > 2 && *path.begin() == *rest[0].begin();
    });
  };
  while (in_one()) {
    for (std::filesystem::path& path : rest) path = path.lexically_relative(*path.begin());
  }
  for (size_t i = 0; i < runs->size(); ++i) {
    std::string name = rest[i].string();
    if (name.ends_with("/")) name.pop_back();
    (*runs)[i].name = name;
  }
}

}  // namespace

int64_t RunHistory::steps() const {
  int64_t last = 0;
  for (const auto* records : {&train, &evaluations}) {
    if (!records->empty()) last = std::max(last, records->back()["step"].get<int64_t>());
  }
  return last;
}

double NumberIn(const RunRecord& record, const char* field) {
  const auto found = record.find(field);
  return found != record.end() && found->is_number() ? found->get<double>()
                                                     : std::numeric_limits<double>::quiet_NaN();
}

std::string TextIn(const RunRecord& record, const char* field) {
  const auto found = record.find(field);
  if (found == record.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::vector<ChartPoint> CurveOf(const std::vector<RunRecord>& records, const char* field) {
  std::vector<ChartPoint> points;
  for (const RunRecord& record : records) {
    points.push_back({.x = NumberIn(record, "step"), .y = NumberIn(record, field)});
  }
  return points;
}

StatusOr<std::vector<RunHistory>> ReadRuns(const std::vector<std::string>& folders) {
  std::vector<RunHistory> runs;
  std::set<std::string> known;
  for (const std::string& folder : folders) {
    std::error_code error;
    const std::string place = std::filesystem::canonical(folder, error).string();
    if (!error && !known.insert(place).second) {
      return UserError(folder + ": is given twice");
    }
    ELASTOR_ASSIGN_OR_RETURN(RunHistory run, ReadRun(folder));
    runs.push_back(std::move(run));
  }
  if (runs.size() > 1) NameByFolders(&runs);
  return runs;
}

}  // namespace elastor
