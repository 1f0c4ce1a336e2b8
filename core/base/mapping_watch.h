#ifndef ELASTOR_CORE_BASE_MAPPING_WATCH_H_
#define ELASTOR_CORE_BASE_MAPPING_WATCH_H_

#include <cstdint>
#include <string>

namespace elastor {

// Watches a file's mapping for as long as it lives. A page that cannot be read (the file was cut
// off, its disk or server fails) would end the process by SIGBUS, without a word of ours. Watched,
// it reads as zeros from then on, as do all pages behind it, and unreadable_at tells; or the
// process ends with exit code 3 and a line. Faults elsewhere go on to whoever handled SIGBUS when
// the first mapping was watched. Thread-safe.
class MappingWatch {
 public:
  struct Entry;  // what the handler of SIGBUS knows of a mapping

  // [begin, begin + bytes) is mapped, for reading, until the watch is destroyed. last_line: what is
  // said on stderr when the process is to end; empty: zeros are read instead.
  MappingWatch(char* begin, int64_t bytes, const std::string& last_line = "");
  ~MappingWatch();
  MappingWatch(const MappingWatch&) = delete;
  MappingWatch& operator=(const MappingWatch&) = delete;

  // Offset of the first page that could not be read; -1: none.
  int64_t unreadable_at() const;

 private:
  Entry* const entry_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_MAPPING_WATCH_H_
