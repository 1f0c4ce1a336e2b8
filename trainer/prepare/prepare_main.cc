// prepare: raw files -> prepared data set (docs/data.md).

#include <gflags/gflags.h>
#include <glog/logging.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/prepare/prepare.h"
#include "trainer/prepare/schema_file.h"

DEFINE_string(schema, "", "What the raw files look like (a Schema in protobuf text format).");
DEFINE_string(input, "", "Raw files, plain or gzip, comma separated; may be given repeatedly.");
DEFINE_string(output_dir, "", "Where the prepared data set goes; must not exist yet, or be empty.");
DEFINE_int32(threads, 1, "Threads to use. The output does not depend on it.");

DECLARE_bool(help);

namespace google {
extern void (*gflags_exitfunc)(int);  // how gflags leaves after a wrong flag
}

namespace elastor {
namespace {

constexpr int kExitUser = static_cast<int>(StatusCode::kUser);
constexpr int kMostThreads = 1024;

// gflags keeps only the last --input: collects them all into one.
std::vector<std::string> JoinInputs(int argc, char** argv) {
  std::vector<std::string> arguments;
  std::string inputs;
  for (int i = 0; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t name = argument.rfind("--", 0) == 0 ? 2 : 1;
    std::string value;
    if (i > 0 && argument[0] == '-' && argument.compare(name, 6, "input=") == 0) {
      value = argument.substr(name + 6);
    } else if (i > 0 && i + 1 < argc && argument[0] == '-' && argument.substr(name) == "input") {
      value = argv[++i];
    } else {
      arguments.push_back(argument);
      continue;
    }
    inputs += (inputs.empty() ? "" : ",") + value;
  }
  if (!inputs.empty()) arguments.push_back("--input=" + inputs);
  return arguments;
}

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// One line on a terminal, rewritten; a line every ten seconds in a file.
class ProgressPrinter {
 public:
  void Print(const std::string& phase, double share) {
    const auto now = std::chrono::steady_clock::now();
    const auto wait = terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(10);
    if (now - last_ < wait) return;
    last_ = now;
    std::fprintf(stderr, "%sprepare: %s %3.0f %%%s", terminal_ ? "\r" : "", phase.c_str(),
                 100 * share, terminal_ ? "  " : "\n");
    open_line_ = terminal_;
  }
  void EndLine() {
    if (open_line_) std::fputc('\n', stderr);
    open_line_ = false;
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  bool open_line_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

void PrintReport(const PrepareReport& report) {
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    std::printf("%s_rows=%" PRId64 "\n", SplitName(split), report.rows[static_cast<int>(split)]);
  }
  std::printf("ids=%" PRId64 "\nbad_rows=%" PRId64 "\nseconds=%.3f\n", report.ids, report.bad_rows,
              report.seconds);
  if (report.text_bytes > 0) {
    const double megabytes = static_cast<double>(report.text_bytes) * 1e-6;
    std::printf("text_mb=%.1f\ntext_mb_per_s=%.1f\ntext_mb_per_cpu_s=%.1f\n", megabytes,
                megabytes / report.seconds, megabytes / report.cpu_seconds);
  }
  if (report.best_auc >= 0) std::printf("best_auc=%.6f\n", report.best_auc);
}

Status Run() {
  if (FLAGS_schema.empty()) return UserError("--schema is missing");
  if (FLAGS_threads < 1 || FLAGS_threads > kMostThreads) {
    return UserError("--threads=" + std::to_string(FLAGS_threads) + ": expected 1 to " +
                     std::to_string(kMostThreads));
  }
  ProgressPrinter progress;
  PrepareOptions options;
  ELASTOR_ASSIGN_OR_RETURN(options.schema, ReadSchemaFile(FLAGS_schema));
  options.inputs = SplitAtCommas(FLAGS_input);
  options.output_dir = FLAGS_output_dir;
  options.threads = FLAGS_threads;
  options.progress = [&](const std::string& phase, double share) { progress.Print(phase, share); };
  options.warn = [&](const std::string& message) {
    progress.EndLine();
    std::fprintf(stderr, "prepare: %s\n", message.c_str());
  };
  const StatusOr<PrepareReport> report = Prepare(options);
  progress.EndLine();
  if (!report.ok()) return report.status();
  PrintReport(*report);
  return OkStatus();
}

int Main(int argc, char** argv) {
  google::InitGoogleLogging(argv[0]);
  gflags::SetUsageMessage(
      "prepare --schema=S.textproto --input=FILE[,FILE...] --output_dir=D [--threads=N]");
  std::vector<std::string> arguments = JoinInputs(argc, argv);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  char** values = pointers.data();
  google::gflags_exitfunc = [](int) { std::exit(kExitUser); };
  gflags::ParseCommandLineNonHelpFlags(&count, &values, /*remove_flags=*/true);
  if (FLAGS_help) {
    gflags::ShowUsageWithFlagsRestrict(argv[0], "prepare_main");
    return 0;
  }
  Status status =
      count > 1 ? UserError(std::string("unexpected argument '") + values[1] + "'") : Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "prepare: %s\n", status.message().c_str());
  return static_cast<int>(status.code());
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) { return elastor::Main(argc, argv); }
