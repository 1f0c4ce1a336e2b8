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
  std::string id = {};      // of the job or of the whole array
  int element = -1;         // of an array
  std::string state = {};   // "RUNNING"
  std::string nodes = {};   // "node[1-2]"; empty while it waits
  std::string reason = {};  // why it waits
  std::string script = {};  // path of what was submitted

  // Waits, runs, or will do so again. Slurm forgets others after a while.
  bool IsAlive() const;
};

// All jobs of this name that Slurm remembers, in one call. Several tries.
StatusOr<std::vector<SlurmJob>> JobsNamed(const std::string& name);
// Lines of squeue with kSqueueFormat; others are left out.
inline constexpr char kSqueueFormat[] = "%F|%K|%T|%N|%r|%o";
std::vector<SlurmJob> ParseSqueue(std::string_view text);

// The last states of the elements of arrays, by "ID_ELEMENT", for jobs of this name alone: a site
// may give an id out again. Empty without accounting.
std::map<std::string, std::string> AccountedStates(const std::vector<std::string>& ids,
                                                   const std::string& name);
// Lines "12_3|NAME|CANCELLED by 0" of sacct.
std::map<std::string, std::string> ParseSacct(std::string_view text, const std::string& name);

// The most elements of an array, from `scontrol show config`.
StatusOr<int> MaxArraySize();
int ParseMaxArraySize(std::string_view text);  // 0: is not there

// The id of the job that `sbatch ARGUMENTS` submitted. User error: the site refuses it. kStopped:
// it is not known whether Slurm has taken it, for no answer came in time.
StatusOr<std::string> Submit(const std::vector<std::string>& arguments);

Status RequeueElement(const std::string& array_id, int element);
Status CancelNamed(const std::string& name);
Status CancelJob(const std::string& id);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SLURM_CLIENT_H_
