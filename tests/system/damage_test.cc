// A campaign of damages. Makes small prepared sets (of text, of images; and one of version 2), and
// of them models and stopped runs, whose checkpoints are full, a delta and its base, or compacted,
// by one rank and by two; then, --damages times, damages one file of one of these folders (every
// file has its turn: small ones as often as large ones) and does what uses it: a fresh run on the
// data; an evaluation of the model, predictions of the data set's rows or of raw ones; a resumed
// run; or a verification. Each must be refused with one line (exit code 2 or 3), or give the very
// numbers of the undamaged folder, every prediction among them; never other numbers, a crash or a
// hang. By hand:
//   bazel run -c opt //tests/system:damage_test -- --damages=2000 --seed=7
// Prints a table by kind of file. Last line: damages=2000 detected=... harmless=... silent=0
// crashed=0
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
#include <thread>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/numerics.h"
#include "gflags/gflags.h"
#include "tests/faults/byte_damage.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/compact.h"
#include "trainer/experiment/config.h"
#include "trainer/modes/mode_rows.h"
#include "trainer/prepare/prepare.h"
#include "trainer/prepare/schema_file.h"
#include "trainer/run/training.h"
#include "trainer/score/score_rows.h"

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
constexpr char kImageSchema[] = R"(
  name: "columns" layout: IDX rows_per_block: 32 split { train: 0.8 validation: 0.2 }
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
constexpr char kImageExperiment[] = R"(
  model { vit { patch: 2 width: 4 layers: 1 heads: 1 hidden: 4 } }
  embedding { width: 1 }
  training { batch_size: 32 monitor { metric: LOGLOSS } }
  spectrum { disabled: true }
  parallel { virtual_shards: 4 }
)";
// Of the set of version 2.
constexpr char kOldExperiment[] = R"(
  model { mlp { hidden: 4 } }
  embedding { width: 2 }
  training { batch_size: 32 epochs: 2 log_every_steps: 1 }
  spectrum { disabled: true }
  parallel { virtual_shards: 4 }
)";
constexpr char kOldData[] = "tests/system/stored_runs/data";

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

// Images of two by four pixels, a half of them bright, by the label; then their labels.
std::pair<std::string, std::string> Images(uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr int kCount = 120;
  std::string images({0, 0, 8, 3, 0, 0, 0, kCount, 0, 0, 0, 2, 0, 0, 0, 4});
  std::string labels({0, 0, 8, 1, 0, 0, 0, kCount});
  for (int i = 0; i < kCount; ++i) {
    const auto label = static_cast<int>(random() % 2);
    labels += static_cast<char>(label);
    for (int p = 0; p < 8; ++p) {
      images += static_cast<char>((p % 4 / 2 == label ? 150 : 20) + random() % 90);
    }
  }
  return {images, labels};
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

std::string BytesIfThere(const std::string& path) {
  return fs::exists(path) ? FileBytes(path) : "";
}

// The digest, all metrics but rates, times and paths, and every prediction. Which checkpoints were
// written, and what was measured where the first part ended, depends on where a run went on.
std::string NumbersOf(const std::string& run) {
  std::string numbers;
  std::istringstream summary(BytesIfThere(run + "/summary.json"));
  for (std::string line; std::getline(summary, line);) {
    if (line.find("\"state_digest\"") != line.npos) numbers += line + "\n";
  }
  std::istringstream metrics(BytesIfThere(run + "/metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);) {
    if (line.find("\"event\":\"checkpoint\"") != line.npos) continue;
    if (line.find("\"step\":" + std::to_string(kStoppedAt) + ",") != line.npos) continue;
    line.resize(std::min(line.find(",\"samples_per_s\""), line.size()));
    line.resize(std::min(line.find(",\"path\""), line.size()));
    numbers += line + "\n";
  }
  return numbers + BytesIfThere(run + "/predictions.csv") + BytesIfThere(run + "/verified");
}

enum class Use { kTrain, kResume, kEvaluate, kPredict, kScore, kVerify };
constexpr const char* kUseNames[] = {"train", "resume", "evaluate", "predict", "score", "verify"};

// What is damaged, and what then uses it. Folders that are named alike but for "other_" before it
// are the like, whole and of another day: what files may be taken from.
struct Target {
  std::string name = {};    // told, with the file's
  std::string folder = {};  // whose files are damaged
  std::string run = {};     // that is resumed
  std::string data = {};    // it is used with
  std::string experiment = {};
  int ranks = 1;  // that wrote it; as many at most use it
  std::vector<Use> uses = {};
};

// The campaign's folders below one.
class Campaign {
 public:
  explicit Campaign(const std::string& work) : work_(work) {}

  void Make() {
    WriteBytes(Path("text.textproto"), kExperiment);
    WriteBytes(Path("image.textproto"), kImageExperiment);
    WriteBytes(Path("old.textproto"), kOldExperiment);
    MakeAll("", 1);
    MakeAll("other_", 2);
    for (size_t t = 0; t < targets_.size(); ++t) {
      for (const Use use : targets_[t].uses) {
        for (int ranks = 1; ranks <= targets_[t].ranks; ++ranks) {
          const Outcome outcome = Run(t, use, ranks);
          CHECK_EQ(outcome.code, 0) << targets_[t].name << ": " << outcome.text;
          CHECK(!outcome.text.empty()) << targets_[t].name << ": no numbers";
          const Outcome& first = expected_.try_emplace({t, use}, outcome).first->second;
          CHECK_EQ(outcome.text, first.text) << targets_[t].name << " on " << ranks << " ranks";
        }
      }
    }
  }

  const std::vector<Target>& targets() const { return targets_; }
  std::string FolderOf(const Target& target, const std::string& prefix = "") const {
    return Path(prefix + target.folder);
  }
  Outcome Run(size_t index, Use use, int ranks) const {
    const Target& target = targets_[index];
    fs::remove_all(Path("out"));
    if (use == Use::kResume) {
      fs::copy(Path(target.run), Path("out"), fs::copy_options::recursive);
    }
    return InChild([&] {
      return OnRanks(ranks,
                     [&](Communicator& communicator) { return Make(target, use, communicator); });
    });
  }
  const Outcome& expected(size_t index, Use use) const { return expected_.at({index, use}); }

 private:
  std::string Path(const std::string& name) const { return work_ + "/" + name; }

  void MakeAll(const std::string& prefix, uint64_t seed) {
    WriteBytes(Path(prefix + "rows.tsv"), Rows(seed));
    MakeData(prefix + "data", kSchema, {Path(prefix + "rows.tsv")});
    const auto [images, labels] = Images(seed);
    WriteBytes(Path(prefix + "pixels"), images);
    WriteBytes(Path(prefix + "labels"), labels);
    MakeData(prefix + "images", kImageSchema, {Path(prefix + "pixels"), Path(prefix + "labels")});
    const bool first = prefix.empty();
    if (first) {
      fs::create_directory(Path("old_data"));
      for (const auto& entry : fs::directory_iterator(kOldData)) {
        WriteBytes(Path("old_data/" + entry.path().filename().string()), FileBytes(entry.path()));
      }
      MakeRun({.data = "old_data", .experiment = "old"}, "old_run", 1, Stopped());
      const auto add = [this](const std::string& name, const std::string& folder,
                              const std::string& experiment, const std::string& run, Use use) {
        targets_.push_back({.name = name,
                            .folder = folder,
                            .run = run,
                            .data = folder,
                            .experiment = experiment,
                            .uses = {use}});
      };
      add("data", "data", "text", "", Use::kTrain);
      add("images", "images", "image", "", Use::kTrain);
      add("data of version 2", "old_data", "old", "old_run", Use::kResume);
    }
    for (const int ranks : {1, 2}) {
      const std::string suffix = prefix + (ranks == 1 ? "one_" : "two_");
      const Target text = {.data = prefix + "data", .experiment = "text"};
      MakeRun(text, suffix + "run", ranks, {});
      MakeRun(text, suffix + "full", ranks, Stopped({"checkpoint.every_steps=6"}));
      // A full one at step 4, after nearly all of the first epoch's users.
      MakeRun(text, suffix + "delta", ranks,
              Stopped({"checkpoint.every_steps=4", "checkpoint.delta_every_steps=2"}));
      Compact(suffix + "delta", suffix + "compacted", ranks);
      if (!first) continue;
      Target target = {.name = "model",
                       .folder = suffix + "run/model",
                       .data = "data",
                       .experiment = "text",
                       .ranks = ranks,
                       .uses = {Use::kEvaluate, Use::kPredict, Use::kScore, Use::kVerify}};
      targets_.push_back(target);
      target.uses = {Use::kResume, Use::kVerify};
      for (const char* kind : {"full", "delta", "compacted"}) {
        target.name = std::string(kind) + " checkpoint";
        target.run = suffix + kind;
        target.folder = target.run + "/checkpoints";
        targets_.push_back(target);
      }
    }
  }

  void MakeData(const std::string& name, const char* schema,
                const std::vector<std::string>& inputs) const {
    PrepareOptions options;
    options.schema = std::move(ParseSchema(schema, "schema")).value();
    options.inputs = inputs;
    options.output_dir = Path(name);
    const Outcome prepared = InChild([&] { return Prepare(options).status(); });
    CHECK_EQ(prepared.code, 0) << prepared.text;
  }

  // The settings of a run that is stopped.
  static std::vector<std::string> Stopped(std::vector<std::string> settings = {}) {
    settings.insert(settings.end(),
                    {"training.max_steps=" + std::to_string(kStoppedAt), "checkpoint.keep=1"});
    return settings;
  }
  void MakeRun(const Target& target, const std::string& name, int ranks,
               const std::vector<std::string>& settings) const {
    const Outcome made = InChild([&] {
      return OnRanks(ranks, [&](Communicator& communicator) {
        RunOptions options = Options("train", target, settings);
        options.output_dir = Path(name);
        return RunTraining(options, communicator);
      });
    });
    CHECK_EQ(made.code, 0) << made.text;
  }
  // The run `from` with its last checkpoint, a delta, compacted.
  void Compact(const std::string& from, const std::string& to, int ranks) const {
    const std::string last = "/checkpoints/" + CheckpointName(kStoppedAt);
    const auto metadata = ReadCheckpointMetadata(Path(from + last));
    CHECK(metadata.ok()) << metadata.status().message();
    CHECK(metadata->base.has_value());
    fs::copy(Path(from), Path(to), fs::copy_options::recursive);
    for (const std::string& step : {CheckpointName(4), CheckpointName(kStoppedAt)}) {
      CHECK_GT(fs::remove_all(Path(to + "/checkpoints/" + step)), 0U);
    }
    const Outcome made = InChild([&] {
      return OnRanks(ranks, [&](Communicator& communicator) {
        return CompactCheckpoint(Path(from + last), Path(to + last), 1, communicator).status();
      });
    });
    CHECK_EQ(made.code, 0) << made.text;
  }

  RunOptions Options(const std::string& mode, const Target& target,
                     const std::vector<std::string>& settings) const {
    std::vector<std::string> overrides = settings;
    overrides.push_back("data.path=" + Path(target.data));
    const StatusOr<Experiment> experiment =
        LoadExperiment(Path(target.experiment + ".textproto"), overrides);
    CHECK(experiment.ok()) << experiment.status().message();
    RunOptions options;
    options.mode = mode;
    options.experiment = *experiment;
    options.output_dir = Path("out");
    options.model_dir = FolderOf(target);
    options.split = Split::kTest;
    options.numerics = NumericsFingerprint("cpu");
    return options;
  }

  // One rank's part of the use.
  Status Make(const Target& target, Use use, Communicator& communicator) const {
    switch (use) {
      case Use::kTrain:
        return RunTraining(Options("train", target, {"checkpoint.disabled=true"}), communicator);
      case Use::kResume: {
        RunOptions options = Options("train", target, {});
        options.resume = true;
        return RunTraining(options, communicator);
      }
      case Use::kEvaluate:
      case Use::kPredict: {
        const Mode& mode = use == Use::kPredict ? kPredict : kEvaluate;
        return mode.run({.options = Options(mode.name, target, {}), .folders = {}}, communicator);
      }
      case Use::kScore:
        if (communicator.rank() > 0) return OkStatus();
        return ScoreRows({.model_dir = FolderOf(target),
                          .inputs = {Path("rows.tsv")},
                          .output_dir = Path("out")});
      case Use::kVerify: {
        std::string folder = FolderOf(target);
        if (!target.run.empty()) folder += "/" + CheckpointName(kStoppedAt);
        ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata metadata,
                                 VerifyCheckpoint(folder, communicator));
        if (communicator.rank() > 0) return OkStatus();
        fs::create_directory(Path("out"));
        WriteBytes(Path("out/verified"), metadata.state_digest + " " + metadata.manifest_xxh3);
        return OkStatus();
      }
    }
    return OkStatus();
  }

  // Calls run(communicator) for every rank, each a thread of this process.
  template <typename Run>
  static Status OnRanks(int ranks, const Run& run) {
    if (ranks == 1) return run(*MakeSelfCommunicator());
    const auto communicators = MakeThreadCommunicators(ranks, {.deadline_seconds = 600});
    std::vector<Status> statuses(ranks);
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] { statuses[r] = run(*communicators[r]); });
    }
    for (std::thread& thread : threads) thread.join();
    return statuses[0];
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
    return {code, code == 0 ? NumbersOf(Path("out")) : FileBytes(line)};
  }

  const std::string work_;
  std::vector<Target> targets_;
  std::map<std::pair<size_t, Use>, Outcome> expected_;
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

// What kind of file it is: "model: manifest.json".
std::string KindOf(const Target& target, const std::string& file) {
  const fs::path path = file;
  const std::string name = path.filename();
  const std::string folder = path.parent_path().filename();
  if (folder.starts_with("best-")) return target.name + ": best weights";
  const std::string base = folder == CheckpointName(4) ? "its base's " : "";
  const bool embedding = name.starts_with("embedding-");
  const std::string type = folder == "vocabulary"        ? "vocabulary"
                           : path.extension() == ".rows" ? "rows"
                                                         : name;
  return target.name + ": " + base + (embedding ? "embedding" : type);
}

// Damages files, and puts them back.
class Damage {
 public:
  // other: a folder of the like.
  Damage(const Target& target, const std::string& folder, const std::string& other,
         std::mt19937_64* random)
      : random_(*random) {
    const std::vector<std::string> files = FilesIn(folder);
    while (saved_.empty()) {
      const std::string& file = files[Below(files.size())];
      std::string bytes = FileBytes(file);
      const std::string whole = bytes;
      const std::string& beside = files[Below(files.size())];
      const std::string like = other + file.substr(folder.size());
      kind_ = KindOf(target, file);
      switch (Below(14)) {
        case 0:
          if (!fs::exists(like)) continue;
          bytes = FileBytes(like);
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
  const std::string& kind() const { return kind_; }
  const std::string& what() const { return what_; }

 private:
  size_t Below(size_t n) { return random_() % n; }

  std::mt19937_64& random_;
  std::map<std::string, std::string> saved_;  // files as they were
  std::string kind_, what_;
};

bool IsOneLine(const std::string& text) {
  return !text.empty() && text.find('\n') == std::string::npos &&
         text.find("json.exception") == std::string::npos;
}

// What damages came to.
struct Counts {
  int64_t damages = 0, of_several_ranks = 0, detected = 0, harmless = 0, silent = 0, crashed = 0;
};

void PrintCounts(const std::map<std::string, Counts>& kinds) {
  std::printf("%-44s %8s %13s %8s %8s %6s %7s\n", "kind of file", "damages", "several ranks",
              "detected", "harmless", "silent", "crashed");
  for (const auto& [kind, counts] : kinds) {
    std::printf("%-44s", kind.c_str());
    for (const auto& [width, count] : {std::pair(9, counts.damages),
                                       {14, counts.of_several_ranks},
                                       {9, counts.detected},
                                       {9, counts.harmless},
                                       {7, counts.silent},
                                       {8, counts.crashed}}) {
      std::printf("%*lld", width, static_cast<long long>(count));
    }
    std::printf("\n");
  }
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
  std::map<std::string, Counts> kinds;
  Counts all;
  for (int64_t i = 0; i < FLAGS_damages; ++i) {
    const size_t index = random() % campaign.targets().size();
    const Target& target = campaign.targets()[index];
    const Use use = target.uses[random() % target.uses.size()];
    const int ranks = 1 + static_cast<int>(random() % target.ranks);
    const Damage damage(target, campaign.FolderOf(target), campaign.FolderOf(target, "other_"),
                        &random);
    const Outcome outcome = campaign.Run(index, use, ranks);
    const bool refused = (outcome.code == 2 || outcome.code == 3) && IsOneLine(outcome.text);
    const bool equal = outcome.code == 0 && outcome.text == campaign.expected(index, use).text;
    for (Counts* counts : {&kinds[damage.kind()], &all}) {
      ++counts->damages;
      counts->of_several_ranks += target.ranks > 1;
      ++(refused             ? counts->detected
         : equal             ? counts->harmless
         : outcome.code == 0 ? counts->silent
                             : counts->crashed);
    }
    if (FLAGS_verbose || !(refused || equal)) {
      std::printf("%s %s, %s on %d ranks: exit code %d%s\n",
                  refused             ? "detected"
                  : equal             ? "harmless"
                  : outcome.code == 0 ? "SILENT"
                                      : "CRASHED",
                  damage.what().c_str(), kUseNames[static_cast<int>(use)], ranks, outcome.code,
                  outcome.code == 0 ? "" : (": " + outcome.text).c_str());
    }
  }
  PrintCounts(kinds);
  std::printf("damages=%lld detected=%lld harmless=%lld silent=%lld crashed=%lld\n",
              static_cast<long long>(all.damages), static_cast<long long>(all.detected),
              static_cast<long long>(all.harmless), static_cast<long long>(all.silent),
              static_cast<long long>(all.crashed));
  fs::remove_all(work);
  return all.silent == 0 && all.crashed == 0 && all.detected > FLAGS_damages / 2 ? 0 : 1;
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  elastor::StartLog(argv[0]);
  gflags::SetCommandLineOption("minloglevel", "2");  // errors alone
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return elastor::Main();
}
