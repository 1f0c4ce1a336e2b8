#include "launcher/slurm_client.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <sstream>
#include <thread>

#include "core/base/clock.h"
#include "core/base/text.h"
#include "launcher/attempt.h"

namespace elastor {
namespace {

constexpr double kMostSeconds = 60;  // of one program
constexpr int kTries = 4;
constexpr int kNotFound = 127;
constexpr std::string_view kUnknownId = "Invalid job id";

// What a job may inherit, and Slurm's programs need. Variables of an outer job would be taken for
// options (SBATCH_*, SLURM_CPU_BIND).
constexpr std::array<std::string_view, 14> kKept = {
    "PATH=",       "HOME=",       "USER=",       "LOGNAME=",         "SHELL=", "LANG=", "LC_ALL=",
    "SLURM_CONF=", "MODULEPATH=", "OMPI_ALLOW_", "LD_LIBRARY_PATH=", "HWLOC_", "NCCL_", "UCX_"};
constexpr std::string_view kMcaPrefix = "OMPI_MCA_";

std::vector<char*> CleanEnvironment() {
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool keep = text.starts_with(kMcaPrefix) ||
                      std::ranges::any_of(kKept, [&](auto name) { return text.starts_with(name); });
    if (keep) kept.push_back(*entry);
  }
  kept.push_back(nullptr);
  return kept;
}

struct Output {
  std::string out = {}, error = {};
  int exit_code = 0;
  bool timed_out = false;
};

[[noreturn]] void BecomeProgram(const std::vector<std::string>& command, int out, int error,
                                pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kNotFound);
  setsid();  // Ctrl-C is for the launcher
  const sigset_t waited = WaitedSignals();
  sigprocmask(SIG_UNBLOCK, &waited, nullptr);
  signal(SIGPIPE, SIG_DFL);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (dup2(nothing, 0) < 0 || dup2(out, 1) < 0 || dup2(error, 2) < 0) _exit(kNotFound);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvpe(words[0], words.data(), CleanEnvironment().data());
  _exit(kNotFound);
}

// Reads both pipes to their ends. False: the deadline came first.
bool Drain(int out, int error, Output* output) {
  const Clock::time_point start = Clock::now();
  std::array<pollfd, 2> pipes = {{{out, POLLIN, 0}, {error, POLLIN, 0}}};
  while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
    const double left = kMostSeconds - SecondsSince(start);
    if (left <= 0) return false;
    if (poll(pipes.data(), pipes.size(), static_cast<int>(left * 1000) + 1) <= 0) continue;
    for (pollfd& pipe : pipes) {
      if (pipe.fd < 0 || pipe.revents == 0) continue;
      std::array<char, 1 << 16> bytes;
      const ssize_t count = read(pipe.fd, bytes.data(), bytes.size());
      if (count <= 0) {
        pipe.fd = -1;
      } else {
        (&pipe == pipes.data() ? output->out : output->error)
            .append(bytes.data(), static_cast<size_t>(count));
      }
    }
  }
  return true;
}

Output RunProgram(const std::vector<std::string>& command) {
  Output output;
  std::array<int, 2> out, error;
  if (pipe2(out.data(), O_CLOEXEC) != 0) return {.error = std::strerror(errno), .exit_code = -1};
  if (pipe2(error.data(), O_CLOEXEC) != 0) {
    output = {.error = std::strerror(errno), .exit_code = -1};
    for (const int end : out) close(end);
    return output;
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) BecomeProgram(command, out[1], error[1], parent);
  close(out[1]);
  close(error[1]);
  output.timed_out = !Drain(out[0], error[0], &output);
  close(out[0]);
  close(error[0]);
  if (output.timed_out) kill(child, SIGKILL);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    return {.error = "cannot be started", .exit_code = -1};
  }
  output.exit_code = ExitCodeOf(status);
  return output;
}

// The lines "PROGRAM: error: WHAT" that a program printed, as one: "PROGRAM: WHAT; WHAT".
std::string OneLine(const std::string& program, const std::string& text) {
  std::string line;
  std::istringstream lines(text);
  for (std::string next; std::getline(lines, next);) {
    for (const std::string& prefix : {program + ": ", std::string("error: ")}) {
      if (next.starts_with(prefix)) next.erase(0, prefix.size());
    }
    if (!next.empty()) line += (line.empty() ? "" : "; ") + next;
  }
  return program + ": " + line;
}

StatusOr<std::string> Call(const std::vector<std::string>& command) {
  const Output output = RunProgram(command);
  const std::string& program = command.front();
  if (output.timed_out) {
    return StoppedBySignal(
        StrCat(program, ": no answer within ", static_cast<int>(kMostSeconds), " s"));
  }
  if (output.exit_code == 0) return output.out;
  if (output.exit_code == kNotFound) {
    return UserError("--scheduler=slurm: " + program +
                     ": not found; expected Slurm's programs in PATH");
  }
  if (output.error.empty()) {
    return MachineError(StrCat(program, ": exit code ", output.exit_code));
  }
  return MachineError(OneLine(program, output.error));
}

// For programs that change nothing.
StatusOr<std::string> CallUntilAnswered(const std::vector<std::string>& command) {
  for (int tries = 1;; ++tries) {
    StatusOr<std::string> text = Call(command);
    if (text.ok() || text.status().code() == StatusCode::kUser || tries == kTries) return text;
    std::this_thread::sleep_for(std::chrono::seconds(1 << (tries - 1)));
  }
}

std::vector<std::string> Fields(const std::string& line, size_t count) {
  std::vector<std::string> fields;
  size_t begin = 0;
  while (fields.size() + 1 < count) {
    const size_t bar = line.find('|', begin);
    if (bar == line.npos) return {};
    fields.push_back(line.substr(begin, bar - begin));
    begin = bar + 1;
  }
  fields.push_back(line.substr(begin));
  return fields;
}

int NumberOr(const std::string& text, int otherwise) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? number : otherwise;
}

}  // namespace

bool SlurmJob::IsAlive() const {
  constexpr std::array<std::string_view, 10> kEnds = {
      "BOOT_FAIL", "CANCELLED",     "COMPLETED", "DEADLINE", "FAILED",
      "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",  "TIMEOUT"};
  return std::ranges::find(kEnds, state) == kEnds.end();
}

std::vector<SlurmJob> ParseSqueue(std::string_view text) {
  constexpr size_t kFields = 6;
  std::vector<SlurmJob> jobs;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> fields = Fields(line, kFields);
    if (fields.empty()) continue;
    jobs.push_back(
        {fields[0], NumberOr(fields[1], -1), fields[2], fields[3], fields[4], fields[5]});
  }
  return jobs;
}

StatusOr<std::vector<SlurmJob>> JobsNamed(const std::string& name) {
  ELASTOR_ASSIGN_OR_RETURN(
      const std::string text,
      CallUntilAnswered({"squeue", "--noheader", "--array", "--states=all", "--name=" + name,
                         std::string("--format=") + kSqueueFormat}));
  return ParseSqueue(text);
}

std::map<std::string, std::string> ParseSacct(std::string_view text, const std::string& name) {
  constexpr size_t kFields = 3;
  std::map<std::string, std::string> states;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> fields = Fields(line, kFields);
    if (fields.empty() || fields[1] != name) continue;
    states[fields[0]] = fields[2].substr(0, fields[2].find(' '));  // "CANCELLED by 0"
  }
  return states;
}

std::map<std::string, std::string> AccountedStates(const std::vector<std::string>& ids,
                                                   const std::string& name) {
  if (ids.empty()) return {};
  std::string list;
  for (const std::string& id : ids) list += (list.empty() ? "" : ",") + id;
  const StatusOr<std::string> text =
      Call({"sacct", "--noheader", "--parsable2", "--allocations", "--array", "--jobs=" + list,
            "--format=JobID,JobName%100,State"});
  return text.ok() ? ParseSacct(*text, name) : std::map<std::string, std::string>();
}

int ParseMaxArraySize(std::string_view text) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::string name, equals;
    int value = 0;
    std::istringstream words(line);
    if (words >> name >> equals >> value && name == "MaxArraySize") return value;
  }
  return 0;
}

StatusOr<int> MaxArraySize() {
  ELASTOR_ASSIGN_OR_RETURN(const std::string text,
                           CallUntilAnswered({"scontrol", "show", "config"}));
  if (const int size = ParseMaxArraySize(text); size > 1) return size;
  return UserError(
      "--scheduler=slurm: scontrol show config: MaxArraySize: not there, or too "
      "small; expected a site that has job arrays");
}

StatusOr<std::string> Submit(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"sbatch", "--parsable"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  StatusOr<std::string> text = Call(command);
  if (!text.ok()) {
    const std::string& why = text.status().message();
    // Slurm's controller may have taken it all the same.
    if (why.find("timed out") != why.npos) return StoppedBySignal(why);
    return text.status().code() == StatusCode::kStopped ? text.status() : UserError(why);
  }
  // "ID" or "ID;CLUSTER"
  return text->substr(0, text->find_first_of(";\n"));
}

Status RequeueElement(const std::string& array_id, int element) {
  // An array's id is also that of its last element: without the element all of them would start
  // again.
  return Call({"scontrol", "requeue", StrCat(array_id, "_", element)}).status();
}

Status CancelNamed(const std::string& name) { return Call({"scancel", "--name=" + name}).status(); }

Status CancelJob(const std::string& id) {
  const Status cancelled = Call({"scancel", id}).status();
  const bool is_gone = cancelled.message().find(kUnknownId) != std::string::npos;
  return is_gone ? OkStatus() : cancelled;
}

}  // namespace elastor
