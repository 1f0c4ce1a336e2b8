#ifndef ELASTOR_CORE_BASE_EXHAUSTED_H_
#define ELASTOR_CORE_BASE_EXHAUSTED_H_

#include <cstdint>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace elastor {

// If the system refuses memory or a thread, the process ends with exit code 3 and one line: the
// amount requested, its purpose, and the amount available. No code catches a refusal: a rank that
// lacks memory can do nothing for the others, and the launcher ends the job.
//
// A program that links this library uses its operators new and delete. So failed allocations of the
// standard library and of other libraries end the process in the same way, on any thread. `new
// (std::nothrow)` returns null.

// The purpose, named in that line, for which the calling thread allocates memory while the object
// lives. Scopes nest; the line names the innermost.
class MemoryPurpose {
 public:
  explicit MemoryPurpose(const char* purpose);  // purpose outlives the object
  ~MemoryPurpose();
  MemoryPurpose(const MemoryPurpose&) = delete;
  MemoryPurpose& operator=(const MemoryPurpose&) = delete;

 private:
  const char* const outer_;
};

// Makes every later refusal throw std::bad_alloc or std::system_error instead. For use in a
// library, whose caller decides.
void ThrowWhenExhausted();

// Ends the process because `bytes` of memory were refused. Allocates nothing; if several threads
// call it, the first prints the line. purpose: if empty, the thread's MemoryPurpose.
[[noreturn]] void EndForMemory(uint64_t bytes, std::string_view purpose);

// Ends the process because thread `number` (from 1) of `asked` could not be started. error: errno.
[[noreturn]] void EndForThreads(int64_t number, int64_t asked, const char* purpose, int error);

// Ends the process with a line on stderr, which begins as those above do. For threads that nobody
// waits for, and where the other ranks cannot be told.
[[noreturn]] void EndWithLine(int exit_code, std::string_view text);

// Sees to it that the main thread may have a stack of 8 MiB, where a limit (`ulimit -s`) is lower
// and may be raised. Ends the process if it may not have 1 MiB. To be called first in main.
void RaiseStackLimit();
// Gives threads that are started later a stack of 8 MiB at least, whatever the limit.
void GiveThreadsStacks();

// Starts thread `number` (from 1) of the `asked` that are for `purpose`.
template <typename Work>
std::thread StartThread(int64_t number, int64_t asked, const char* purpose, Work&& work) {
  GiveThreadsStacks();
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error& refused) {
    EndForThreads(number, asked, purpose, refused.code().value());
  }
}

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_EXHAUSTED_H_
