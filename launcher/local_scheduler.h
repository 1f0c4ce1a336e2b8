#ifndef ELASTOR_LAUNCHER_LOCAL_SCHEDULER_H_
#define ELASTOR_LAUNCHER_LOCAL_SCHEDULER_H_

#include <string>

#include "core/base/status.h"
#include "launcher/machine.h"
#include "launcher/plan.h"
#include "launcher/run_folder.h"

namespace elastor {

// Executes a plan's remaining runs on this machine, as many at a time as its cores and memory hold,
// the most expensive first. Every run is a process group, bound to cores of its own, and dies with
// this process, however that ends. Prints a line for the start and the end of each run, and on a
// terminal a live table. SIGINT, SIGTERM and SIGHUP ask the runs to write a checkpoint and stop; a
// second signal kills them. A SIGHUP that this process ignores, as under nohup, does nothing. With
// `rehearse`, every run is stopped once (rehearsal.h).
//
// Returns kStopped after a signal, and OkStatus otherwise, also when runs failed. Error when files
// cannot be written. REQUIRES: a process with one thread; one call at a time; every run fits the
// machine; files.root is locked.
Status RunLocally(const Plan& plan, const SweepFiles& files, const Machine& machine,
                  const std::string& trainer, bool rehearse);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_LOCAL_SCHEDULER_H_
