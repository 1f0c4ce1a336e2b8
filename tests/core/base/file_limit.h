#ifndef ELASTOR_TESTS_CORE_BASE_FILE_LIMIT_H_
#define ELASTOR_TESTS_CORE_BASE_FILE_LIMIT_H_

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace elastor {

// While it lives this process can have at most `room` files open besides those that are.
class FileLimit {
 public:
  explicit FileLimit(int room) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int first_free = open("/dev/null", O_RDONLY);
    close(first_free);
    rlimit low = before_;
    low.rlim_cur = first_free + room;
    setrlimit(RLIMIT_NOFILE, &low);
  }
  ~FileLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_;
};

}  // namespace elastor

#endif  // ELASTOR_TESTS_CORE_BASE_FILE_LIMIT_H_
