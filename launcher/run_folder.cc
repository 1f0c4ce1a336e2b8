#include "launcher/run_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string_view>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/process/job_process.h"
#include "trainer/experiment/config.h"
#include "trainer/records/run_files.h"
#include "trainer/records/run_reader.h"
#include "xxhash.h"

namespace elastor {
namespace {

constexpr size_t kHashDigits = 16;
constexpr size_t kMostLabelBytes = 120;

Json ParseObject(std::string_view text) {
  Json json = Json::parse(text);
  return json.is_object() ? json : Json::object();
}

int64_t IntegerOf(const Json& json, const char* name) {
  const Json* entry = json.find(name);
  return entry != nullptr && entry->is_number_integer() ? entry->get<int64_t>() : 0;
}

std::string TextOf(const Json& json, const char* name) {
  const Json* entry = json.find(name);
  return entry != nullptr && entry->is_string() ? entry->get<std::string>() : "";
}

Status AppendLine(const std::string& path, const Json& json) {
  const std::string line = json.dump() + "\n";
  ELASTOR_ASSIGN_OR_RETURN(const int file, OpenFile(path, O_WRONLY | O_CREAT | O_APPEND));
  const ssize_t written = write(file, line.data(), line.size());
  const int error = errno;
  // What a full disk has taken of a line would spoil the next one.
  if (written > 0 && written < static_cast<ssize_t>(line.size())) {
    (void)!ftruncate(file, lseek(file, 0, SEEK_END) - written);
  }
  close(file);
  if (written == static_cast<ssize_t>(line.size())) return OkStatus();
  return MachineError(path + ": write: " + (written < 0 ? std::strerror(error) : "disk full"));
}

// Refuses the files of another run. What cannot be read is not judged: files that a person removed
// change no result.
Status CheckOwn(const SweepFiles& files, const std::string& folder, const Summary& summary) {
  const std::string run = files.Run(folder);
  const StatusOr<std::string> text = ReadFile(StrCat(run, "/", kExperimentFile));
  if (!text.ok()) return OkStatus();
  // As it was written: later builds complete it by fields that the hash does not cover.
  const StatusOr<Experiment> written = ParseExperiment(*text, folder);
  if (written.ok() && !summary.numeric_hash.empty() &&
      summary.numeric_hash != NumericHash(*written)) {
    return UserError(StrCat(run, "/", kSummaryFile, ": found another run's; expected numeric_hash ",
                            NumericHash(*written), ", as of ", kExperimentFile, " beside it"));
  }
  const StatusOr<Experiment> found = ReadRunExperiment(run);
  const StatusOr<std::string> planned_text = ReadFile(files.Experiment(folder));
  if (!found.ok() || !planned_text.ok()) return OkStatus();
  StatusOr<Experiment> planned = ParseExperiment(*planned_text, files.Experiment(folder));
  if (planned.ok()) planned = CompleteStored(std::move(*planned));
  if (!planned.ok()) return OkStatus();
  const std::string difference = NumericDifference(*found, *planned);
  if (difference.empty()) return OkStatus();
  return UserError(StrCat(run, "/", kExperimentFile, ": ", difference, ", as in ",
                          files.Experiment(folder), ": the folder holds another run"));
}

}  // namespace

std::string RunHash(const Experiment& experiment, const std::string& data_fingerprint,
                    const std::string& numerics, const std::string& predictions) {
  std::string bytes = DistinctFields(experiment).SerializeAsString();
  for (const std::string& part :
       {data_fingerprint, std::to_string(experiment.training().max_steps()),
        experiment.training().warm_start().path(), numerics}) {
    bytes += '\0' + part;
  }
  if (!predictions.empty()) bytes += '\0' + predictions;
  std::array<char, kHashDigits + 1> hex;
  std::snprintf(hex.data(), hex.size(), "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(bytes.data(), bytes.size())));
  return hex.data();
}

std::string FolderName(const std::vector<std::string>& labels, const std::string& hash) {
  std::string name;
  for (const std::string& label : labels) name += (name.empty() ? "" : "_") + label;
  if (name.empty()) name = "run";
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-';
    if (!plain) c = '-';
  }
  if (name.front() == '.' || name.front() == '-') name.front() = '_';
  return name.substr(0, kMostLabelBytes) + "-" + hash;
}

std::string HashOfFolder(const std::string& folder) {
  const size_t dash = folder.rfind('-');
  if (dash == folder.npos || folder.size() - dash - 1 != kHashDigits) return "";
  return folder.substr(dash + 1);
}

std::string LabelsOfFolder(const std::string& folder) {
  const std::string hash = HashOfFolder(folder);
  return hash.empty() ? folder : folder.substr(0, folder.size() - hash.size() - 1);
}

StatusOr<std::optional<Summary>> ReadOwnResult(const SweepFiles& files, const std::string& folder) {
  const std::string run = files.Run(folder);
  StatusOr<std::optional<Summary>> summary = ReadSummary(run);
  if (!summary.ok() || !*summary || (*summary)->state_digest.empty()) {
    return std::optional<Summary>();
  }
  ELASTOR_RETURN_IF_ERROR(CheckOwn(files, folder, **summary));
  for (double* number : {&(*summary)->samples_per_s, &(*summary)->wall_s}) {
    *number = Finite(*number).value_or(0);
  }
  return std::move(*summary);
}

std::optional<Summary> ReadResult(const SweepFiles& files, const std::string& folder) {
  StatusOr<std::optional<Summary>> result = ReadOwnResult(files, folder);
  return result.ok() ? std::move(*result) : std::nullopt;
}

Attempts ReadAttempts(const std::string& path) {
  Attempts attempts;
  bool rehearsal = false;
  const StatusOr<std::string> text = ReadFile(path);
  std::string_view lines = text.ok() ? std::string_view(*text) : "";
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const Json json = ParseObject(line);
    const std::string event = TextOf(json, "event");
    if (event == "start") {
      ++attempts.started;
      // The one before was Slurm's, whose node or launcher is lost.
      attempts.stopped += attempts.open && json.contains("slurm");
      attempts.open = true;
      attempts.slurm = TextOf(json, "slurm");
      rehearsal = false;
    } else if (event == "rehearsal") {
      rehearsal = true;
    } else if (event == "cancelled") {
      attempts.open = false;
      attempts.exit_code = kCancelled;
      attempts.last_line.clear();
    } else if (event == "forgiven") {
      attempts.stopped = attempts.machine = attempts.exit_code = 0;
      attempts.last_line.clear();
    } else if (event == "end") {
      attempts.open = false;
      attempts.exit_code = static_cast<int>(IntegerOf(json, "exit_code"));
      attempts.last_line = TextOf(json, "last_line");
      if (json.value("stopped_by_launcher", Json()) == true) {
        attempts.exit_code = kStoppedCode;
      } else if (attempts.exit_code == kStoppedCode) {
        ++(rehearsal ? attempts.rehearsed : attempts.stopped);
      } else if (EndOf(attempts.exit_code) == JobEnd::kMachine) {
        ++attempts.machine;
      }
    }
  }
  return attempts;
}

Status AppendStart(const std::string& path, int pid, const Place& place) {
  Json json = {{"event", "start"},
               {"time", static_cast<int64_t>(std::time(nullptr))},
               {"pid", pid},
               {"cores", place.cores}};
  if (!place.gpus.empty()) json["gpus"] = place.gpus;
  if (!place.slurm.empty()) json["slurm"] = place.slurm;
  return AppendLine(path, json);
}

Status AppendRehearsal(const std::string& path) {
  return AppendLine(path, {{"event", "rehearsal"}});
}

Status AppendEnd(const std::string& path, int exit_code, bool stopped_by_launcher, double seconds,
                 const std::string& last_line) {
  return AppendLine(path, {{"event", "end"},
                           {"exit_code", exit_code},
                           {"stopped_by_launcher", stopped_by_launcher},
                           {"seconds", seconds},
                           {"last_line", last_line}});
}

Status AppendCancelled(const std::string& path) {
  return AppendLine(path, {{"event", "cancelled"}});
}

Status AppendForgiveness(const std::string& path) {
  return AppendLine(path, {{"event", "forgiven"}});
}

bool MayTryAgain(const Attempts& attempts) {
  if (attempts.stopped > kMostStops || attempts.machine > kMostMachineFailures) return false;
  return EndOf(attempts.exit_code) != JobEnd::kFinal;
}

std::string CauseOfAttempt(int exit_code) {
  return exit_code == kCancelled ? "its job was cancelled" : CauseOf(exit_code);
}

RunState StateOf(const Attempts& attempts, bool has_result) {
  if (has_result) return RunState::kDone;
  if (!MayTryAgain(attempts)) return RunState::kFailed;
  return attempts.started == 0 ? RunState::kWaiting : RunState::kCutOff;
}

}  // namespace elastor
