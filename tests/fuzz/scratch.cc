#include "tests/fuzz/scratch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/hash_text.h"
#include "core/base/log.h"

namespace elastor {

bool CheckOneLine(const Status& status) {
  CHECK(!status.message().empty());
  CHECK(status.message().find('\n') == std::string::npos) << status.message();
  return false;
}

const std::string& FuzzFolder() {
  struct Scratch {
    const std::string path = [] {
      const char* const test = std::getenv("TEST_TMPDIR");
      return std::string(test != nullptr ? test : "/dev/shm") + "/elastor_fuzz_" +
             std::to_string(getpid());
    }();
    Scratch() { std::filesystem::create_directories(path); }
    ~Scratch() { std::filesystem::remove_all(path); }
  };
  static const Scratch scratch;
  return scratch.path;
}

// By the system's calls alone, for the fuzzer's time goes into this.
std::string FileOf(const std::string& name, std::string_view bytes) {
  std::string path = FuzzFolder() + "/" + name;
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  CHECK(file >= 0) << path << ": " << std::strerror(errno);
  CHECK(write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()))
      << path << ": " << std::strerror(errno);
  close(file);
  return path;
}

std::string Resealed(std::string_view bytes, const std::string& member) {
  const std::string opening = "\"" + member + "\": \"";
  const size_t at = bytes.rfind(opening);
  if (at == bytes.npos) return std::string(bytes);
  return SealJson(std::string(bytes.substr(0, at + opening.size())));
}

}  // namespace elastor
