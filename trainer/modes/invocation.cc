#include "trainer/modes/invocation.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

#include "collective/communicator.h"
#include "core/base/text.h"
#include "core/kernels/cpu/isa.h"
#include "core/process/build_info.h"
#include "core/process/command_line.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/data/dataset.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/overrides.h"
#include "trainer/fields/field_help.h"
#include "trainer/fields/field_rules.h"
#include "trainer/modes/flags.h"
#include "trainer/modes/mode_rows.h"
#include "trainer/modes/supervision.h"
#include "trainer/records/run_files.h"
#include "trainer/records/run_reader.h"
#include "trainer/run/inference.h"

namespace elastor {
namespace {

// Refuses a flag whose value is not one of `choices`.
Status CheckChoice(const std::string& flag, const std::string& found,
                   std::span<const char* const> choices) {
  std::string names;
  for (const char* choice : choices) {
    if (found == choice) return OkStatus();
    names += (names.empty() ? "" : " or ") + std::string(choice);
  }
  return UserError("--" + flag + "=" + found + ": expected " + names);
}

// The names of the modes that a row's property selects, "a, b or c".
template <typename Which>
std::string ModeNames(const char* last, Which which) {
  std::vector<std::string> names;
  for (const Mode* mode : Modes()) {
    if (which(*mode)) names.push_back(mode->name);
  }
  const std::string end = names.back();
  names.pop_back();
  return names.empty() ? end : Join(names, ", ") + last + end;
}

// A flag that only some modes take.
struct ModeFlag {
  const char* name;
  bool given;
  const char* only;  // "continue": only those modes can
};

// Refuses flags that the mode does not take.
Status CheckModeFlags(const Mode& mode) {
  const ModeFlag flags[] = {
      {"resume", FLAGS_resume, "can continue"},
      {"continue", !FLAGS_continue.empty(), "can continue"},
      {"predictions", FLAGS_predictions, "writes them besides"},
      {"logits", FLAGS_logits, "writes predictions"},
      {"per_sample", FLAGS_per_sample, "has ranks of samples"},
      {"kernels", FLAGS_kernels, "has a kernel of rows"},
      {"rows", FLAGS_rows != 0, "has a kernel of rows"},
      {"supervise", FLAGS_supervise, "can go on"},
      {"export", !FLAGS_export.empty(), "draws pictures"},
      {"split", FLAGS_split != "validation", "reads one"},
      {"input", !FLAGS_input.empty(), "scores raw rows"},
      {"machine", !FLAGS_machine.empty(), "predicts"},
      {"ranks_per_host", FLAGS_ranks_per_host != 0, "predicts"},
      {"scaling", FLAGS_scaling, "predicts"},
      {"advise", FLAGS_advise, "predicts"},
  };
  const auto takes = [](const Mode& mode, const char* name) {
    return std::ranges::any_of(mode.flags,
                               [&](const char* flag) { return strcmp(flag, name) == 0; });
  };
  for (const ModeFlag& flag : flags) {
    if (!flag.given || takes(mode, flag.name)) continue;
    const std::string modes =
        flag.name == std::string("input")
            ? "predict"
            : ModeNames(" and ", [&](const Mode& other) { return takes(other, flag.name); });
    return UserError(StrCat("--", flag.name, ": only --mode=", modes, " ", flag.only,
                            "; found --mode=", mode.name));
  }
  if (FLAGS_ranks_per_host < 0) {
    return UserError(StrCat("--ranks_per_host=", FLAGS_ranks_per_host, ": expected 0 or more"));
  }
  if (FLAGS_logits && &mode == &kTrain && !FLAGS_predictions) {
    return UserError("--logits: a column of predictions.csv; expected --predictions beside it");
  }
  if (FLAGS_tensorboard && !takes(mode, "tensorboard")) {
    return UserError(StrCat("--tensorboard: --mode=", mode.name, " writes no records"));
  }
  if (FLAGS_ranks != 1 && !FLAGS_supervise && !takes(mode, "ranks")) {
    return UserError(StrCat("--ranks=", FLAGS_ranks, ": --mode=", mode.name,
                            " starts no ranks by itself; expected mpirun -np ", FLAGS_ranks,
                            " before the command",
                            takes(mode, "supervise") ? ", or --supervise beside it" : ""));
  }
  if (FLAGS_max_bad_rows != -1 && !takes(mode, "max_bad_rows")) {
    return UserError(StrCat("--max_bad_rows=", FLAGS_max_bad_rows,
                            ": is of raw rows; expected --input beside it"));
  }
  const bool draws_nothing = &mode == &kDescribe && !FLAGS_scaling;
  if (!FLAGS_output_dir.empty() && !mode.writes && (!takes(mode, "output_dir") || draws_nothing)) {
    return UserError(StrCat("--output_dir=", FLAGS_output_dir, ": --mode=", mode.name,
                            " writes no files; expected none"));
  }
  return OkStatus();
}

// Refuses values that no mode takes.
Status CheckValues(const Mode& mode) {
  constexpr const char* kSplits[] = {"validation", "test", "train"};
  // A training run takes its last evaluation for its result.
  const size_t splits = &mode == &kTrain ? 2 : std::size(kSplits);
  ELASTOR_RETURN_IF_ERROR(CheckChoice("split", FLAGS_split, std::span(kSplits).first(splits)));
  constexpr const char* kDevices[] = {"cpu", "cuda"};
  ELASTOR_RETURN_IF_ERROR(CheckChoice("device", FLAGS_device, kDevices));
  constexpr const char* kFormats[] = {"csv", "json"};
  if (!FLAGS_export.empty()) {
    ELASTOR_RETURN_IF_ERROR(CheckChoice("export", FLAGS_export, kFormats));
  }
  if (FLAGS_rows != 0 && (FLAGS_rows < 2 || FLAGS_rows > kMaxNtkRows)) {
    return UserError(StrCat("--rows=", FLAGS_rows, ": expected 2 to ", kMaxNtkRows));
  }
  if (FLAGS_kernels && FLAGS_rows > kMaxNtkEigenvalues) {
    return UserError(StrCat("--kernels: of ", FLAGS_rows,
                            " rows there are none; expected --rows of at most ",
                            kMaxNtkEigenvalues));
  }
  if ((mode.cpu_alone || mode.source != Mode::Source::kDataSet) && FLAGS_device != "cpu") {
    return UserError(StrCat("--device=", FLAGS_device, ": --mode=", mode.name,
                            " computes on the CPU; expected cpu"));
  }
  if (FLAGS_max_bad_rows < 0 && !gflags::GetCommandLineFlagInfoOrDie("max_bad_rows").is_default) {
    return UserError(StrCat("--max_bad_rows=", FLAGS_max_bad_rows,
                            ": expected 0 or more; left out: as the schema says"));
  }
  return OkStatus();
}

// Refuses a mode without the files and folders that it needs, or with others.
Status CheckSources(const Mode& mode) {
  if (&mode == &kScoreRows && !FLAGS_experiment.empty()) {
    return UserError(
        "--experiment: --input scores by what the model's folder tells; expected none");
  }
  if (ReadsFolders(mode) && !FLAGS_experiment.empty()) {
    return UserError(StrCat("--experiment: --mode=", mode.name, " reads what the ",
                            mode.source == Mode::Source::kRuns ? "runs' folders" : "model's folder",
                            mode.source == Mode::Source::kRuns ? " tell" : " tells",
                            "; expected none"));
  }
  if (!FLAGS_continue.empty() && !FLAGS_experiment.empty()) {
    return UserError(
        "--experiment: --continue takes the experiment of its run; expected none, and changes by "
        "--set");
  }
  // A model or a run tells what it was trained with.
  const bool told =
      mode.model == Mode::Model::kNeeded || !FLAGS_model.empty() || !FLAGS_continue.empty();
  if (FLAGS_experiment.empty() && !ReadsFolders(mode) && !told) {
    return UserError("--experiment: missing; expected a file, or --flagfile=configs/scale.flags");
  }
  if (mode.writes && FLAGS_output_dir.empty()) {
    return UserError("--output_dir: missing; expected a new directory for the run");
  }
  if (mode.model == Mode::Model::kNeeded && FLAGS_model.empty()) {
    return UserError(
        "--model: missing; expected RUN/model or a folder of RUN/checkpoints of a training run");
  }
  if (mode.model == Mode::Model::kNone && !FLAGS_model.empty()) {
    const std::string modes =
        ModeNames(" or ", [](const Mode& other) { return other.model != Mode::Model::kNone; });
    return UserError(StrCat("--model=", FLAGS_model, ": --mode=", mode.name,
                            " reads no model; expected ", modes));
  }
  return FLAGS_model.empty() ? OkStatus() : CheckModelFlag(FLAGS_model);
}

StatusOr<const Mode*> ChosenMode() {
  std::vector<const char*> names;
  for (const Mode* mode : Modes()) {
    names.push_back(mode->name);
    if (FLAGS_mode != mode->name) continue;
    return mode == &kPredict && !FLAGS_input.empty() ? &kScoreRows : mode;
  }
  return CheckChoice("mode", FLAGS_mode, names);
}

// Refuses overrides of a mode that reads a model's folder alone: the model is taken as it was
// trained. `parallel`: the settings below parallel. that may be changed.
Status CheckParallelOverrides(std::span<const std::string> overrides,
                              std::span<const char* const> parallel) {
  for (const std::string& text : overrides) {
    const bool allowed = std::ranges::any_of(parallel, [&](const char* setting) {
      return text.starts_with(StrCat("parallel.", setting, "="));
    });
    if (allowed) continue;
    std::string expected = StrCat("parallel.", parallel[0], parallel.size() == 1 ? "=N alone" : "");
    for (size_t i = 1; i < parallel.size(); ++i) {
      StrAppend(&expected, i + 1 < parallel.size() ? ", " : " or ", parallel[i]);
    }
    return UserError("--set=" + text + ": the model is taken as it was trained; expected " +
                     expected);
  }
  return OkStatus();
}

// REQUIRES: CheckValues accepts --split.
Split ChosenSplit() {
  if (FLAGS_split == SplitName(Split::kTrain)) return Split::kTrain;
  return FLAGS_split == SplitName(Split::kTest) ? Split::kTest : Split::kValidation;
}

// Returns the experiment that --model was trained with, as LoadExperiment does.
StatusOr<Experiment> ExperimentOfModel(std::span<const std::string> overrides) {
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata metadata, ReadCheckpointMetadata(FLAGS_model));
  ELASTOR_ASSIGN_OR_RETURN(const Experiment stored,
                           ParseExperiment(metadata.experiment, FLAGS_model + ": experiment"));
  ELASTOR_ASSIGN_OR_RETURN(Experiment experiment, CompleteStored(stored));
  ELASTOR_RETURN_IF_ERROR(ApplyOverrides(overrides, &experiment));
  ELASTOR_RETURN_IF_ERROR(ValidateExperiment(WithAbsolutePaths(experiment)));
  return experiment;
}

// Returns the experiment of a new run that goes on from the last state of --continue: that run's
// with the overrides, the state, and a name that tells the state unless an override has another.
StatusOr<Experiment> ExperimentThatGoesOn(std::span<const std::string> overrides) {
  const std::string checkpoints = FLAGS_continue + "/" + kCheckpointsFolder;
  ELASTOR_ASSIGN_OR_RETURN(const std::string path, LastCheckpoint(checkpoints));
  if (path.empty()) {
    return UserError("--continue=" + FLAGS_continue + ": has no checkpoint in " +
                     kCheckpointsFolder + "/; expected the folder of a run that left its state");
  }
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata metadata, ReadCheckpointMetadata(path));
  ELASTOR_ASSIGN_OR_RETURN(Experiment experiment, ReadRunExperiment(FLAGS_continue));
  constexpr size_t kDigits = 8;
  experiment.set_name(experiment.name() + "-after-" + metadata.state_digest.substr(0, kDigits));
  ContinuedFromConfig* from = experiment.mutable_training()->mutable_continued_from();
  from->set_path(path);
  from->set_state_digest(metadata.state_digest);
  ELASTOR_RETURN_IF_ERROR(ApplyOverrides(overrides, &experiment));
  ELASTOR_RETURN_IF_ERROR(ValidateExperiment(WithAbsolutePaths(experiment)));
  return experiment;
}

// Returns the experiment of the mode: the one that the command line names, that of its run or
// model, or defaults where a folder tells the rest.
StatusOr<Experiment> ReadExperiment(const Mode& mode, std::span<const std::string> overrides) {
  if (!ReadsFolders(mode)) {
    ELASTOR_ASSIGN_OR_RETURN(Experiment experiment,
                             !FLAGS_continue.empty() ? ExperimentThatGoesOn(overrides)
                             : FLAGS_experiment.empty()
                                 ? ExperimentOfModel(overrides)
                                 : LoadExperiment(FLAGS_experiment, overrides));
    if (const int64_t iterations = experiment.evaluation().iterations();
        &mode == &kTrain && iterations > 0) {
      return UserError(StrCat("evaluation.iterations: ", iterations,
                              ": a training run evaluates the model that it trains; expected 0, or "
                              "a mode that reads --model"));
    }
    if (mode.source == Mode::Source::kDataSet && experiment.data().path().empty()) {
      return UserError("data.path: empty; expected a prepared data set, --set=data.path=directory");
    }
    return experiment;
  }
  if (mode.parallel.empty() && !overrides.empty()) {
    return UserError(StrCat("--set=", overrides[0], ": --mode=", mode.name,
                            mode.source == Mode::Source::kRuns ? " shows runs as they are"
                                                               : " takes the folder as it is",
                            "; expected none"));
  }
  Experiment experiment;
  if (!mode.parallel.empty()) {
    ELASTOR_RETURN_IF_ERROR(CheckParallelOverrides(overrides, mode.parallel));
    ELASTOR_RETURN_IF_ERROR(ApplyOverrides(overrides, &experiment));
  }
  ResolveDefaults(&experiment);
  ELASTOR_RETURN_IF_ERROR(CheckFields("parallel.", experiment.parallel()));
  return experiment;
}

std::string Help() {
  std::string text = "trainer: trains models of the Elastor family and uses them\n" +
                     FlagsHelp(kFlagsFile) +
                     "  --help=TOPIC  a group or field of the experiment, a model or a name, as "
                     "optimizer, learning_rate, RANK_ELASTOR\n\nmodes, the first without --mode:\n";
  for (const Mode* mode : Modes()) text += Format("  %-11s %s\n", mode->name, mode->help);
  return text;
}

}  // namespace

StatusOr<Invocation> ReadInvocation(std::span<const std::string> arguments) {
  ELASTOR_ASSIGN_OR_RETURN(CommandLine command_line,
                           ParseCommandLine(arguments, kFlagsFile, Folders::kAny));
  Invocation invocation;
  if (FLAGS_list_models) invocation.help = ListModels();
  if (!command_line.help_topic.empty()) {
    ELASTOR_ASSIGN_OR_RETURN(invocation.help, HelpOn("Experiment", command_line.help_topic));
  } else if (command_line.help) {
    invocation.help = Help();
  } else if (command_line.version) {
    invocation.help = VersionText("trainer") + "MPI: " + MpiLibrary() + "\n";
  }
  if (!invocation.help.empty()) return invocation;
  ELASTOR_ASSIGN_OR_RETURN(const Mode* const mode, ChosenMode());
  invocation.mode = mode;
  if (mode->source != Mode::Source::kRuns && !command_line.folders.empty()) {
    return NoFlag(command_line.folders[0]);
  }
  ELASTOR_RETURN_IF_ERROR(ChooseIsa(std::getenv("ELASTOR_ISA")).status());
  ELASTOR_RETURN_IF_ERROR(CheckModeFlags(*mode));
  ELASTOR_RETURN_IF_ERROR(CheckValues(*mode));
  ELASTOR_ASSIGN_OR_RETURN(invocation.hosts, ReadHosts());
  ELASTOR_RETURN_IF_ERROR(CheckSources(*mode));
  ELASTOR_ASSIGN_OR_RETURN(Experiment experiment, ReadExperiment(*mode, command_line.overrides));
  if (FLAGS_supervise) {
    ELASTOR_RETURN_IF_ERROR(CheckSupervision(experiment, invocation.hosts));
  }
  invocation.call = {
      .options = {.mode = mode->name,
                  .experiment = std::move(experiment),
                  .output_dir = FLAGS_output_dir,
                  .resume = FLAGS_resume,
                  .model_dir = FLAGS_model,
                  .split = ChosenSplit(),
                  .predictions = FLAGS_predictions,
                  .logit = FLAGS_logits ? LogitColumn::kThere : LogitColumn::kLeftOut,
                  .per_sample = FLAGS_per_sample,
                  .tensorboard = FLAGS_tensorboard,
                  .device = FLAGS_device == "cuda" ? RunDevice::kCuda : RunDevice::kCpu},
      .folders = std::move(command_line.folders)};
  return invocation;
}

}  // namespace elastor
