// A campaign of damages. Makes a small prepared set, a model and a stopped run with checkpoints,
// the last a delta, then, --damages times, damages one file of these three folders (every file has
// its turn: small ones as often as large ones) and does what uses it: a fresh run on the data, an
// evaluation of the model, a resumed run. Each must be refused with one line (exit code 2 or 3), or
// give the very numbers of the undamaged folder; never other numbers, a crash or a hang. By hand:
//   bazel run -c opt //tests/system:damage_test -- --damages=2000 --seed=7
// Last line: damages=2000 detected=... harmless=... silent=0 crashed=0
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "core/base/file.h"
#include "core/base/numerics.h"
#include "gflags/gflags.h"
#include "glog/logging.h"
#include "tests/faults/byte_damage.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/experiment/config.h"
#include "trainer/prepare/prepare.h"
#include "trainer/prepare/schema_file.h"
#include "trainer/run/inference.h"
#include "trainer/run/training.h"

DEFINE_int64(damages, 150, "how many");
DEFINE_uint64(seed, 1, "of the choice of files, places and kinds of damage");
DEFINE_string(work, "", "a folder for all files; empty: one of the system's for temporary files");
DEFINE_bool(verbose, false, "tell every damage");

namespace elastor {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kDeadlineSeconds = 120;  // of one run

constexpr char kSchema[] = R"(
  name: "clicks" rows_per_block: 64
  split { train: 0.6 validation: 0.2 test: 0.2 }
  fields { name: "click" type: LABEL }
  fields { name: "price" type: NUMERIC transform: LOG2_STANDARDIZE }
  fields { name: "age" type: NUMERIC }
  fields { name: "item" type: CATEGORICAL }
  fields { name: "seen" type: SEQUENCE shares: "item" max_length: 3 }
  fields { name: "place" type: CATEGORICAL encoding: HASH buckets: 20 }
  fields { name: "user" type: CATEGORICAL }
  fields { name: "who" type: GROUP column: "place" }
  fields { name: "weight" type: WEIGHT column: "age" }
)";
constexpr char kExperiment[] = R"(
  model { mlp { hidden: 4 } }
  embedding { width: 2 }
  # The first evaluation stays the best one, so that its weights are needed at the end.
  training {
    batch_size: 64 epochs: 2 log_every_steps: 1
    monitor { best_weights: true min_improvement: 100 }
  }
  evaluation { slice_by: "item" slice_values: 3 }
  spectrum { disabled: true }
  parallel { virtual_shards: 4 }
)";

std::string Rows(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&random](uint64_t n) { return static_cast<int>(random() % n); };
  std::string text;
  for (int row = 0; row < 500; ++row) {
    const int item = below(12);
    text += std::to_string(below(12) < item ? 1 : 0) + "\t" + std::to_string(below(1000)) + "." +
            std::to_string(below(10)) + "\t" + std::to_string(1 + below(5)) + "\ti" +
            std::to_string(item) + "\ti" + std::to_string(below(12)) + "|i" +
            std::to_string(below(14)) + "\tp" + std::to_string(below(30)) + "\tu" +
            std::to_string(row) + "\n";
  }
  return text;
}

std::string FileBytes(const std::string& path) {
  const StatusOr<std::string> bytes = ReadFile(path);
  CHECK(bytes.ok()) << bytes.status().message();
  return *bytes;
}

void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Where a run with checkpoints is stopped first.
constexpr int kStoppedAt = 6;

// What a run of the trainer came to.
struct Outcome {
  int code = 0;      // exit code; negative: killed by that signal
  std::string text;  // the error's line, or the numbers
};

// The digest and all metrics but rates, times and paths. Which checkpoints were written, and what
// was measured where the first part ended, depends on where a run went on.
std::string NumbersOf(const std::string& run) {
  std::string numbers;
  std::istringstream summary(FileBytes(run + "/summary.json"));
  for (std::string line; std::getline(summary, line);) {
    if (line.find("\"state_digest\"") != line.npos) numbers += line + "\n";
  }
  std::istringstream metrics(FileBytes(run + "/metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);) {
    if (line.find("\"event\":\"checkpoint\"") != line.npos) continue;
    if (line.find("\"step\":" + std::to_string(kStoppedAt) + ",") != line.npos) continue;
    line.resize(std::min(line.find(",\"samples_per_s\""), line.size()));
    line.resize(std::min(line.find(",\"path\""), line.size()));
    numbers += line + "\n";
  }
  return numbers;
}

// The campaign's folders below one.
class Campaign {
 public:
  explicit Campaign(const std::string& work) : work_(work) {}

  void Make() {
    WriteBytes(Path("experiment.textproto"), kExperiment);
    MakeAll("", 1);
    // The like, whole and of another day: what files may be taken from.
    MakeAll("other_", 2);
    for (const Target target : {kData, kModel, kCheckpoints}) {
      expected_[target] = Use(target);
      CHECK_EQ(expected_[target].code, 0) << expected_[target].text;
    }
  }

  enum Target { kData, kModel, kCheckpoints };
  std::string FolderOf(Target target, const std::string& prefix = "") const {
    return target == kData    ? Path(prefix + "data")
           : target == kModel ? Path(prefix + "run/model")
                              : Path(prefix + "stopped/checkpoints");
  }
  Outcome Use(Target target) const {
    fs::remove_all(Path("out"));
    if (target == kCheckpoints) fs::copy(Path("stopped"), Path("out"), fs::copy_options::recursive);
    const std::string data = "data.path=" + Path("data");
    return InChild([&] {
      if (target == kModel) return Infer({data});
      return target == kData ? Train("out", {data, "checkpoint.disabled=true"}, false)
                             : Train("out", {data}, true);
    });
  }
  const Outcome& expected(Target target) const { return expected_.at(target); }

 private:
  std::string Path(const std::string& name) const { return work_ + "/" + name; }

  void MakeAll(const std::string& prefix, uint64_t seed) {
    WriteBytes(Path(prefix + "rows.tsv"), Rows(seed));
    PrepareOptions options;
    options.schema = std::move(ParseSchema(kSchema, "schema")).value();
    options.inputs = {Path(prefix + "rows.tsv")};
    options.output_dir = Path(prefix + "data");
    const Outcome prepared = InChild([&] { return Prepare(options).status(); });
    CHECK_EQ(prepared.code, 0) << prepared.text;
    const std::string data = "data.path=" + Path(prefix + "data");
    for (const char* run : {"run", "stopped"}) {
      std::vector<std::string> overrides = {data};
      if (*run == 's') {
        // A full one at step 4, after nearly all of the first epoch's users.
        overrides.insert(overrides.end(), {"training.max_steps=" + std::to_string(kStoppedAt),
                                           "checkpoint.every_steps=4",
                                           "checkpoint.delta_every_steps=2", "checkpoint.keep=1"});
      }
      const Outcome made = InChild([&] { return Train(prefix + run, overrides, false); });
      CHECK_EQ(made.code, 0) << made.text;
    }
    const std::string checkpoints = FolderOf(kCheckpoints, prefix);
    for (const int64_t step : {4, kStoppedAt}) {
      const auto metadata = ReadCheckpointMetadata(checkpoints + "/" + CheckpointName(step));
      CHECK(metadata.ok()) << metadata.status().message();
      CHECK_EQ(metadata->base.has_value(), step == kStoppedAt);
    }
  }

  RunOptions Options(Mode mode, const std::string& output,
                     const std::vector<std::string>& overrides) const {
    const StatusOr<Experiment> experiment = LoadExperiment(Path("experiment.textproto"), overrides);
    CHECK(experiment.ok()) << experiment.status().message();
    RunOptions options;
    options.mode = mode;
    options.experiment = *experiment;
    options.output_dir = Path(output);
    options.split = Split::kTest;
    options.numerics = NumericsFingerprint("cpu");
    return options;
  }
  Status Train(const std::string& output, const std::vector<std::string>& overrides,
               bool resume) const {
    RunOptions options = Options(Mode::kTrain, output, overrides);
    options.resume = resume;
    const auto self = MakeSelfCommunicator();
    return RunTraining(options, *self);
  }
  Status Infer(const std::vector<std::string>& overrides) const {
    RunOptions options = Options(Mode::kEvaluate, "out", overrides);
    options.model_dir = FolderOf(kModel);
    const auto self = MakeSelfCommunicator();
    return RunInference(options, *self);
  }

  // Runs in a process of its own, which may crash or hang.
  template <typename Run>
  Outcome InChild(const Run& run) const {
    const std::string line = Path("line");
    fs::remove(line);
    std::fflush(stdout);
    const pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
      alarm(kDeadlineSeconds);
      CHECK(std::freopen("/dev/null", "w", stdout) != nullptr);
      CHECK(std::freopen(Path("stderr").c_str(), "w", stderr) != nullptr);
      const Status status = run();
      WriteBytes(line, status.message());
      _exit(static_cast<int>(status.code()));
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) return {-WTERMSIG(status), FileBytes(Path("stderr"))};
    const int code = WEXITSTATUS(status);
    if (!fs::exists(line)) return {code, FileBytes(Path("stderr"))};
    const bool has_numbers = code == 0 && fs::exists(Path("out/summary.json"));
    return {code, has_numbers ? NumbersOf(Path("out")) : FileBytes(line)};
  }

  const std::string work_;
  std::map<Target, Outcome> expected_;
};

// The files of a folder and of those in it.
std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Damages files, and puts them back.
class Damage {
 public:
  Damage(Campaign::Target target, const Campaign& campaign, std::mt19937_64* random)
      : random_(*random) {
    const std::string folder = campaign.FolderOf(target);
    const std::vector<std::string> files = FilesIn(folder);
    while (saved_.empty()) {
      const std::string& file = files[Below(files.size())];
      std::string bytes = FileBytes(file);
      const std::string whole = bytes;
      const std::string& beside = files[Below(files.size())];
      const std::string other = campaign.FolderOf(target, "other_") + file.substr(folder.size());
      switch (Below(14)) {
        case 0:
          if (!fs::exists(other)) continue;
          bytes = FileBytes(other);
          what_ = "another set's ";
          break;
        case 1:
          saved_[beside] = FileBytes(beside);
          WriteBytes(beside, bytes);
          bytes = saved_[beside];
          what_ = "exchange " + beside + " and ";
          break;
        case 2:
          fs::remove(file);
          saved_[file] = whole;
          what_ = "remove " + file;
          return;
        default:
          what_ = DamageBytes(random_, &bytes);
      }
      if (bytes == whole) {
        saved_.clear();
        continue;
      }
      saved_[file] = whole;
      WriteBytes(file, bytes);
      what_ += file;
    }
  }
  ~Damage() {
    for (const auto& [file, bytes] : saved_) WriteBytes(file, bytes);
  }
  const std::string& what() const { return what_; }

 private:
  size_t Below(size_t n) { return random_() % n; }

  std::mt19937_64& random_;
  std::map<std::string, std::string> saved_;  // files as they were
  std::string what_;
};

bool IsOneLine(const std::string& text) {
  return !text.empty() && text.find('\n') == std::string::npos &&
         text.find("json.exception") == std::string::npos;
}

int Main() {
  std::string work = FLAGS_work;
  if (work.empty()) {
    const char* const given = std::getenv("TEST_TMPDIR");
    work = (given != nullptr ? fs::path(given) : fs::temp_directory_path()).string() +
           "/elastor_damage";
  }
  fs::remove_all(work);
  fs::create_directories(work);
  Campaign campaign(work);
  campaign.Make();
  std::mt19937_64 random(FLAGS_seed);
  int64_t detected = 0, harmless = 0, silent = 0, crashed = 0;
  for (int64_t i = 0; i < FLAGS_damages; ++i) {
    const auto target = static_cast<Campaign::Target>(random() % 3);
    const Damage damage(target, campaign, &random);
    const Outcome outcome = campaign.Use(target);
    const bool refused = (outcome.code == 2 || outcome.code == 3) && IsOneLine(outcome.text);
    const bool equal = outcome.code == 0 && outcome.text == campaign.expected(target).text;
    ++(refused ? detected : equal ? harmless : outcome.code == 0 ? silent : crashed);
    if (FLAGS_verbose || equal || !refused) {
      std::printf("%s %s: exit code %d%s\n",
                  refused             ? "detected"
                  : equal             ? "harmless"
                  : outcome.code == 0 ? "SILENT"
                                      : "CRASHED",
                  damage.what().c_str(), outcome.code,
                  outcome.code == 0 ? "" : (": " + outcome.text).c_str());
    }
  }
  std::printf("damages=%lld detected=%lld harmless=%lld silent=%lld crashed=%lld\n",
              static_cast<long long>(FLAGS_damages), static_cast<long long>(detected),
              static_cast<long long>(harmless), static_cast<long long>(silent),
              static_cast<long long>(crashed));
  fs::remove_all(work);
  return silent == 0 && crashed == 0 && detected > FLAGS_damages / 2 ? 0 : 1;
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_ERROR;
  google::InitGoogleLogging(argv[0]);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return elastor::Main();
}
