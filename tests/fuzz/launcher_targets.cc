#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/log.h"
#include "launcher/comparison/loss_and_gap.h"
#include "launcher/comparison/runs.h"
#include "launcher/plan.h"
#include "launcher/plan_file.h"
#include "launcher/run_command.h"
#include "launcher/run_folder.h"
#include "launcher/scaling_law/runs.h"
#include "launcher/slurm_array.h"
#include "launcher/slurm_client.h"
#include "launcher/spectra_report/runs.h"
#include "launcher/sweep_file.h"
#include "launcher/sweep_report/sweep_data.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/targets.h"
#include "trainer/plot/run_history.h"
#include "trainer/records/kept_metrics.h"
#include "trainer/records/metrics_csv.h"
#include "trainer/records/progress_reader.h"
#include "trainer/records/run_reader.h"
#include "trainer/supervise/hosts.h"
#include "trainer/supervise/mpirun_report.h"

namespace elastor {
namespace {

bool FuzzSweep(std::string_view bytes) {
  const StatusOr<Sweep> sweep = LoadSweep(FileOf("sweep.textproto", bytes), {});
  if (!sweep.ok()) return CheckOneLine(sweep.status());
  const std::string text = SweepText(*sweep);
  const StatusOr<Sweep> again = LoadSweep(FileOf("again.textproto", text), {});
  CHECK(again.ok()) << again.status().message() << "\n" << text;
  CHECK_EQ(SweepText(*again), text);
  return true;
}

// What a launcher reads of its runs: attempts, progress and results.
bool FuzzRunFolder(std::string_view bytes) {
  const Attempts attempts = ReadAttempts(FileOf("attempts.jsonl", bytes));
  CHECK_GE(attempts.started, 0);
  FileOf("metrics.jsonl", bytes);
  const RunProgress progress = ProgressReader(FuzzFolder()).Read();
  FileOf("summary.json", bytes);
  const StatusOr<std::optional<Summary>> summary = ReadSummary(FuzzFolder());
  return (summary.ok() || CheckOneLine(summary.status())) || progress.step > 0 ||
         attempts.started > 0;
}

// The stderr of mpirun, in one piece and in small ones.
bool FuzzMpirun(std::string_view bytes) {
  MpirunReport whole, pieces;
  std::string passed = whole.Pass(bytes);
  passed += whole.Rest();
  CHECK_LE(passed.size(), bytes.size() + 1);
  CHECK(whole.cause().find('\n') == std::string::npos);
  std::string in_pieces;
  for (; !bytes.empty(); bytes.remove_prefix(std::min<size_t>(bytes.size(), 5))) {
    in_pieces += pieces.Pass(bytes.substr(0, 5));
  }
  CHECK_EQ(in_pieces + pieces.Rest(), passed);
  CHECK_EQ(pieces.cause(), whole.cause());
  return !whole.cause().empty();
}

// The text of --hosts, and a file of hosts, without asking the network for their names.
bool FuzzHosts(std::string_view bytes) {
  const HostLookup lookup = [](const std::string& name) {
    return name.find("..") == name.npos ? "" : "unknown";
  };
  bool read = false;
  const std::string path = FileOf("hosts", bytes);
  for (const bool from_file : {false, true}) {
    const auto hosts =
        from_file ? ReadHostfile(path, lookup) : ParseHosts(std::string(bytes), lookup);
    if (!hosts.ok()) {
      CheckOneLine(hosts.status());
      continue;
    }
    read = true;
    CHECK_GE(RanksOf(*hosts), static_cast<int>(hosts->size()));
    CHECK_EQ(RanksOf(Fill(*hosts, 3)), std::min(RanksOf(*hosts), 3));
    if (from_file) continue;
    const auto again = ParseHosts(ToText(*hosts), lookup);
    CHECK(again.ok() && ToText(*again) == ToText(*hosts)) << ToText(*hosts);
  }
  return read;
}

// What squeue, sacct and scontrol print.
bool FuzzSlurm(std::string_view bytes) {
  const auto lines = std::ranges::count(bytes, '\n') + 1;
  const std::vector<SlurmJob> jobs = ParseSqueue(bytes);
  CHECK_LE(static_cast<int64_t>(jobs.size()), lines);
  for (const SlurmJob& job : jobs) job.IsAlive();
  const auto states = ParseSacct(bytes, "elastor");
  CHECK_LE(static_cast<int64_t>(states.size()), lines);
  return ParseMaxArraySize(bytes) > 0 || !jobs.empty() || !states.empty();
}

// A plan that is accepted is written and read again as it was, and its runs can be started.
bool FuzzPlan(std::string_view bytes) {
  static const SweepFiles kFiles = {FuzzFolder()};
  FileOf("plan.jsonl", bytes);
  const StatusOr<Plan> plan = ReadPlan(kFiles);
  if (!plan.ok()) return CheckOneLine(plan.status());
  std::vector<const PlannedRun*> runs;
  for (const PlannedRun& run : plan->runs) {
    CHECK(run.bytes() > 0 && run.cost() >= 0 && run.cores() > 0 && run.all_gpus() >= 0);
    Misfit(run, {.cores = {0}, .memory_bytes = 1});
    CHECK(!LocalCommand(run, kFiles, "trainer").empty());
    runs.push_back(&run);
  }
  for (const auto& array : GroupIntoArrays(runs, 2)) {
    CHECK(!ArrayArguments(array, 1, kFiles, Slurm()).empty());
  }
  std::string text[2];
  for (std::string& each : text) {
    const StatusOr<Plan> read = ReadPlan(kFiles);
    CHECK(read.ok()) << read.status().message();
    CHECK(WritePlan(*read, kFiles).ok());
    each = *ReadFile(kFiles.Plan());
  }
  CHECK_EQ(text[0], text[1]);
  return !runs.empty();
}

// The list of an array's elements.
bool FuzzArray(std::string_view bytes) {
  static const SweepFiles kFiles = [] {
    const SweepFiles files = {FuzzFolder()};
    std::filesystem::create_directory(files.Slurm());
    return files;
  }();
  FileOf("slurm/array-1.jsonl", bytes);
  const StatusOr<std::vector<OpenArray>> open = ReadOpenArrays(kFiles);
  CHECK(open.ok() && open->size() == 1);
  bool read = false;
  for (const int element : {0, 1, 2}) {
    const auto found = ReadElement(kFiles, 1, element);
    read |= found.ok() || CheckOneLine(found.status());
    CHECK(!found.ok() || (*found)->folder == (*open)[0].folders[element]);
  }
  return read;
}

// A sweep of one run, which is done, with all that the readers of runs want to find.
struct OneRun {
  SweepFiles files = {FuzzFolder() + "/sweep"};
  std::string name = "r-0123456789abcdef";
  std::string folder = files.Run(name);
  std::vector<std::string> folders = {folder};
  std::vector<std::string> names = {""};  // of the experiment

  OneRun() {
    std::filesystem::create_directories(folder);
    std::filesystem::create_directories(files.root + "/experiments");
    Plan plan;
    plan.name = "s";
    plan.columns = {"kind"};
    plan.runs = {{.folder = name, .model = "MLP", .columns = {"a"}}};
    CHECK(WritePlan(plan, files).ok());
    const std::string experiment =
        "name: 'm' model { mlp { hidden: [8, 8] } } embedding { width: 4 } "
        "training { batch_size: 64 max_steps: 9 }";
    CHECK(WriteFileAtomically(files.Experiment(name), experiment).ok());
    Write("experiment.textproto", experiment);
    WriteSummary(R"({"mode":"train","split":"validation","rows":4,"auc":1,"logloss":0.5,"steps":9,)"
                 R"("dense_parameters":9,"state_digest":"x","ranks":1,"isa":"v4"})");
    WriteMetrics(
        "{\"event\":\"eval\",\"split\":\"validation\",\"step\":9,\"scheduled\":true,"
        "\"logloss\":0.5,\"normalized_entropy\":0.9}\n");
    WritePredictions("index,label,probability\n0,1,0.9\n1,0,0.1\n2,1,0.8\n3,0,0.2\n");
  }
  void WriteSummary(std::string_view text) const { Write("summary.json", text); }
  void WriteMetrics(std::string_view text) const { Write("metrics.jsonl", text); }
  void WritePredictions(std::string_view text) const { Write("predictions.csv", text); }

 private:
  void Write(const std::string& file, std::string_view text) const {
    FileOf("sweep/runs/" + name + "/" + file, text);
  }
};

// Everybody who reads a run's folder. Whether somebody could.
bool ReadRun(const OneRun& run) {
  bool read = false;
  const auto note = [&](const auto& result) {
    read |= result.ok() || CheckOneLine(result.status());
  };
  for (const Metric metric : {Metric::kAuc, Metric::kNormalizedEntropy}) {
    note(ReadRunFolders(run.folders, metric));
  }
  note(ReadSpectraModels(run.folders));
  const StatusOr<LossAndGapRun> gaps = ReadLossAndGap(run.folder, 0);
  note(gaps);
  if (gaps.ok()) EnergyDistance({&*gaps, 1}, {&*gaps, 1});
  note(ReadSweepData(run.files));
  const auto histories = ReadRuns(run.folders);
  note(histories);
  if (histories.ok()) CHECK_GE((*histories)[0].steps(), 0);
  return read;
}

// Its metrics, also as a run that goes on keeps them.
bool FuzzMetrics(std::string_view bytes) {
  static const OneRun kRun;
  constexpr int64_t kStep = 9;
  const KeptMetrics kept = KeepMetrics(std::string(bytes), kStep);
  CHECK_EQ(KeepMetrics(kept.text, kStep).text, kept.text);
  CHECK(MetricsCsv(kept.text).starts_with(MetricsCsvHeader()));
  kRun.WriteMetrics(bytes);
  ReadRun(kRun);
  return !kept.text.empty();
}

// Its summary, and a comparison of it with itself.
bool FuzzSummary(std::string_view bytes) {
  static const OneRun kRun;
  kRun.WriteSummary(bytes);
  const auto compared = ReadComparedRuns(kRun.folders, kRun.names);
  if (!compared.ok()) CheckOneLine(compared.status());
  return ReadRun(kRun);
}

bool FuzzPredictions(std::string_view bytes) {
  static const OneRun kRun;
  kRun.WritePredictions(bytes);
  const auto compared = ReadComparedRuns(kRun.folders, kRun.names);
  return compared.ok() || CheckOneLine(compared.status());
}

// The points that a scaling law is fitted to.
bool FuzzPoints(std::string_view bytes) {
  const std::string path = FileOf("points.csv", bytes);
  bool read = false;
  for (const Metric metric : {Metric::kLogloss, Metric::kAuc, Metric::kNormalizedEntropy}) {
    const StatusOr<std::vector<RunFacts>> runs = ReadPoints(path, metric);
    read |= runs.ok() || CheckOneLine(runs.status());
    if (!runs.ok()) continue;
    const std::string names[] = {"samples"};
    const auto grouped = GroupRuns(*runs, names, /*single_seeds=*/true);
    if (!grouped.ok()) CheckOneLine(grouped.status());
  }
  return read;
}

constexpr FuzzTarget kLauncherTargets[] = {
    {"array", true, FuzzArray},
    {"hosts", true, FuzzHosts},
    {"metrics", true, FuzzMetrics},
    {"mpirun", false, FuzzMpirun},
    {"plan", true, FuzzPlan},
    {"points", true, FuzzPoints},
    {"predictions", true, FuzzPredictions},
    {"run_folder", true, FuzzRunFolder},
    {"slurm", false, FuzzSlurm},
    {"summary", true, FuzzSummary},
    {"sweep", true, FuzzSweep},
};

}  // namespace

std::span<const FuzzTarget> LauncherTargets() { return kLauncherTargets; }

}  // namespace elastor
