// A campaign of faults. Every run is a job of the trainer on 2 to 8 ranks that is disturbed by one
// fault or two (faults.cc), perhaps again after that, and resumed on 1, 2, 3, 5 or 8 ranks until it
// ends. It must end as an undisturbed run: the same digest, the same records; no job may hang, and
// none may end otherwise than its fault allows.
//
//   bazel run //tests/faults:campaign -- --runs=100 --seed=7
//
// docs/results/reliability.md. Exit code 1 after a failure, 2 after a mistake of who starts it.
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "gflags/gflags.h"
#include "tests/faults/disturbed_run.h"
#include "tests/faults/faults.h"
#include "tests/faults/job.h"
#include "tests/faults/memory_group.h"
#include "tests/faults/subject.h"
#include "tests/faults/tally.h"

DEFINE_int64(runs, 20, "disturbed runs");
DEFINE_int64(first, 0, "the index of the first one: parts of a campaign can run side by side");
DEFINE_uint64(seed, 1, "of faults, moments, victims and numbers of ranks");
DEFINE_int64(only, -1, "the run of this index alone, as the whole campaign has it");
DEFINE_string(
    faults, "",
    "kinds of faults to draw from, separated by commas; empty: all that the machine allows");
DEFINE_int32(ranks, 0, "of every first job; 0: drawn from 2, 3, 4, 5 and 8");
DEFINE_string(scale_data, "",
              "Criteo, prepared: then every --scale_every-th run is configs/scale.textproto on it");
DEFINE_int64(scale_every, 10, "see --scale_data");
DEFINE_int64(supervise_every, 4,
             "every so manyth run is supervised: its jobs are trainer --supervise; 0: none");
DEFINE_double(hang_seconds, 90, "a job that lives longer hangs");
DEFINE_string(
    work, "",
    "a folder for all files, whose path is short; empty: one in the system's for temporary files");
DEFINE_string(trainer, "", "the program that is disturbed");
DEFINE_string(prepare, "", "the program that makes the data set");
DEFINE_string(layer, "", "the shared library of faulty_system.cc");
DEFINE_bool(verbose, false, "tell every job");

namespace elastor {
namespace {

namespace fs = std::filesystem;

constexpr char kSchema[] = R"(
  name: "tiny" layout: SYNTHETIC split { train: 0.8 validation: 0.1 test: 0.1 }
  synthetic { rows: 4000 seed: 1 numeric_fields: 2 categorical_fields: 3 ids_per_field: 300 }
)";
// Plateaus, best weights and dropout, so that all of a state matters.
constexpr char kExperiment[] = R"(
  model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 dropout: 0.1 } }
  embedding { width: 4 init_stddev: 0.1 }
  optimizer { learning_rate: 0.02 clip_norm: 0.5 dense_l2: 1e-4 embedding_l2: 1e-4 }
  training {
    batch_size: 64 epochs: 2 log_every_steps: 1 eval_every_steps: 20
    schedule { warmup_steps: 10 decay: COSINE final_share: 0.1 plateau_factor: 0.7 plateau_patience: 2 }
    monitor { best_weights: true early_stop_patience: 50 }
  }
  spectrum { samples: 32 every_steps: 40 }
  checkpoint { every_steps: 5 }
  parallel { virtual_shards: 16 }
)";

std::string Absolute(const std::string& path) {
  return fs::absolute(path).lexically_normal().string();
}

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

// What Open MPI needs to know, and where it leaves what killed jobs do not remove.
class OpenMpiFolders {
 public:
  OpenMpiFolders() {
    const std::map<std::string, std::string> variables = {
        {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
        {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {"HWLOC_HIDE_ERRORS", "2"},
        {"HWLOC_COMPONENTS", "-gl,-pci,-linux:pci"},
        {"TMPDIR", sockets_},
        {"OMPI_MCA_btl_vader_backing_directory", memory_}};
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    for (const std::string& folder : {sockets_, memory_}) fs::create_directories(folder);
  }
  ~OpenMpiFolders() {
    for (const std::string& folder : {sockets_, memory_}) fs::remove_all(folder);
  }

 private:
  const std::string name_ = "/elastor_faults." + std::to_string(getpid());
  const std::string sockets_ = "/tmp" + name_ + ".mpi";  // their paths must be short
  const std::string memory_ = "/dev/shm" + name_;
};

bool CanLimitMemory() {
  const MemoryGroup group;
  if (group.path().empty()) return false;
  group.Remove();
  return true;
}

// The names of --faults; none: all.
std::set<std::string> AskedFaults() {
  std::set<std::string> asked;
  std::istringstream names(FLAGS_faults);
  for (std::string name; std::getline(names, name, ',');) asked.insert(name);
  return asked;
}

class Campaign {
 public:
  explicit Campaign(std::string work) : work_(std::move(work)) {}

  int Run() {
    Make();
    ChooseFaults();
    const int64_t first = FLAGS_only < 0 ? FLAGS_first : FLAGS_only;
    const int64_t runs = FLAGS_only < 0 ? FLAGS_runs : 1;
    for (int64_t index = first; index < first + runs; ++index) RunOne(index);
    tally_.Print();
    return failures_ == 0 ? 0 : 1;
  }

 private:
  void Make() {
    fs::create_directories(work_);
    WriteText(work_ + "/tiny.textproto", kExperiment);
    WriteText(work_ + "/schema.textproto", kSchema);
    const std::string command = FLAGS_prepare + " --schema=" + work_ +
                                "/schema.textproto --output_dir=" + work_ + "/data >/dev/null";
    CHECK_EQ(std::system(command.c_str()), 0) << command;
    const Subject::Programs programs = {FLAGS_trainer, FLAGS_layer};
    subjects_.push_back(
        std::make_unique<Subject>("tiny", work_ + "/tiny.textproto", work_ + "/data",
                                  /*every_steps=*/5, work_, programs, FLAGS_hang_seconds));
    if (FLAGS_scale_data.empty()) return;
    subjects_.push_back(std::make_unique<Subject>("scale", Absolute("configs/scale.textproto"),
                                                  Absolute(FLAGS_scale_data), /*every_steps=*/10,
                                                  work_, programs, FLAGS_hang_seconds));
  }

  static bool Hosts(const std::string& work, const std::string& probe) {
    const std::string command =
        "tests/faults/virtual_hosts.sh " + work + " " + probe + " >/dev/null 2>&1";
    return geteuid() == 0 && std::system(command.c_str()) == 0;
  }

  // What a fault needs that the machine lacks; null: nothing.
  const char* Lacking(const Fault& fault) const {
    for (const auto& [need, here, lacks] : means_) {
      if ((fault.needs & need) != 0 && !here) return lacks;
    }
    return nullptr;
  }

  void ChooseFaults() {
    // Mounts of this process alone, which go with it.
    const bool mounts = geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
                        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    means_ = {{kSmallDisk, mounts, "no mounts here"},
              {kHosts, Hosts(work_, "probe"), "no network namespaces with tc here"},
              {kDelays, Hosts(work_, "probe_delay"), "no TAP interfaces here"},
              {kMemoryGroup, CanLimitMemory(), "no control group of memory can be made here"}};
    const std::set<std::string> asked = AskedFaults();
    for (const Fault& fault : Faults()) {
      if (!asked.empty() && !asked.contains(fault.name)) continue;
      if (const char* const lacking = Lacking(fault)) {
        std::printf("skipped: %s, %s\n", fault.name, lacking);
      } else {
        faults_.push_back(&fault);
      }
    }
    CHECK(!faults_.empty()) << "--faults: none is possible here";
  }

  // The faults of a job: one, and now and then another that may come with it.
  JobFaults Draw(Random& random) const {
    JobFaults faults = {faults_[random() % faults_.size()]};
    const std::string name = faults[0]->name;
    std::vector<const Fault*> others;
    for (const FaultPair& pair : FaultPairs()) {
      if (pair.first != name && pair.second != name) continue;
      const Fault* const other = &FaultNamed(pair.first == name ? pair.second : pair.first);
      if (std::find(faults_.begin(), faults_.end(), other) != faults_.end())
        others.push_back(other);
    }
    if (random() % 4 == 0 && !others.empty()) faults.push_back(others[random() % others.size()]);
    return faults;
  }

  void RunOne(int64_t index) {
    Random random(FLAGS_seed * 1'000'003 + static_cast<uint64_t>(index));
    const bool scale = subjects_.size() > 1 && index % FLAGS_scale_every == 0;
    // Of the runs on --scale_data, too.
    const bool supervised =
        FLAGS_supervise_every > 0 && index % FLAGS_supervise_every == FLAGS_supervise_every / 2;
    const std::string folder = work_ + "/" + std::to_string(index);
    fs::create_directories(folder);
    std::deque<JobFaults> faults;
    bool small_disk = false;
    // One disturbed job mostly, three at most.
    size_t wanted = 1 + random() % 5 / 3;
    wanted += random() % 5 / 4;
    while (faults.size() < wanted) {
      faults.push_back(Draw(random));
      for (const Fault* fault : faults.back()) small_disk |= (fault->needs & kSmallDisk) != 0;
    }
    const std::string run = folder + "/run";
    if (small_disk) {
      fs::create_directories(run);
      const std::string size = "size=" + std::to_string(kSmallDiskBytes);
      CHECK_EQ(mount("tmpfs", run.c_str(), "tmpfs", 0, size.c_str()), 0);
    }
    const std::string wrong = DisturbedRun({.index = static_cast<uint64_t>(index),
                                            .run = run,
                                            .work = folder,
                                            .first_ranks = FLAGS_ranks,
                                            .supervised = supervised,
                                            .faults = faults,
                                            .verbose = FLAGS_verbose},
                                           subjects_[scale ? 1 : 0].get(), &tally_, &random)
                                  .ToItsEnd();
    if (small_disk) umount2(run.c_str(), MNT_DETACH);
    if (wrong.empty()) {
      fs::remove_all(folder);
    } else {
      ++failures_;
      std::printf("FAILED %s  again: --seed=%llu --only=%lld; kept: %s\n", wrong.c_str(),
                  static_cast<unsigned long long>(FLAGS_seed), static_cast<long long>(index),
                  folder.c_str());
    }
    std::fflush(stdout);
  }

  const std::string work_;
  std::vector<std::unique_ptr<Subject>> subjects_;
  struct Means {
    unsigned need;
    bool here;
    const char* lacks;
  };
  std::vector<Means> means_;
  std::vector<const Fault*> faults_;
  Tally tally_;
  int64_t failures_ = 0;
};

// A user's mistake.
int Refuse(const std::string& line) {
  std::fprintf(stderr, "campaign: %s\n", line.c_str());
  return 2;
}

int Main() {
  AdoptOrphans();
  const std::map<std::string, std::string*> programs = {
      {"trainer", &FLAGS_trainer}, {"prepare", &FLAGS_prepare}, {"layer", &FLAGS_layer}};
  for (const auto& [name, path] : programs) {
    // As /proc tells it: a supervisor starts what it is itself.
    std::error_code error;
    const fs::path found = fs::canonical(*path, error);
    if (error) return Refuse("--" + name + "=" + *path + ": " + error.message());
    *path = found;
  }
  std::set<std::string> unknown = AskedFaults();
  std::string known;
  for (const Fault& fault : Faults()) {
    unknown.erase(fault.name);
    known += std::string(" ") + fault.name;
  }
  if (!unknown.empty())
    return Refuse("--faults: found '" + *unknown.begin() + "'; expected some of" + known);
  const std::string work =
      FLAGS_work.empty()
          ? (fs::temp_directory_path() / ("elastor_faults." + std::to_string(getpid()))).string()
          : Absolute(FLAGS_work);
  if (fs::exists(work))
    return Refuse("--work=" + work + ": is there already; expected a new folder");
  const OpenMpiFolders folders;
  const int code = Campaign(work).Run();
  if (code == 0) fs::remove_all(work);
  return code;
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a campaign that is cut off has told what it found
  elastor::StartLog(argv[0]);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return elastor::Main();
}
