// prepare: raw files -> prepared data set (docs/use/data.md).

#include <gflags/gflags.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "core/base/exhausted.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/process/build_info.h"
#include "core/process/command_line.h"
#include "core/process/standard_streams.h"
#include "trainer/data/dataset.h"
#include "trainer/data/input_list.h"
#include "trainer/data/stdin_input.h"
#include "trainer/fields/field_help.h"
#include "trainer/prepare/guess/guess.h"
#include "trainer/prepare/prepare.h"
#include "trainer/prepare/progress_line.h"
#include "trainer/prepare/schema_file.h"
#include "trainer/prepare/synthetic/planted_log.h"

DEFINE_string(schema, "", "what the raw files look like (a Schema in protobuf text format)");
DEFINE_string(guess, "",
              "files of unknown layout, comma separated: print a schema for them, with what was "
              "found in their first 16 MiB as comments, and do nothing else");
DEFINE_string(label, "", "with --guess: the column that is the label, by its name, or as c3");
DEFINE_string(input, "",
              "raw files, plain, gzip or zstd, comma separated; may be given repeatedly. - is "
              "stdin");
DEFINE_string(validation_input, "",
              "raw files of the validation split; --input is then training data alone");
DEFINE_string(test_input, "", "raw files of the test split; --input is then training data alone");
DEFINE_bool(unlabelled_test, false,
            "the files of --test_input have no columns of labels: rows to predict alone");
DEFINE_string(vocabulary_from, "",
              "a prepared data set: use its vocabularies, means and deviations");
DEFINE_bool(grow, false,
            "append values that the vocabularies of --vocabulary_from lack to them: ids that are "
            "there stay");
DEFINE_string(output_dir, "", "where the prepared data set goes; must not exist yet, or be empty");
DEFINE_int32(
    threads, 0,
    "threads to use; 0: one a core that this process may use. The output does not depend on "
    "it");
DEFINE_double(memory_gib, 3, "memory to use, in GiB. The output does not depend on it");
DEFINE_int64(segment_mib, 512,
             "MiB of text that a thread reads between points from which a killed run goes on; more "
             "are a little faster. The output does not depend on it");
DEFINE_bool(restart, false, "forget an unfinished run of other files, schema or options");

namespace elastor {
namespace {

constexpr char kSourceFile[] = "trainer/prepare/prepare_main.cc";
constexpr int kMostThreads = 1024;
constexpr double kMostMemoryGib = 1 << 20;
// How often a value occurs in a segment must fit 32 bits; a value takes a byte of text at least.
constexpr int64_t kMostSegmentMib = 2048;

// The inputs that a flag names.
std::vector<std::string> InputsOf(const std::string& text) {
  std::vector<std::string> inputs = ListedInputs(text, [](const std::string& warning) {
    std::fprintf(stderr, "prepare: %s\n", WithoutControls(warning).c_str());
  });
  std::ranges::replace(inputs, "-", kStdinPath);
  return inputs;
}

std::string ReportText(const PrepareReport& report) {
  std::string text;
  const auto add = [&text](const std::string& name, int digits, double value) {
    char number[64];
    std::snprintf(number, sizeof(number), "%.*f", digits, value);
    text += name + "=" + number + "\n";
  };
  const auto add_count = [&text](const std::string& name, int64_t count) {
    StrAppend(&text, name, "=", count, "\n");
  };
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    add_count(std::string(SplitName(split)) + "_rows", report.rows[static_cast<int>(split)]);
  }
  add_count("ids", report.ids);
  add_count("bad_rows", report.bad_rows);
  for (const auto& [lookup, rows] : report.missing_keys) add_count("missing_" + lookup, rows);
  add("seconds", 3, report.seconds);
  if (report.text_bytes > 0) {
    const double megabytes = static_cast<double>(report.text_bytes) * 1e-6;
    add("text_mb", 1, megabytes);
    add("text_mb_per_s", 1, megabytes / report.seconds);
    add("text_mb_per_cpu_s", 1, megabytes / report.cpu_seconds);
  }
  if (report.segments > 0) {
    add_count("segments", report.segments);
    add("work_mb", 1, static_cast<double>(report.work_bytes) * 1e-6);
  }
  for (const auto& [field, share] : report.unknown_shares) {
    add("unknown_share_of_" + field, 6, share);
  }
  if (report.best_auc >= 0) add("best_auc", 6, report.best_auc);
  for (const auto& [label, best_auc] : report.best_aucs) add("best_auc_of_" + label, 6, best_auc);
  if (report.best_gauc >= 0) add("best_gauc", 6, report.best_gauc);
  return text;
}

int AllCores() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostThreads);
}

// Prints a schema for the files of --guess.
Status RunGuess() {
  if (!FLAGS_schema.empty() || !FLAGS_input.empty() || !FLAGS_output_dir.empty()) {
    return UserError("--guess prints a schema and takes no other files; expected it alone");
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, GuessSchema(InputsOf(FLAGS_guess), FLAGS_label));
  return WriteToStdout(text);
}

// Makes a raw log, and no prepared set.
Status RunPlantedLog(const Synthetic& plan) {
  if (FLAGS_output_dir.empty()) return UserError("--output_dir is missing");
  ELASTOR_ASSIGN_OR_RETURN(const PlantedLogReport report, WritePlantedLog(plan, FLAGS_output_dir));
  return WriteToStdout(Format("rows=%lld\nbest_auc=%.6f\nbest_gauc=%.6f\n",
                              static_cast<long long>(report.rows), report.best_auc,
                              report.best_gauc));
}

Status Run() {
  if (FLAGS_schema.empty()) return UserError("--schema is missing");
  if (!FLAGS_label.empty())
    return UserError("--label is of --guess; expected a LABEL field in the schema");
  if (FLAGS_threads < 0 || FLAGS_threads > kMostThreads) {
    return UserError(StrCat("--threads=", FLAGS_threads, ": expected 0 to ", kMostThreads));
  }
  if (!(FLAGS_memory_gib >= 0.01 && FLAGS_memory_gib <= kMostMemoryGib)) {
    return UserError("--memory_gib=" + std::to_string(FLAGS_memory_gib) +
                     ": expected 0.01 to 2^20");
  }
  if (FLAGS_segment_mib < 1 || FLAGS_segment_mib > kMostSegmentMib) {
    return UserError(
        StrCat("--segment_mib=", FLAGS_segment_mib, ": expected 1 to ", kMostSegmentMib));
  }
  ProgressLine progress;
  PrepareOptions options;
  ELASTOR_ASSIGN_OR_RETURN(options.schema, ReadSchemaFile(FLAGS_schema));
  if (options.schema.synthetic().log() != Synthetic::NONE) {
    return RunPlantedLog(options.schema.synthetic());
  }
  options.inputs = InputsOf(FLAGS_input);
  options.validation_inputs = InputsOf(FLAGS_validation_input);
  options.test_inputs = InputsOf(FLAGS_test_input);
  options.unlabelled_test = FLAGS_unlabelled_test;
  options.vocabulary_from = FLAGS_vocabulary_from;
  options.grow = FLAGS_grow;
  options.output_dir = FLAGS_output_dir;
  options.restart = FLAGS_restart;
  options.threads = FLAGS_threads > 0 ? FLAGS_threads : AllCores();
  options.memory_bytes = static_cast<int64_t>(FLAGS_memory_gib * static_cast<double>(1 << 30));
  options.segment_bytes = FLAGS_segment_mib << 20;
  options.progress = [&](const PrepareProgress& now) { progress.Show(now); };
  options.warn = [&](const std::string& message) {
    progress.EndLine();
    std::fprintf(stderr, "prepare: %s\n", WithoutControls(message).c_str());
  };
  const StatusOr<PrepareReport> report = Prepare(options);
  progress.EndLine();
  if (!report.ok()) return report.status();
  return WriteToStdout(ReportText(*report));
}

std::string HelpText() {
  return "prepare --schema=S.textproto --input=FILE[,FILE...] --output_dir=D [--threads=N]\n" +
         FlagsHelp(kSourceFile) +
         "  --help=TOPIC  a field of the schema or a name, as transform, HASH\n";
}

// Chunks and tables come and go all the time: giving their memory back to the system each time
// costs more than keeping it (a third of all page faults).
void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

Status RunCommand(const std::vector<std::string>& arguments) {
  constexpr const char* kLists[] = {"input", "validation_input", "test_input"};
  ELASTOR_ASSIGN_OR_RETURN(const CommandLine command_line,
                           ParseCommandLine(arguments, kSourceFile, Folders::kAny, kLists));
  if (!command_line.help_topic.empty()) {
    ELASTOR_ASSIGN_OR_RETURN(const std::string help, HelpOn("Schema", command_line.help_topic));
    return WriteToStdout(help);
  }
  if (command_line.help) return WriteToStdout(HelpText());
  if (command_line.version) return WriteToStdout(VersionText("prepare"));
  if (!command_line.folders.empty()) {
    return UserError("unexpected argument '" + command_line.folders[0] +
                     "'; several files are --input=A,B");
  }
  return FLAGS_guess.empty() ? Run() : RunGuess();
}

int Main(int argc, char** argv) {
  RaiseStackLimit();
  PrepareStandardStreams();
  KeepFreedMemory();
  StartLog(argv[0]);
  const Status status = RunCommand(std::vector<std::string>(argv + 1, argv + argc));
  if (status.ok()) return 0;
  std::fprintf(stderr, "prepare: %s\n", status.message().c_str());
  return static_cast<int>(status.code());
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) { return elastor::Main(argc, argv); }
