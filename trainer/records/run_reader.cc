#include "trainer/records/run_reader.h"

#include <cmath>
#include <utility>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/json_entry.h"
#include "core/base/text.h"
#include "trainer/experiment/config.h"
#include "trainer/records/run_files.h"

namespace elastor {

StatusOr<Experiment> ReadRunExperiment(const std::string& folder) {
  const std::string path = StrCat(folder, "/", kExperimentFile);
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ELASTOR_ASSIGN_OR_RETURN(Experiment experiment, ParseExperiment(text, path));
  return CompleteStored(std::move(experiment));
}

StatusOr<std::optional<Summary>> ReadSummary(const std::string& folder) {
  const std::string path = StrCat(folder, "/", kSummaryFile);
  ELASTOR_ASSIGN_OR_RETURN(const bool finished, IsThere(path));
  if (!finished) return std::optional<Summary>();
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  StatusOr<Summary> summary = ParseSummary(text);
  if (!summary.ok()) return UserError(StrCat(path, ": ", summary.status().message()));
  return std::optional(std::move(*summary));
}

StatusOr<Summary> ReadFinishedRun(const std::string& folder) {
  ELASTOR_ASSIGN_OR_RETURN(std::optional<Summary> summary, ReadSummary(folder));
  if (summary) return std::move(*summary);
  return UserError(
      StrCat(folder, ": has no ", kSummaryFile, "; expected the folder of a finished run"));
}

std::string DataFingerprintOf(const std::string& folder) {
  const StatusOr<std::string> text = ReadFile(StrCat(folder, "/", kModelFolder, "/manifest.json"));
  if (!text.ok()) return "";
  try {
    const Json json = ParseJson(*text);
    return JsonEntry(json).Member("data").Text();
  } catch (const std::string&) {
    return "";
  }
}

Status ReadRecords(const std::string& folder,
                   const std::function<Status(const RunRecord& record)>& use) {
  const std::string path = StrCat(folder, "/", kMetricsFile);
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  int64_t number = 0;
  std::string_view rest = text, line;
  while (TakeLine(&rest, &line)) {
    ++number;
    const StatusOr<RunRecord> record = ParseRecord(line);
    const Status status = record.ok() ? use(*record) : record.status();
    if (status.ok()) continue;
    return Status(status.code(), StrCat(path, ":", number, ": ", status.message()));
  }
  return OkStatus();
}

Status CheckFinite(std::string_view name, double value) {
  if (std::isfinite(value)) return OkStatus();
  return UserError(StrCat(name, ": found none; expected a finite number"));
}

}  // namespace elastor
