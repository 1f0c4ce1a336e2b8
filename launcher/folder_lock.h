#ifndef ELASTOR_LAUNCHER_FOLDER_LOCK_H_
#define ELASTOR_LAUNCHER_FOLDER_LOCK_H_

#include <sys/types.h>

#include <string>

#include "core/base/status.h"
#include "launcher/run_folder.h"

namespace elastor {

// Lets one launcher at a time work in a sweep's folder. The system releases the lock with the last
// process that holds it, so the lock tells whether a launcher is alive. The file's text tells which
// one.
class FolderLock {
 public:
  FolderLock() = default;
  ~FolderLock() { Release(); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // Takes the lock, and makes a missing folder. Waits up to `seconds`, because --status holds the
  // lock for a moment. User error when the folder belongs to somebody else, or when a launcher is
  // at work there.
  Status Take(const SweepFiles& files, double seconds = 0.2);
  void Release();
  bool IsHeld() const { return lock_ >= 0; }

  // Goes into the background. Returns in a new process with a session of its own, without a
  // terminal, which SIGHUP does not end and which holds the lock; its output is appended to
  // files.LauncherLog(). The calling process prints `told` and exits with 0. REQUIRES: Take was ok;
  // one thread.
  Status Detach(const SweepFiles& files, const std::string& told);

 private:
  Status WriteOwner(pid_t launcher) const;

  int lock_ = -1;
  std::string path_;
};

// Describes the launcher that works in the folder now, "launcher 4711 on host h"; empty if none
// does.
std::string WorkingLauncher(const SweepFiles& files);

// Sends SIGTERM to the launcher that works in the folder, and waits until it has ended. The lock's
// file only proposes a process: it must run this program and have that file open, or else nothing
// is stopped. User error then, when there is no launcher, or when it is on another host.
Status StopLauncher(const SweepFiles& files);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_FOLDER_LOCK_H_
