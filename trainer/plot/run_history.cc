#include "trainer/plot/run_history.h"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <utility>

#include "core/base/file.h"
#include "core/base/text.h"
#include "trainer/experiment/config.h"
#include "trainer/records/run_files.h"
#include "trainer/records/run_reader.h"

namespace elastor {
namespace {

void AddSpectrum(const SpectrumRecord& record, RunHistory* run) {
  // A run that went on may have measured a step twice.
  const auto of_another = [&record](const SpectrumRecord& other) {
    return other.step != record.step || other.stage == record.stage;
  };
  if (run->spectra.empty() || std::ranges::any_of(run->spectra.back(), of_another)) {
    run->spectra.emplace_back();
  }
  run->spectra.back().push_back(record);
}

Status ReadMetrics(RunHistory* run) {
  ELASTOR_RETURN_IF_ERROR(ReadRecords(run->folder, [&](const RunRecord& record) {
    if (const auto* train = std::get_if<TrainRecord>(&record.values)) {
      run->train.push_back(*train);
    } else if (const auto* eval = std::get_if<EvalRecord>(&record.values)) {
      run->evaluations.push_back(*eval);
    } else if (const auto* training = std::get_if<TrainingEvalRecord>(&record.values)) {
      run->training_evaluations.push_back(*training);
    } else if (const auto* table = std::get_if<TableRecord>(&record.values)) {
      run->tables.push_back(*table);
    } else if (record.event == "spectrum") {
      AddSpectrum(std::get<SpectrumRecord>(record.values), run);
    }
    return OkStatus();
  }));
  if (!run->train.empty() || !run->evaluations.empty() || !run->spectra.empty()) return OkStatus();
  return UserError(StrCat(run->folder, "/", kMetricsFile,
                          ": has no records yet; they begin after training.log_every_steps steps"));
}

StatusOr<RunHistory> ReadRun(const std::string& folder) {
  RunHistory run;
  run.folder = folder;
  ELASTOR_ASSIGN_OR_RETURN(const bool holds_run, IsThere(StrCat(folder, "/", kMetricsFile)));
  if (!holds_run) {
    return UserError(StrCat(folder, ": holds no run (no ", kMetricsFile,
                            "); expected the --output_dir of a training run"));
  }
  ELASTOR_ASSIGN_OR_RETURN(run.experiment, ReadFile(StrCat(folder, "/", kExperimentFile)));
  ELASTOR_ASSIGN_OR_RETURN(run.summary, ReadSummary(folder));
  if (run.summary && run.summary->mode != "train") {
    return UserError(folder + ": is of mode " + run.summary->mode + "; expected a training run");
  }
  ELASTOR_RETURN_IF_ERROR(ReadMetrics(&run));
  ELASTOR_ASSIGN_OR_RETURN(const Experiment experiment, ReadRunExperiment(folder));
  run.name = experiment.name();
  run.data = experiment.data().path();
  run.fields = FieldTexts(experiment);
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

// The last part of a field's path and its value.
std::string FieldText(const std::string& field, const std::string& value) {
  return field.substr(field.rfind('.') + 1) + " " + value;
}

// "MLP" of a sweep's folder "MLP_seed1-594404f56ce49a4b"; empty: it has no such name.
std::string LabelOfFolder(const std::string& folder) {
  static const std::regex pattern("(.+)_seed[^_/-]*-[0-9a-f]{16}/?");
  std::smatch parts;
  const std::string name = (std::filesystem::path(folder) / "").parent_path().filename();
  return std::regex_match(name, parts, pattern) ? parts[1].str() : "";
}

// Names groups by the labels in a sweep's folders or by the experiments' `name`, where these tell
// them apart, else by the fields in which they differ.
void NameGroups(std::vector<RunHistory>* runs) {
  constexpr size_t kMostFields = 3;
  using Fields = std::map<std::string, std::string>;
  std::map<Fields, std::set<std::string>> names_of;
  std::vector<Fields> keys;
  for (const RunHistory& run : *runs) {
    Fields& key = keys.emplace_back(run.fields);
    key.erase("training.seed");
    key.erase("name");
    const auto name = run.fields.find("name");
    const std::string label = LabelOfFolder(run.folder);
    names_of[key].insert(!label.empty() ? label : name == run.fields.end() ? "" : name->second);
  }
  if (names_of.size() == runs->size()) return;
  // A few seeds and nothing else are looked at one by one.
  if (names_of.size() == 1 && runs->size() <= kMostCurves) return;
  std::set<std::string> names, differing;
  bool named = true;
  const Fields& first = names_of.begin()->first;
  for (const auto& [key, of_group] : names_of) {
    named = named && of_group.size() == 1 && names.insert(*of_group.begin()).second;
    for (const auto& [field, value] : key) {
      const auto same = first.find(field);
      if (same == first.end() || same->second != value) differing.insert(field);
    }
    for (const auto& [field, value] : first) {
      if (!key.contains(field)) differing.insert(field);
    }
  }
  std::map<std::string, Fields> taken;
  for (size_t i = 0; i < runs->size(); ++i) {
    std::vector<std::string> parts;
    for (const std::string& field : differing) {
      const auto value = keys[i].find(field);
      if (value != keys[i].end()) parts.push_back(FieldText(field, value->second));
    }
    if (parts.size() > kMostFields) parts.resize(kMostFields);
    std::string name = named ? *names_of[keys[i]].begin() : Join(parts, ", ");
    if (name.empty()) name = names_of.size() == 1 ? "all runs" : "the others";
    // Groups that the first few fields leave alike.
    while (taken.emplace(name, keys[i]).first->second != keys[i]) name += "\u2032";
    (*runs)[i].group = name;
  }
}

}  // namespace

std::vector<std::string> GroupsOf(const std::vector<RunHistory>& runs) {
  std::vector<std::string> groups;
  for (const RunHistory& run : runs) {
    if (run.group.empty() || std::ranges::find(groups, run.group) != groups.end()) continue;
    groups.push_back(run.group);
  }
  return groups;
}

int64_t RunHistory::steps() const {
  return std::max(train.empty() ? 0 : train.back().step,
                  evaluations.empty() ? 0 : evaluations.back().step);
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
  if (runs.size() > 1) {
    NameByFolders(&runs);
    NameGroups(&runs);
  }
  return runs;
}

}  // namespace elastor
