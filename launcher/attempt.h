#ifndef ELASTOR_LAUNCHER_ATTEMPT_H_
#define ELASTOR_LAUNCHER_ATTEMPT_H_

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/process/job_process.h"
#include "launcher/run_folder.h"

namespace elastor {

// One attempt of a run: a process group, with lines in the attempts' file for its start and its
// end. The group dies when the process that started it dies.
class Attempt {
 public:
  // Appends the start to the attempts' file. From now on older attempts of the run, wherever they
  // live, are superseded.
  static StatusOr<Attempt> Claim(const std::string& folder, const SweepFiles& files,
                                 const Place& place);

  // Starts the command, with --resume when the run's folder holds something; output goes to the end
  // of the run's log. REQUIRES: called once; WaitedSignals() are blocked; there is one thread.
  Status Start(std::vector<std::string> command);

  // Returns whether an earlier attempt has no recorded end, so that its process may still live on
  // another host.
  bool follows_open() const { return follows_open_; }
  bool IsSuperseded() const;  // by a later one
  pid_t pid() const { return pid_; }
  bool resumes() const { return resumes_; }
  double seconds() const { return SecondsSince(start_); }
  // Asks the attempt to write a checkpoint and end. mpirun and srun hand the signal to their ranks.
  void Stop() const { kill(pid_, SIGUSR1); }
  void Kill() const { kill(-pid_, SIGKILL); }
  std::string LastLine() const;  // last line that the attempt has printed
  // Appends the end to the attempts' file. For an attempt that could not be started, appends its
  // status.
  Status End(int exit_code, bool stopped_by_launcher, const std::string& last_line) const;

 private:
  Attempt() = default;

  std::string run_directory_, attempts_, log_;  // paths
  Place place_;
  int number_ = 0;  // the attempt's number within the run, from 1
  bool follows_open_ = false, resumes_ = false;
  uintmax_t log_begin_ = 0;  // bytes that earlier attempts wrote to the log
  Clock::time_point start_ = Clock::now();
  pid_t pid_ = -1;
};

// Prints a line with the time before it.
void Say(const std::string& line);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_ATTEMPT_H_
