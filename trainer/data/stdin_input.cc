#include "trainer/data/stdin_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/file.h"

namespace elastor {
namespace {

// Copies what stdin has left. False, with errno set and *what, when that fails.
bool CopyStdin(int file, const char** what) {
  std::string piece(1 << 20, '\0');
  while (true) {
    const ssize_t got = read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    *what = "cannot read stdin: ";
    if (got <= 0) return got == 0;
    *what = "cannot write: ";
    for (ssize_t done = 0; done < got;) {
      const ssize_t written = write(file, piece.data() + done, got - done);
      if (written < 0 && errno != EINTR) return false;
      if (written > 0) done += written;
    }
  }
}

}  // namespace

StatusOr<bool> KeepStdin(const std::string& path) {
  struct stat facts = {};
  if (isatty(STDIN_FILENO) != 0) {
    return UserError("--input=-: stdin is a terminal; expected a pipe or a file");
  }
  const bool file = fstat(STDIN_FILENO, &facts) == 0 && S_ISREG(facts.st_mode);
  if (file && lseek(STDIN_FILENO, 0, SEEK_CUR) == 0) return false;
  constexpr int kOwnerOnly = 0600;
  ELASTOR_ASSIGN_OR_RETURN(const int copy, OpenNewFile(path, kOwnerOnly));
  unlink(path.c_str());
  const char* what = "cannot take the place of stdin: ";
  const bool copied = CopyStdin(copy, &what) && dup2(copy, STDIN_FILENO) >= 0;
  const Status failure = MachineError(path + ": " + what + std::strerror(errno));
  close(copy);
  if (!copied) return failure;
  return true;
}

}  // namespace elastor
