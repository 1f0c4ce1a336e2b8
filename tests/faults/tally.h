#ifndef ELASTOR_TESTS_FAULTS_TALLY_H_
#define ELASTOR_TESTS_FAULTS_TALLY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace elastor {

// What a campaign counts.
struct Tally {
  struct OfFault {
    int64_t struck = 0;                      // jobs
    int64_t harmless = 0;                    // of them, that ended with exit code 0
    int64_t restarted = 0;                   // by their supervisor
    int64_t refused = 0;                     // with 2 or 3 and a line
    std::vector<double> notice_seconds;      // from the strike until no process was left
    std::vector<double> first_step_seconds;  // from the next job's start to its first new record
  };

  int64_t runs = 0, jobs = 0;
  int64_t hangs = 0;           // jobs in which a rank lived for too long
  int64_t launcher_hangs = 0;  // in which mpirun did, without ranks and a supervisor
  int64_t digest_mismatches = 0, silent_differences = 0;
  int64_t wrong_ends = 0;  // jobs with an exit code or a line that the fault does not explain
  int64_t refused = 0, resumed = 0;
  int64_t supervised = 0, restarted = 0;  // jobs of a supervisor, and those it started again
  std::vector<double> restart_seconds;    // from the strike to the first new record after that
  std::map<std::string, OfFault> faults;  // by name; "pause+kill_rank": both, in one job

  // A table of the faults, then the totals; the last line begins with "runs=".
  void Print() const;
};

}  // namespace elastor

#endif  // ELASTOR_TESTS_FAULTS_TALLY_H_
