#ifndef ELASTOR_TESTS_FAULTS_JOB_H_
#define ELASTOR_TESTS_FAULTS_JOB_H_

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"

namespace elastor {

// The processes of a job that is alive.
struct Processes {
  pid_t launcher = -1;         // what was started: a supervisor, mpirun, or the trainer alone
  pid_t mpirun = -1;           // of a supervised job; -1: it has none at the moment
  std::map<int, pid_t> ranks;  // of ranks that run the trainer already
};

// What is done to a job in mid-run, by `act` or by faulty_system.cc.
struct Strike {
  // When: so many seconds after the job's start, or once metrics.jsonl has so many records.
  double after_seconds = 0;
  int after_records = 0;
  // Returns nothing when all is done, else the seconds after which it wants to be called again.
  // *struck is set when the job was disturbed.
  std::function<std::optional<double>(const Processes&, bool* struck)> act;
  std::string mark;  // made by faulty_system.cc when it strikes
};

struct JobPlan {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
  std::string trainer;      // the ranks' program
  bool supervised = false;  // the command is a supervisor
  std::string output_dir;   // the run's
  std::string log;          // stdout and stderr
  double hang_seconds = 0;  // a job that lives longer hangs
  std::vector<Strike> strikes;
};

struct ObservedEnd {
  int code = 0;                // exit code; 128 + n: signal n
  std::string lines;           // of the log, without those of progress
  double seconds = 0;          // from the start until no process is left
  bool hung = false;           // a process of the trainer lived for too long, and was killed
  bool launcher_hung = false;  // mpirun alone did, or its daemon
  std::vector<std::optional<double>>
      notice_seconds;                        // from each strike to the end; none: no strike
  std::optional<double> first_step_seconds;  // from the start to the first record of a new step
  bool restarted = false;                    // by its supervisor
  std::optional<double> restart_seconds;     // from the last strike to such a record after that
};

// A file's bytes, as far as it can be read: that of a process may be gone in between.
std::string Contents(const std::string& path);

// To be called once: what a process leaves behind becomes a child of this one.
void AdoptOrphans();

// Runs a job until none of its processes is left. REQUIRES: this process has no other children.
ObservedEnd RunJob(const JobPlan& plan);

// The lines of a log that are neither progress nor Open MPI's about peers' memory.
std::string LinesBesideProgress(const std::string& log);

}  // namespace elastor

#endif  // ELASTOR_TESTS_FAULTS_JOB_H_
