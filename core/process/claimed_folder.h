#ifndef ELASTOR_CORE_PROCESS_CLAIMED_FOLDER_H_
#define ELASTOR_CORE_PROCESS_CLAIMED_FOLDER_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace elastor {

// An output folder that this process alone writes, while the object lives: it is locked before the
// process decides on what the folder holds. Of two processes that write there, the second one is
// refused (IsLocked of job_process.h asks for the same lock). Not thread-safe.
class ClaimedFolder {
 public:
  // Makes the folder and its missing parents, and locks it. Waits up to `patience_s` seconds for
  // another process, because whoever asks for the lock holds it for a moment; after a second it
  // calls `waits`, if set. A file system without locks is taken as it is. User error
  // "--output_dir=PATH: ..." when the folder cannot be made or written, or when another process is
  // writing there.
  static StatusOr<ClaimedFolder> Claim(const std::string& path, double patience_s = 1,
                                       const std::function<void()>& waits = nullptr);
  ClaimedFolder(ClaimedFolder&& other) noexcept;
  ClaimedFolder& operator=(ClaimedFolder&& other) noexcept;
  // Gives the folder free. Unless Keep was called, the folders that Claim made are removed if they
  // are empty, so that a refused command leaves nothing behind.
  ~ClaimedFolder();
  void Keep() { made_.clear(); }

  // User error "--output_dir=PATH: holds 'x'; expected ..." when it holds a name other than
  // `remains`, which an earlier process that was killed has left.
  Status CheckIsEmpty(const std::string& expected, std::string_view remains = "") const;
  // Returns whether the path still leads to the folder.
  StatusOr<bool> IsInPlace() const;

 private:
  explicit ClaimedFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::vector<std::string> made_;  // folders that were missing, parents first
  int lock_ = -1;
};

// Makes a folder within one that this process writes, unless it is there. Error if something else
// is there, as a symbolic link of another user, who may write in the folder and would decide where
// files go. A link of this user's or root's is followed.
Status MakeWithin(const std::string& path);

// Returns whether a path still leads to the open file.
StatusOr<bool> LeadsTo(const std::string& path, int descriptor);

}  // namespace elastor

#endif  // ELASTOR_CORE_PROCESS_CLAIMED_FOLDER_H_
