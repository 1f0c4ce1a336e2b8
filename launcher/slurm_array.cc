#include "launcher/slurm_array.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <tuple>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/json_entry.h"
#include "core/base/text.h"
#include "core/process/job_process.h"
#include "launcher/run_command.h"
#include "xxhash.h"

namespace elastor {
namespace {

constexpr int kDefaultSignalSeconds = 120;
constexpr int kSecondsPerMinute = 60;
constexpr int kMegabytesPerGigabyte = 1024;
constexpr std::string_view kArray = "array-", kList = ".jsonl", kOver = ".over.jsonl";

auto ResourcesOf(const PlannedRun& run) {
  return std::tuple(run.ranks, run.threads, run.gpus, run.nodes, run.memory_gb, run.minutes);
}

std::string ArrayFile(const SweepFiles& files, int number, std::string_view ending) {
  return StrCat(files.Slurm(), "/", kArray, number, ending);
}

// The number of "array-N.jsonl" when `ending` is ".jsonl"; 0: is another name.
int NumberOf(std::string_view name, std::string_view ending) {
  if (!name.starts_with(kArray) || !name.ends_with(ending)) return 0;
  name.remove_prefix(kArray.size());
  name.remove_suffix(ending.size());
  int number = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && stop == name.data() + name.size() ? number : 0;
}

// A line of an array's list; nothing: it is damaged.
std::optional<ArrayElement> ParseElement(const std::string& line) {
  try {
    const Json json = ParseJson(line);
    const JsonEntry entry(json);
    ArrayElement element = {entry.Member("folder").Text(), {}};
    for (const JsonEntry& word : entry.Member("command").Elements()) {
      element.command.push_back(word.Text());
    }
    return element;
  } catch (const std::string&) {
    return std::nullopt;
  }
}

// As bash reads it back.
std::string Quoted(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

bool SetsTimeLimit(const Slurm& slurm) {
  return std::ranges::any_of(slurm.options(), [](const std::string& option) {
    return option.starts_with("--time=") || option.starts_with("-t");
  });
}

// At most half of the time limit, unless the sweep says.
int SignalSeconds(const Slurm& slurm, int minutes) {
  if (slurm.signal_seconds() > 0) return slurm.signal_seconds();
  if (minutes == 0) return kDefaultSignalSeconds;
  return std::min(kDefaultSignalSeconds, minutes * kSecondsPerMinute / 2);
}

// A path as sbatch takes it for --output, where % begins a name that it fills in.
std::string OutputPattern(const std::string& path) {
  std::string escaped;
  for (const char c : path) escaped += c == '%' ? "%%" : std::string(1, c);
  return escaped;
}

// What every job of a sweep has; the site's options come first, so that they replace nothing that
// the launcher counts on.
std::vector<std::string> CommonArguments(const SweepFiles& files, const Slurm& slurm,
                                         const std::string& log) {
  std::vector<std::string> arguments(slurm.options().begin(), slurm.options().end());
  std::error_code none;
  for (std::string argument :
       {"--job-name=" + JobName(files), "--chdir=" + std::filesystem::current_path(none).string(),
        "--output=" + OutputPattern(log), std::string("--open-mode=append"),
        std::string("--export=ALL"), std::string("--kill-on-invalid-dep=yes")}) {
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

}  // namespace

std::vector<std::vector<const PlannedRun*>> GroupIntoArrays(std::vector<const PlannedRun*> runs,
                                                            int most_elements) {
  std::ranges::stable_sort(runs, std::greater<>(), [](const auto* run) { return run->cost(); });
  std::map<decltype(ResourcesOf(*runs[0])), std::vector<const PlannedRun*>> groups;
  for (const PlannedRun* run : runs) groups[ResourcesOf(*run)].push_back(run);
  std::vector<std::vector<const PlannedRun*>> arrays;
  for (const auto& [resources, group] : groups) {
    for (size_t begin = 0; begin < group.size(); begin += static_cast<size_t>(most_elements)) {
      const size_t end = std::min(group.size(), begin + static_cast<size_t>(most_elements));
      arrays.emplace_back(group.begin() + static_cast<std::ptrdiff_t>(begin),
                          group.begin() + static_cast<std::ptrdiff_t>(end));
    }
  }
  return arrays;
}

std::string JobName(const SweepFiles& files) {
  std::array<char, 32> name;
  std::snprintf(name.data(), name.size(), "elastor-%016llx",
                static_cast<unsigned long long>(XXH3_64bits(files.root.data(), files.root.size())));
  return name.data();
}

std::string ArrayScript(const SweepFiles& files, int number) {
  return ArrayFile(files, number, ".sh");
}

std::string AdvanceScript(const SweepFiles& files) { return files.Slurm() + "/advance.sh"; }

Status CheckSlurm(const Sweep& sweep) {
  const Slurm& slurm = sweep.slurm();
  const int minutes = sweep.resources().minutes();
  if (minutes == 0 && !SetsTimeLimit(slurm)) {
    return UserError(
        "resources.minutes: 0; expected the time limit of an attempt, as "
        "--set=resources.minutes=60");
  }
  if (minutes > 0 && slurm.signal_seconds() >= minutes * kSecondsPerMinute) {
    return UserError(StrCat("slurm.signal_seconds: ", slurm.signal_seconds(),
                            "; expected less than resources.minutes, ", minutes, " minutes"));
  }
  return OkStatus();
}

std::vector<std::string> JobCommand(const PlannedRun& run, const SweepFiles& files,
                                    const std::string& trainer, const Slurm& slurm) {
  std::vector<std::string> command = TrainerCommand(run, files, trainer);
  std::vector<std::string> start;
  if (run.ranks > 1 && slurm.starter() == Slurm::SRUN) {
    start = {"srun", "--mpi=pmix", StrCat("--ntasks=", run.ranks),
             StrCat("--cpus-per-task=", run.threads), "--kill-on-bad-exit=1"};
  } else if (run.ranks > 1) {
    // A cut link is noticed within seconds; ranks that outlived their mpirun would hold the folder.
    start = QuietMpirun();
    start.insert(start.end(),
                 {"-np", std::to_string(run.ranks), "--map-by",
                  StrCat("ppr:", run.ranks / run.nodes, ":node"), "--bind-to", "none"});
    for (const std::string& word : KeepaliveOptions()) start.push_back(word);
    command = EndingWithItsParent(command);
  }
  start.insert(start.end(), command.begin(), command.end());
  return start;
}

std::vector<std::string> ArrayArguments(std::span<const PlannedRun* const> runs, int number,
                                        const SweepFiles& files, const Slurm& slurm) {
  const PlannedRun& run = *runs.front();
  std::vector<std::string> arguments =
      CommonArguments(files, slurm, ArrayFile(files, number, ".log"));
  std::string elements = StrCat("--array=0-", runs.size() - 1);
  if (slurm.throttle() > 0) StrAppend(&elements, "%", slurm.throttle());
  const int ranks_per_node = run.ranks / run.nodes;
  for (std::string argument :
       {elements, StrCat("--nodes=", run.nodes), StrCat("--ntasks=", run.ranks),
        StrCat("--ntasks-per-node=", ranks_per_node), StrCat("--cpus-per-task=", run.threads),
        std::string("--requeue"), StrCat("--signal=B:USR1@", SignalSeconds(slurm, run.minutes))}) {
    arguments.push_back(std::move(argument));
  }
  if (run.gpus > 0) arguments.push_back(StrCat("--gres=gpu:", run.gpus * ranks_per_node));
  if (run.memory_gb > 0) {
    const int megabytes = (run.memory_gb * kMegabytesPerGigabyte + run.nodes - 1) / run.nodes;
    arguments.push_back(StrCat("--mem=", megabytes, "M"));  // of a node
  }
  if (run.minutes > 0) arguments.push_back(StrCat("--time=", run.minutes));
  arguments.push_back(ArrayScript(files, number));
  return arguments;
}

std::vector<std::string> AdvanceArguments(const std::vector<std::string>& after, int minutes,
                                          const SweepFiles& files, const Slurm& slurm) {
  std::vector<std::string> arguments =
      CommonArguments(files, slurm, files.Slurm() + "/advance.log");
  std::string dependency = "--dependency=afterany";
  for (const std::string& id : after) dependency += ":" + id;
  for (std::string argument : {dependency, std::string("--nodes=1"), std::string("--ntasks=1"),
                               std::string("--cpus-per-task=1"), std::string("--requeue")}) {
    arguments.push_back(std::move(argument));
  }
  if (minutes > 0) arguments.push_back(StrCat("--time=", minutes));
  arguments.push_back(AdvanceScript(files));
  return arguments;
}

Status WriteScript(const std::string& path, const std::vector<std::string>& command,
                   const Slurm& slurm) {
  std::string text = "#!/bin/bash\n";
  for (const std::string& line : slurm.setup()) text += line + "\n";
  text += "exec";
  for (const std::string& word : command) text += " " + Quoted(word);
  return WriteFileAtomically(path, text + "\n");
}

Status WriteArray(std::span<const PlannedRun* const> runs, int number, const SweepFiles& files,
                  const std::string& trainer, const Slurm& slurm) {
  std::error_code error;
  const std::string launcher = std::filesystem::read_symlink("/proc/self/exe", error);
  ELASTOR_RETURN_IF_ERROR(
      WriteScript(ArrayScript(files, number),
                  {launcher, StrCat("--element=", number), "--output_dir=" + files.root}, slurm));
  std::string text;
  for (const PlannedRun* run : runs) {
    text +=
        Json{{"folder", run->folder}, {"command", JobCommand(*run, files, trainer, slurm)}}.dump() +
        "\n";
  }
  return WriteFileAtomically(ArrayFile(files, number, kList), text);
}

StatusOr<std::vector<OpenArray>> ReadOpenArrays(const SweepFiles& files) {
  ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesIn(files.Slurm()));
  std::vector<OpenArray> arrays;
  for (const std::string& name : names) {
    const int number = NumberOf(name, kList);
    if (number == 0) continue;
    OpenArray array{.number = number};
    if (const auto job = ReadFile(ArrayFile(files, number, ".job")); job.ok()) array.job = *job;
    const StatusOr<std::string> text = ReadFile(ArrayFile(files, number, kList));
    if (!text.ok()) continue;  // was closed just now
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      const std::optional<ArrayElement> element = ParseElement(line);
      array.folders.push_back(element ? element->folder : "");
    }
    arrays.push_back(std::move(array));
  }
  std::ranges::sort(arrays, {}, &OpenArray::number);
  return arrays;
}

StatusOr<int> NextArrayNumber(const SweepFiles& files) {
  ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesIn(files.Slurm()));
  int last = 0;
  for (const std::string& name : names) {
    last = std::max({last, NumberOf(name, kList), NumberOf(name, kOver)});
  }
  return last + 1;
}

Status RecordJob(const SweepFiles& files, int number, const std::string& job) {
  return WriteFileAtomically(ArrayFile(files, number, ".job"), job);
}

Status CloseArray(const SweepFiles& files, int number) {
  std::error_code error;
  std::filesystem::rename(ArrayFile(files, number, kList), ArrayFile(files, number, kOver), error);
  if (!error) return OkStatus();
  return MachineError(ArrayFile(files, number, kList) + ": rename: " + error.message());
}

StatusOr<std::optional<ArrayElement>> ReadElement(const SweepFiles& files, int number,
                                                  int element) {
  const std::string path = ArrayFile(files, number, kList);
  if (std::error_code none; std::filesystem::exists(ArrayFile(files, number, kOver), none)) {
    return std::optional<ArrayElement>();
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::istringstream lines(text);
  std::string line;
  for (int i = 0; i <= element && std::getline(lines, line); ++i) {
    if (i < element) continue;
    std::optional<ArrayElement> found = ParseElement(line);
    if (!found || found->command.empty()) break;
    return found;
  }
  return UserError(StrCat(path, ": line ", element + 1,
                          " is not there or damaged; expected the list that a launcher wrote"));
}

}  // namespace elastor
