#include "launcher/attempt.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <set>
#include <system_error>

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/process/standard_streams.h"

namespace elastor {
namespace {

constexpr size_t kMostLineBytes = 300;

uintmax_t SizeOf(const std::string& path) {
  std::error_code none;
  const uintmax_t size = std::filesystem::file_size(path, none);
  return none ? 0 : size;
}

std::string Joined(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += StrCat(text.empty() ? "" : ",", number);
  return text;
}

void Bind(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

}  // namespace

StatusOr<Attempt> Attempt::Claim(const std::string& folder, const SweepFiles& files,
                                 const Place& place) {
  Attempt attempt;
  attempt.run_directory_ = files.Run(folder);
  attempt.attempts_ = files.Attempts(folder);
  attempt.log_ = files.Log(folder);
  attempt.place_ = place;
  attempt.follows_open_ = ReadAttempts(attempt.attempts_).open;
  ELASTOR_RETURN_IF_ERROR(AppendStart(attempt.attempts_, getpid(), place));
  attempt.number_ = ReadAttempts(attempt.attempts_).started;
  attempt.log_begin_ = SizeOf(attempt.log_);
  return attempt;
}

Status Attempt::Start(std::vector<std::string> command) {
  ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesIn(run_directory_));
  resumes_ = !names.empty();
  if (resumes_) command.push_back("--resume");
  start_ = Clock::now();
  ELASTOR_ASSIGN_OR_RETURN(const int log, OpenFile(log_, O_WRONLY | O_CREAT | O_APPEND));
  const StatusOr<pid_t> started = StartProcess(command, {.output = log, .error = log}, [this] {
    Bind(place_.cores);
    if (!place_.gpus.empty()) setenv("CUDA_VISIBLE_DEVICES", Joined(place_.gpus).c_str(), 1);
  });
  close(log);
  ELASTOR_RETURN_IF_ERROR(started.status());
  pid_ = *started;
  return OkStatus();
}

bool Attempt::IsSuperseded() const { return ReadAttempts(attempts_).started > number_; }

std::string Attempt::LastLine() const {
  const StatusOr<std::string> text = ReadFile(log_);
  if (!text.ok() || text->size() <= log_begin_) return "";
  const size_t end = text->find_last_not_of("\n\r ");
  if (end == text->npos || end < log_begin_) return "";
  const size_t line = text->rfind('\n', end);
  const size_t first = line == text->npos ? 0 : line + 1;
  return text->substr(first, std::min(end + 1 - first, kMostLineBytes));
}

Status Attempt::End(int exit_code, bool stopped_by_launcher, const std::string& last_line) const {
  return AppendEnd(attempts_, exit_code, stopped_by_launcher, seconds(), last_line);
}

void Say(const std::string& line) {
  std::array<char, 16> now;
  const std::time_t time = std::time(nullptr);
  std::tm local;
  std::strftime(now.data(), now.size(), "%H:%M:%S", localtime_r(&time, &local));
  // A full disk behind stdout is no reason to stop: the files say all of it.
  (void)WriteToStdout(StrCat(now.data(), " ", WithoutControls(line), "\n"));
}

}  // namespace elastor
