#ifndef ELASTOR_LAUNCHER_FOLDER_LOCK_H_
#define ELASTOR_LAUNCHER_FOLDER_LOCK_H_

#include <sys/types.h>

#include <string>

#include "core/base/status.h"
#include "launcher/run_folder.h"

namespace elastor {

// Lets one launcher at a time work in a sweep's folder. The system gives the lock back with the
// last process that has it, so it says whether a launcher is alive, and the file whose it is.
class FolderLock {
 public:
  FolderLock() = default;
  ~FolderLock() { Release(); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // Makes the folder where it is missing. Waits for `seconds`: --status holds the lock for a moment
  // when it looks. User error when the folder is another's, or when a launcher is at work there.
  Status Take(const SweepFiles& files, double seconds = 0.2);
  void Release();
  bool IsHeld() const { return lock_ >= 0; }

  // Goes into the background: returns in a process of its own session, without a terminal, whose
  // output is appended to files.LauncherLog(), which SIGHUP does not end, and which has the lock.
  // The process that called prints `told` and exits with 0. REQUIRES: Take was ok; one thread.
  Status Detach(const SweepFiles& files, const std::string& told);

 private:
  Status WriteOwner(pid_t launcher) const;

  int lock_ = -1;
  std::string path_;
};

// The line of a launcher that works in the folder now: "launcher 4711 on host h"; empty: none does.
std::string WorkingLauncher(const SweepFiles& files);

// Sends SIGTERM to the launcher that works in the folder, and waits until it is over. User error
// when there is none, or when it is on another host.
Status StopLauncher(const SweepFiles& files);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_FOLDER_LOCK_H_
