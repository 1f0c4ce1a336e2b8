#ifndef ELASTOR_LAUNCHER_SLURM_CLIENT_H_
#define ELASTOR_LAUNCHER_SLURM_CLIENT_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace elastor {

// Slurm's command line (22.05 and later), and nothing else of Slurm. Every program is started with
// a deadline, without the variables of a job that this process may be in itself, and dies with this
// process. User error: the program is not installed. Machine error "squeue: what it said"
// otherwise.

// A job, or one element of a job array.
struct SlurmJob {
  std::string id = {};      // id of the job or of the whole array
  int element = -1;         // index within the array; -1: not an array's element
  std::string state = {};   // "RUNNING"
  std::string nodes = {};   // "node[1-2]"; empty while it waits
  std::string reason = {};  // why it waits
  std::string script = {};  // path of what was submitted

  // Returns whether the job waits, runs, or will do so again. Slurm forgets other jobs after a
  // while.
  bool IsAlive() const;
};

// Returns all jobs of this name that Slurm remembers. Asks by one command, several times on
// failure.
StatusOr<std::vector<SlurmJob>> JobsNamed(const std::string& name);
// Parses the lines of squeue with kSqueueFormat. Leaves out other lines.
inline constexpr char kSqueueFormat[] = "%F|%K|%T|%N|%r|%o";
std::vector<SlurmJob> ParseSqueue(std::string_view text);

// Returns the last states of arrays' elements, by "ID_ELEMENT". Only jobs of this name count,
// because a site may reuse an id. Empty without accounting.
std::map<std::string, std::string> AccountedStates(const std::vector<std::string>& ids,
                                                   const std::string& name);
// Parses the lines "12_3|NAME|CANCELLED by 0" of sacct.
std::map<std::string, std::string> ParseSacct(std::string_view text, const std::string& name);

// Returns the largest number of elements in an array, from `scontrol show config`.
StatusOr<int> MaxArraySize();
int ParseMaxArraySize(std::string_view text);  // 0: is not there

// Submits a job by `sbatch ARGUMENTS` and returns its id. User error when the site refuses it.
// kStopped when no answer came in time, so that Slurm may or may not have taken it.
StatusOr<std::string> Submit(const std::vector<std::string>& arguments);

Status RequeueElement(const std::string& array_id, int element);
Status CancelNamed(const std::string& name);
Status CancelJob(const std::string& id);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SLURM_CLIENT_H_
