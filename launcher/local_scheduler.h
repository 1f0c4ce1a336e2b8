#ifndef ELASTOR_LAUNCHER_LOCAL_SCHEDULER_H_
#define ELASTOR_LAUNCHER_LOCAL_SCHEDULER_H_

#include <string>

#include "core/base/status.h"
#include "launcher/machine.h"
#include "launcher/plan.h"
#include "launcher/run_folder.h"

namespace elastor {

// Runs what a plan has left to do on this machine, as many runs at a time as its cores and memory
// hold, the most expensive first. Every run is a process group of its own, bound to cores of its
// own, and dies with this process, however that ends. Prints a line for the start and the end of
// each run, and on a terminal a live table. SIGINT, SIGTERM and SIGHUP ask the runs to write a
// checkpoint and stop, a second one kills them; a SIGHUP that this process ignores, as under nohup,
// does nothing. rehearse: every run is stopped once (rehearsal.h).
//
// By a process with one thread, one call at a time. kStopped: by a signal; otherwise OkStatus, also
// when runs failed.
// Errors: files that cannot be written. REQUIRES: every run fits the machine; files.root is locked.
Status RunLocally(const Plan& plan, const SweepFiles& files, const Machine& machine,
                  const std::string& trainer, bool rehearse);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_LOCAL_SCHEDULER_H_
