#ifndef ELASTOR_CORE_BASE_MAPPING_WATCH_H_
#define ELASTOR_CORE_BASE_MAPPING_WATCH_H_

#include <cstdint>
#include <string>

namespace elastor {

// Watches a file's mapping for as long as it lives. A page that cannot be read (the file was cut
// off, its disk or server fails) would end the process by SIGBUS without an explanation. A watched
// page reads as zeros from then on, as do all pages behind it, and unreadable_at reports it; or the
// process ends with exit code 3 and a line. Faults elsewhere go on to whoever handled SIGBUS when
// the first mapping was watched. Thread-safe.
class MappingWatch {
 public:
  struct Entry;  // the SIGBUS handler's record of a mapping

  // REQUIRES: [begin, begin + bytes) is mapped for reading until the watch is destroyed. last_line:
  // the line on stderr with which the process ends; empty: the process goes on and reads zeros.
  MappingWatch(char* begin, int64_t bytes, const std::string& last_line = "");
  ~MappingWatch();
  MappingWatch(const MappingWatch&) = delete;
  MappingWatch& operator=(const MappingWatch&) = delete;

  // Returns the offset of the first page that could not be read; -1 if there is none.
  int64_t unreadable_at() const;

 private:
  Entry* const entry_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_MAPPING_WATCH_H_
