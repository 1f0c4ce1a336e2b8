// The trainer's command line: flags in, exit code out (docs/use/command_line.md).
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "core/base/numerics.h"
#include "core/base/status.h"
#include "core/kernels/cpu/isa.h"
#include "core/process/command_line.h"
#include "core/process/job_process.h"
#include "core/process/standard_streams.h"
#include "core/process/stop_signals.h"
#include "gflags/gflags.h"
#include "glog/logging.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/compact.h"
#include "trainer/data/dataset.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/describe.h"
#include "trainer/experiment/make_options.h"
#include "trainer/experiment/overrides.h"
#include "trainer/fields/field_help.h"
#include "trainer/fields/field_rules.h"
#include "trainer/plot/plot_runs.h"
#include "trainer/run/inference.h"
#include "trainer/run/run_context.h"
#include "trainer/run/start_agreement.h"
#include "trainer/run/training.h"
#include "trainer/score/export_model.h"
#include "trainer/score/score_rows.h"
#include "trainer/supervise/hosts.h"
#include "trainer/supervise/supervisor.h"

DEFINE_string(experiment, "", "what to run: a text file of configs/proto/experiment.proto");
DEFINE_string(set, "", "path.to.field=value overrides a field of the experiment; may be repeated");
DEFINE_string(output_dir, "",
              "where the run is written; a new directory. With --mode=plot of one run its own "
              "report/ when left out");
DEFINE_string(
    mode, "train",
    "train; evaluate: a trained model's metrics; predict: also predictions.csv; spectra: its "
    "effective ranks; theory: what RankElastor's theorems say of it; projection: its metrics with "
    "the last tokens cut to lower ranks; ntk: the spectra of its neural tangent kernel, also "
    "without --model, at the initial weights; verify: every byte of a model or checkpoint against "
    "its manifest; compact: a checkpoint and the base that it may need as one full checkpoint, "
    "without --experiment; describe: print parameters, FLOPs, memory and shard plan as JSON; "
    "export: a "
    "model's ONNX graph, tables "
    "and encoding, without --experiment; plot: pictures and one HTML page of the training runs "
    "whose folders are the other arguments");
DEFINE_string(model, "",
              "with --mode=evaluate, predict, spectra, theory, projection, ntk, verify, compact or "
              "export: RUN/model or a folder of RUN/checkpoints");
DEFINE_string(
    input, "",
    "with --mode=predict: files of raw rows, separated by commas, or - for stdin, that the "
    "model scores by itself, without --experiment; the predictions go to stdout, or to "
    "--output_dir");
DEFINE_int64(max_bad_rows, -1,
             "with --input: more bad rows than this end the program; -1: as the schema says");
DEFINE_string(split, "validation", "what the model is evaluated on: validation or test");
DEFINE_bool(predictions, false,
            "with --mode=train: write predictions.csv of the evaluation at the end, too");
DEFINE_bool(per_sample, false,
            "with --mode=spectra: also spectra_samples.csv, the ranks of every row at every stage, "
            "some 20 bytes each");
DEFINE_int64(rows, 0,
             "with --mode=ntk: so many rows of the split; of more than 4096 only the largest "
             "eigenvalue and the density are found; 0: 1024. With --mode=describe: also the memory "
             "that mode ntk takes with as many");
DEFINE_bool(kernels, false,
            "with --mode=ntk: also ntk_LAYER.npy, the kernels, 8 bytes an entry each");
DEFINE_bool(tensorboard, false,
            "also write events.out.tfevents.*, what metrics.jsonl has for TensorBoard: --logdir is "
            "the output directory or one above it");
DEFINE_string(device, "cpu", "what computes: cpu, or cuda: one NVIDIA GPU a rank");
DEFINE_int32(
    ranks, 1,
    "with --mode=describe: the number of ranks to plan for; with --supervise: to start, by "
    "default as many as --hosts has room for");
DEFINE_bool(supervise, false,
            "start the ranks, and start them again from the last checkpoint, on the hosts that are "
            "left, when one is lost");
DEFINE_string(hosts, "", "with --supervise: where the ranks run, HOST:RANKS,HOST:RANKS");
DEFINE_string(hostfile, "", "with --supervise: a file with the same, a line HOST slots=RANKS each");
DEFINE_string(launch, "",
              "with --supervise: mpirun and its options, to which -np and --host are added; by "
              "default mpirun --oversubscribe --bind-to none, and the link to a host watched");
DEFINE_int32(max_restarts, 5,
             "with --supervise: so many starts in a row without a later checkpoint are the last");
DEFINE_bool(resume, false, "continue the run in --output_dir from its last checkpoint");
DEFINE_bool(list_models, false, "print the models that --set=model.kind can choose");

namespace elastor {
namespace {

constexpr char kSourceFile[] = "trainer/main.cc";

struct Invocation {
  std::string help;     // what --help or --list_models prints; empty: neither was given
  bool scores = false;  // raw rows
  std::vector<std::string> folders;  // of mode plot
  RunOptions options;
  std::vector<Host> hosts;  // with --supervise
};

// One flag with a fixed set of values.
Status CheckChoice(const std::string& flag, const std::string& found,
                   std::span<const char* const> choices) {
  std::string names;
  for (const char* choice : choices) {
    if (found == choice) return OkStatus();
    names += (names.empty() ? "" : " or ") + std::string(choice);
  }
  return UserError("--" + flag + "=" + found + ": expected " + names);
}

// What a mode needs besides an experiment and data.
struct ModeNeeds {
  Mode mode;
  const char* name;
  bool writes;  // into --output_dir
  bool reads;   // --model, which only mode ntk can do without
};
constexpr ModeNeeds kModes[] = {
    {Mode::kTrain, "train", true, false},
    {Mode::kEvaluate, "evaluate", true, true},
    {Mode::kPredict, "predict", true, true},
    {Mode::kSpectra, "spectra", true, true},
    {Mode::kTheory, "theory", true, true},
    {Mode::kProjection, "projection", true, true},
    {Mode::kNtk, "ntk", true, true},
    {Mode::kVerify, "verify", false, true},
    {Mode::kDescribe, "describe", false, false},
    {Mode::kCompact, "compact", true, true},
    {Mode::kExport, "export", true, true},
    {Mode::kPlot, "plot", false, false},
};

StatusOr<ModeNeeds> ChosenMode() {
  std::vector<const char*> names;
  for (const ModeNeeds& needs : kModes) {
    if (FLAGS_mode == needs.name) return needs;
    names.push_back(needs.name);
  }
  return CheckChoice("mode", FLAGS_mode, names);
}

// Of raw rows, which a model scores without an experiment and without other ranks.
Status CheckScoringFlags(Mode mode) {
  if (mode != Mode::kPredict) {
    return UserError("--input: only --mode=predict scores raw rows; found --mode=" + FLAGS_mode);
  }
  if (!FLAGS_experiment.empty()) {
    return UserError(
        "--experiment: --input scores by what the model's folder tells; expected none");
  }
  if (FLAGS_device != "cpu") {
    return UserError("--device=" + FLAGS_device + ": --input scores on the CPU; expected cpu");
  }
  if (FLAGS_model.empty()) {
    return UserError(
        "--model: missing; expected RUN/model or a folder of RUN/checkpoints of a training run");
  }
  if (FLAGS_max_bad_rows < -1) {
    return UserError("--max_bad_rows=" + std::to_string(FLAGS_max_bad_rows) +
                     ": expected 0 or more, or -1: as the schema says");
  }
  return CheckModelFlag(FLAGS_model);
}

// Of a job that is supervised.
Status CheckSupervision(const ModeNeeds& needs, const Experiment& experiment,
                        std::span<const Host> hosts) {
  if (IsStartedByMpi()) {
    return UserError(
        "--supervise: mpirun or srun started this process; expected none around it, for it starts "
        "the ranks itself");
  }
  if (needs.mode != Mode::kTrain) {
    return UserError("--supervise: only --mode=train can go on; found --mode=" + FLAGS_mode);
  }
  if (FLAGS_ranks < 1) {
    return UserError("--ranks=" + std::to_string(FLAGS_ranks) + ": expected 1 or more");
  }
  if (FLAGS_max_restarts < 0) {
    return UserError("--max_restarts=" + std::to_string(FLAGS_max_restarts) +
                     ": expected 0 or more");
  }
  const CheckpointConfig& checkpoint = experiment.checkpoint();
  if (checkpoint.disabled()) {
    return UserError(
        "checkpoint.disabled: true; expected false with --supervise, which goes on from them");
  }
  if (checkpoint.every_steps() == 0 && checkpoint.every_minutes() == 0 &&
      !WritesDeltas(checkpoint)) {
    return UserError(
        "checkpoint.every_steps: 0, and every_minutes, delta_every_steps and delta_every_minutes: "
        "0; expected one of them with --supervise, or a lost rank would cost the whole run");
  }
  if (const int room = RanksOf({hosts.begin(), hosts.end()}); room > 0 && FLAGS_ranks > room) {
    return UserError("--ranks=" + std::to_string(FLAGS_ranks) + ": the hosts have room for " +
                     std::to_string(room));
  }
  return OkStatus();
}

// The hosts of a job that is supervised, if any are named; FLAGS_ranks is then what they have room
// for, unless it was given.
StatusOr<std::vector<Host>> ReadHosts() {
  if (!FLAGS_supervise) {
    const char* const flag = !FLAGS_hosts.empty()      ? "--hosts"
                             : !FLAGS_hostfile.empty() ? "--hostfile"
                             : !FLAGS_launch.empty()   ? "--launch"
                                                       : nullptr;
    if (flag == nullptr) return std::vector<Host>();
    return UserError(std::string(flag) + ": is of a job that is supervised; expected --supervise");
  }
  if (!FLAGS_hosts.empty() && !FLAGS_hostfile.empty()) {
    return UserError("--hostfile: beside --hosts; expected one of them");
  }
  if (FLAGS_hosts.empty() && FLAGS_hostfile.empty()) return std::vector<Host>();
  StatusOr<std::vector<Host>> hosts =
      FLAGS_hosts.empty() ? ReadHostfile(FLAGS_hostfile) : ParseHosts(FLAGS_hosts);
  if (hosts.ok() && gflags::GetCommandLineFlagInfoOrDie("ranks").is_default) {
    FLAGS_ranks = RanksOf(*hosts);
  }
  return hosts;
}

// Whether a mode takes all that it needs to know from a folder: of a model or of runs.
bool ReadsFoldersAlone(Mode mode) {
  return mode == Mode::kVerify || mode == Mode::kCompact || mode == Mode::kExport ||
         mode == Mode::kPlot;
}

// The overrides of a mode that reads a model's folder alone: the number of threads, and how long
// ranks that compact a checkpoint may take.
Status CheckScoringOverrides(Mode mode, std::span<const std::string> overrides) {
  const bool compacts = mode == Mode::kCompact;
  for (const std::string& text : overrides) {
    if (text.starts_with("parallel.threads=") ||
        (compacts && (text.starts_with("parallel.start_seconds=") ||
                      text.starts_with("parallel.deadline_seconds=") ||
                      text.starts_with("parallel.watchdog_seconds=")))) {
      continue;
    }
    return UserError("--set=" + text + ": the model is taken as it was trained; expected " +
                     (compacts ? "parallel.threads, start_seconds, deadline_seconds or "
                                 "watchdog_seconds"
                               : "parallel.threads=N alone"));
  }
  return OkStatus();
}

Status CheckFlags(const ModeNeeds& needs) {
  ELASTOR_RETURN_IF_ERROR(ChooseIsa(std::getenv("ELASTOR_ISA")).status());
  constexpr const char* kSplits[] = {"validation", "test"};
  ELASTOR_RETURN_IF_ERROR(CheckChoice("split", FLAGS_split, kSplits));
  constexpr const char* kDevices[] = {"cpu", "cuda"};
  ELASTOR_RETURN_IF_ERROR(CheckChoice("device", FLAGS_device, kDevices));
  if (FLAGS_resume && needs.mode != Mode::kTrain) {
    return UserError("--resume: only --mode=train can continue; found --mode=" + FLAGS_mode);
  }
  if (FLAGS_predictions && needs.mode != Mode::kTrain) {
    return UserError("--predictions: only --mode=train writes them besides; found --mode=" +
                     FLAGS_mode);
  }
  if (FLAGS_per_sample && needs.mode != Mode::kSpectra) {
    return UserError("--per_sample: only --mode=spectra has ranks of samples; found --mode=" +
                     FLAGS_mode);
  }
  const bool describes = needs.mode == Mode::kDescribe;
  if ((FLAGS_rows != 0 && needs.mode != Mode::kNtk && !describes) ||
      (FLAGS_kernels && needs.mode != Mode::kNtk)) {
    return UserError(std::string(FLAGS_kernels ? "--kernels" : "--rows") +
                     ": only --mode=ntk has a kernel of rows; found --mode=" + FLAGS_mode);
  }
  if (FLAGS_rows != 0 && (FLAGS_rows < 2 || FLAGS_rows > kMaxNtkRows)) {
    return UserError("--rows=" + std::to_string(FLAGS_rows) + ": expected 2 to " +
                     std::to_string(kMaxNtkRows));
  }
  if (FLAGS_kernels && FLAGS_rows > kMaxNtkEigenvalues) {
    return UserError("--kernels: of " + std::to_string(FLAGS_rows) +
                     " rows there are none; expected --rows of at most " +
                     std::to_string(kMaxNtkEigenvalues));
  }
  if ((needs.mode == Mode::kNtk || needs.mode == Mode::kCompact) && FLAGS_device != "cpu") {
    return UserError("--device=" + FLAGS_device + ": --mode=" + FLAGS_mode +
                     " computes on the CPU; expected cpu");
  }
  if (FLAGS_tensorboard && (!needs.writes || ReadsFoldersAlone(needs.mode))) {
    return UserError("--tensorboard: --mode=" + FLAGS_mode + " writes no records");
  }
  if (!FLAGS_input.empty()) return CheckScoringFlags(needs.mode);
  if (FLAGS_max_bad_rows != -1) {
    return UserError("--max_bad_rows=" + std::to_string(FLAGS_max_bad_rows) +
                     ": is of raw rows; expected --input beside it");
  }
  if (ReadsFoldersAlone(needs.mode) && needs.mode != Mode::kVerify && !FLAGS_experiment.empty()) {
    const std::string whose =
        needs.mode == Mode::kPlot ? "the runs' folders tell" : "the model's folder tells";
    return UserError("--experiment: --mode=" + FLAGS_mode + " reads what " + whose +
                     "; expected none");
  }
  if (FLAGS_experiment.empty() && !ReadsFoldersAlone(needs.mode)) {
    return UserError("--experiment: missing; expected a file, or --flagfile=configs/scale.flags");
  }
  if (needs.writes && FLAGS_output_dir.empty()) {
    return UserError("--output_dir: missing; expected a new directory for the run");
  }
  if (needs.reads && FLAGS_model.empty() && needs.mode != Mode::kNtk) {
    return UserError(
        "--model: missing; expected RUN/model or a folder of RUN/checkpoints of a training run");
  }
  if (!FLAGS_model.empty() && needs.reads) ELASTOR_RETURN_IF_ERROR(CheckModelFlag(FLAGS_model));
  if (!needs.reads && !FLAGS_model.empty()) {
    return UserError("--model=" + FLAGS_model + ": --mode=" + FLAGS_mode +
                     " reads no model; expected evaluate, predict, spectra, theory, projection, "
                     "ntk, verify, compact or export");
  }
  return OkStatus();
}

// Everything that can be said without other ranks and without data.
StatusOr<Invocation> ReadInvocation(std::span<const std::string> arguments) {
  ELASTOR_ASSIGN_OR_RETURN(const CommandLine command_line,
                           ParseCommandLine(arguments, kSourceFile, Folders::kAny));
  Invocation invocation;
  if (FLAGS_list_models) invocation.help = ListModels();
  if (!command_line.help_topic.empty()) {
    ELASTOR_ASSIGN_OR_RETURN(invocation.help, HelpOn("Experiment", command_line.help_topic));
  } else if (command_line.help) {
    invocation.help = "trainer: trains models of the Elastor family and uses them\n" +
                      FlagsHelp(kSourceFile) +
                      "  --help=TOPIC  a group or field of the experiment, a model or a name, as "
                      "optimizer, learning_rate, RANK_ELASTOR\n";
  }
  if (!invocation.help.empty()) return invocation;
  ELASTOR_ASSIGN_OR_RETURN(const ModeNeeds needs, ChosenMode());
  invocation.folders = command_line.folders;
  if (needs.mode != Mode::kPlot && !invocation.folders.empty()) {
    return NoFlag(invocation.folders[0]);
  }
  ELASTOR_RETURN_IF_ERROR(CheckFlags(needs));
  Experiment experiment;
  invocation.scores = !FLAGS_input.empty();
  if (needs.mode == Mode::kPlot && !command_line.overrides.empty()) {
    return UserError("--set=" + command_line.overrides[0] +
                     ": --mode=plot shows runs as they are; expected none");
  }
  if (invocation.scores || needs.mode == Mode::kExport || needs.mode == Mode::kCompact) {
    ELASTOR_RETURN_IF_ERROR(CheckScoringOverrides(needs.mode, command_line.overrides));
    ELASTOR_RETURN_IF_ERROR(ApplyOverrides(command_line.overrides, &experiment));
  }
  if (ReadsFoldersAlone(needs.mode) || invocation.scores) {
    ResolveDefaults(&experiment);
    ELASTOR_RETURN_IF_ERROR(CheckFields("parallel.", experiment.parallel()));
  } else {
    ELASTOR_ASSIGN_OR_RETURN(experiment, LoadExperiment(FLAGS_experiment, command_line.overrides));
    if (const int64_t iterations = experiment.evaluation().iterations();
        needs.mode == Mode::kTrain && iterations > 0) {
      return UserError("evaluation.iterations: " + std::to_string(iterations) +
                       ": a training run evaluates the model that it trains; expected 0, or a mode "
                       "that reads --model");
    }
    if (needs.mode != Mode::kDescribe && experiment.data().path().empty()) {
      return UserError("data.path: empty; expected a prepared data set, --set=data.path=directory");
    }
  }
  ELASTOR_ASSIGN_OR_RETURN(invocation.hosts, ReadHosts());
  if (FLAGS_supervise) {
    ELASTOR_RETURN_IF_ERROR(CheckSupervision(needs, experiment, invocation.hosts));
  }
  invocation.options = {.mode = needs.mode,
                        .experiment = std::move(experiment),
                        .output_dir = FLAGS_output_dir,
                        .resume = FLAGS_resume,
                        .model_dir = FLAGS_model,
                        .split = FLAGS_split == "test" ? Split::kTest : Split::kValidation,
                        .predictions = FLAGS_predictions,
                        .per_sample = FLAGS_per_sample,
                        .ntk_rows = FLAGS_rows == 0 ? 1024 : FLAGS_rows,
                        .kernels = FLAGS_kernels,
                        .tensorboard = FLAGS_tensorboard,
                        .device = FLAGS_device == "cuda" ? RunDevice::kCuda : RunDevice::kCpu};
  return invocation;
}

// Collective.
Status PrintOnce(const std::string& text, Communicator& communicator) {
  return AgreeOnStatus(communicator, communicator.rank() == 0 ? WriteToStdout(text) : OkStatus());
}

Status PrintDescription(const RunOptions& options, Communicator& communicator) {
  DatasetInfo info = AssumedData(options.experiment.data().shape());
  if (const std::string& path = options.experiment.data().path(); !path.empty()) {
    ELASTOR_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset, Dataset::Open(path));
    info = dataset->info();
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::string text,
                           Describe(options.experiment, info, FLAGS_ranks, FLAGS_rows));
  return PrintOnce(text, communicator);
}

Status ScoreInput(const RunOptions& options, Communicator& communicator) {
  if (communicator.size() > 1) {
    return UserError("--input: " + std::to_string(communicator.size()) +
                     " ranks; expected one, whose work --set=parallel.threads=N shares");
  }
  ScoreRowsOptions score = {.model_dir = options.model_dir,
                            .inputs = {},
                            .output_dir = options.output_dir,
                            .threads = options.experiment.parallel().threads(),
                            .max_bad_rows = FLAGS_max_bad_rows};
  std::istringstream inputs(FLAGS_input);
  for (std::string path; std::getline(inputs, path, ',');) score.inputs.push_back(path);
  return ScoreRows(score);
}

Status Plot(const Invocation& invocation, Communicator& communicator) {
  if (communicator.size() > 1) {
    return UserError("--mode=plot: " + std::to_string(communicator.size()) +
                     " ranks; expected one");
  }
  return PlotRuns(invocation.folders, FLAGS_output_dir);
}

Status PrintVerification(const RunOptions& options, Communicator& communicator) {
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata metadata,
                           VerifyCheckpoint(options.model_dir, communicator));
  const char* contents = metadata.contents == Contents::kState ? "training state" : "model weights";
  return PrintOnce(options.model_dir + ": whole\n  contents: " + contents +
                       "\n  step: " + std::to_string(metadata.control.step()) +
                       "\n  state digest: " + metadata.state_digest +
                       "\n  numerics: " + metadata.numerics + "\n",
                   communicator);
}

Status Compact(const RunOptions& options, Communicator& communicator) {
  ELASTOR_ASSIGN_OR_RETURN(
      const CheckpointMetadata metadata,
      CompactCheckpoint(options.model_dir, options.output_dir,
                        options.experiment.parallel().threads(), communicator));
  return PrintOnce(options.output_dir + ": written, needs no other folder\n  step: " +
                       std::to_string(metadata.control.step()) +
                       "\n  state digest: " + metadata.state_digest + "\n",
                   communicator);
}

// Whether the ranks were started with the same flags, but for what may differ between hosts: the
// model's path and that of the experiment, which is compared itself.
Status AgreeOnFlags(const Invocation& invocation, Communicator& communicator) {
  const std::pair<const char*, std::string> flags[] = {
      {"--help", invocation.help.substr(0, invocation.help.find('\n'))},
      {"--mode", FLAGS_mode},
      {"--output_dir", FLAGS_output_dir},
      {"--resume", FLAGS_resume ? "true" : "false"},
      {"--model", FLAGS_model.empty() ? "not given" : "given"},
      {"--input", FLAGS_input},
      {"--max_bad_rows", std::to_string(FLAGS_max_bad_rows)},
      {"--split", FLAGS_split},
      {"--predictions", FLAGS_predictions ? "true" : "false"},
      {"--per_sample", FLAGS_per_sample ? "true" : "false"},
      {"--rows", std::to_string(FLAGS_rows)},
      {"--kernels", FLAGS_kernels ? "true" : "false"},
      {"--tensorboard", FLAGS_tensorboard ? "true" : "false"},
      {"--device", FLAGS_device},
      {"--ranks", std::to_string(FLAGS_ranks)},
      {"--supervise", FLAGS_supervise ? "true" : "false"},
      {"--hosts", FLAGS_hosts},
      {"--hostfile", FLAGS_hostfile},
      {"--launch", FLAGS_launch},
      {"--max_restarts", std::to_string(FLAGS_max_restarts)},
  };
  for (const auto& [name, value] : flags) {
    ELASTOR_RETURN_IF_ERROR(AgreeOnText(communicator, name, value));
  }
  return OkStatus();
}

// A user error or a divergence is agreed on: all ranks return the same status, in step, so that
// they can leave in order. A machine error may be one rank's alone; the job then ends without
// another collective.
Status Run(const StatusOr<Invocation>& invocation, Communicator& communicator) {
  ELASTOR_RETURN_IF_ERROR(AgreeOnProgram(communicator));
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, invocation.status()));
  ELASTOR_RETURN_IF_ERROR(AgreeOnFlags(invocation.value(), communicator));
  if (const std::string& help = invocation.value().help; !help.empty()) {
    return PrintOnce(help, communicator);
  }
  RunOptions options = invocation.value().options;
  if (options.mode == Mode::kPlot) return Plot(invocation.value(), communicator);
  ELASTOR_RETURN_IF_ERROR(AgreeOnExperiment(options.experiment, communicator));
  std::string device = "cpu";
  const bool computes = options.mode != Mode::kDescribe && options.mode != Mode::kVerify &&
                        options.mode != Mode::kCompact && options.mode != Mode::kExport;
  if (computes) {
    ELASTOR_ASSIGN_OR_RETURN(device, options.device == RunDevice::kCuda
                                         ? OpenCudaDevice(communicator)
                                         : OpenCpu(options.experiment, communicator));
  }
  options.numerics = NumericsFingerprint(device);
  ELASTOR_RETURN_IF_ERROR(AgreeOnText(communicator, "the numerics fingerprint", options.numerics));
  ELASTOR_RETURN_IF_ERROR(AgreeOnGoingOn(communicator));
  if (options.mode != Mode::kTrain) ExitOnStopSignals(/*speaks=*/communicator.rank() == 0);
  if (options.mode == Mode::kVerify) return PrintVerification(options, communicator);
  if (options.mode == Mode::kCompact) return Compact(options, communicator);
  const bool describes = options.mode == Mode::kDescribe;
  ELASTOR_RETURN_IF_ERROR(
      ValidateRanks(options.experiment, describes ? FLAGS_ranks : communicator.size()));
  if (describes) return PrintDescription(options, communicator);
  if (options.mode == Mode::kExport) {
    return AgreeOnStatus(communicator, communicator.rank() == 0
                                           ? ExportModel(options.model_dir, options.output_dir)
                                           : OkStatus());
  }
  if (invocation.value().scores) return ScoreInput(options, communicator);
  return options.mode == Mode::kTrain ? RunTraining(options, communicator)
                                      : RunInference(options, communicator);
}

// The ranks get the arguments as they are, and after them what makes them ranks.
StatusOr<int> SuperviseJob(const Invocation& invocation,
                           const std::vector<std::string>& arguments) {
  SuperviseOptions options = {.trainer = {std::filesystem::read_symlink("/proc/self/exe")},
                              .output_dir = FLAGS_output_dir,
                              .ranks = FLAGS_ranks,
                              .hosts = invocation.hosts,
                              .launch = {},
                              .max_restarts = FLAGS_max_restarts,
                              .parallel = invocation.options.experiment.parallel()};
  options.trainer.insert(options.trainer.end(), arguments.begin(), arguments.end());
  for (const char* flag : {"--nosupervise", "--ranks=1", "--hosts=", "--hostfile=", "--launch="}) {
    options.trainer.push_back(flag);
  }
  std::istringstream words(FLAGS_launch);
  for (std::string word; words >> word;) options.launch.push_back(word);
  if (options.launch.empty()) {
    options.launch = {"mpirun", "--oversubscribe", "--bind-to", "none"};
    for (const std::string& word : KeepaliveOptions()) options.launch.push_back(word);
  }
  return Supervise(options);
}

void PrintError(const Status& status) { WriteToStderr("trainer: " + status.message() + "\n"); }

int Main(int argc, char** argv) {
  RememberStopSignals();
  PrepareStandardStreams();
  // Quiet unless something is wrong; --minloglevel=0 tells more.
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_WARNING;
  google::InitGoogleLogging(argv[0]);

  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const StatusOr<Invocation> invocation = ReadInvocation(arguments);
  if (invocation.ok() && invocation.value().help.empty() && FLAGS_supervise) {
    const StatusOr<int> exit_code = SuperviseJob(invocation.value(), arguments);
    if (exit_code.ok()) return *exit_code;
    PrintError(exit_code.status());
    return static_cast<int>(exit_code.status().code());
  }
  CommunicatorOptions communicator_options;
  communicator_options.terminated = Terminated;
  if (invocation.ok() && invocation.value().help.empty()) {
    const ParallelConfig& parallel = invocation.value().options.experiment.parallel();
    communicator_options.start_seconds = parallel.start_seconds();
    communicator_options.deadline_seconds = parallel.deadline_seconds();
    communicator_options.watchdog_seconds = parallel.watchdog_seconds();
  }
  StatusOr<std::unique_ptr<Communicator>> world = MakeWorldCommunicator(communicator_options);
  if (!world.ok()) {
    PrintError(world.status());
    return static_cast<int>(world.status().code());
  }
  Communicator& communicator = **world;

  const Status status = Run(invocation, communicator);
  // All ranks return an agreed status; of others the peers may be gone.
  const bool alone = status.code() == StatusCode::kMachine && !status.agreed();
  if (!status.ok() && (alone || communicator.rank() == 0)) PrintError(status);
  // The outcome stands: a launcher that ends the last ranks because the first have left changes it
  // no more.
  RememberStopSignals();
  const int exit_code = static_cast<int>(status.code());
  if (status.ok()) return exit_code;
  if (alone) {
    // No collective call any more, MPI_Finalize included. The launcher ends the rest of the job.
    communicator.Abandon();
    _exit(exit_code);
  }
  // Nobody leaves before it is told.
  const Status left = communicator.Barrier(Phase::kSetup);
  if (!left.ok()) _exit(exit_code);
  return exit_code;
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) { return elastor::Main(argc, argv); }
