#ifndef ELASTOR_CORE_BASE_EXHAUSTED_H_
#define ELASTOR_CORE_BASE_EXHAUSTED_H_

#include <cstdint>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace elastor {

// Memory and threads that the system refuses end the process with exit code 3 and one line: what
// was asked for, for what, and how much there is. Nobody catches a refusal: a rank that lacks
// memory can do nothing for the others, and the launcher ends the job.
//
// A program that links this library has its operator new: whatever the standard library and the
// libraries beside us allocate ends so too, on any thread. `new (std::nothrow)` returns null.

// What the calling thread asks memory for while the object lives, for that line. Scopes nest; the
// innermost speaks.
class MemoryPurpose {
 public:
  explicit MemoryPurpose(const char* purpose);  // which outlives the object
  ~MemoryPurpose();
  MemoryPurpose(const MemoryPurpose&) = delete;
  MemoryPurpose& operator=(const MemoryPurpose&) = delete;

 private:
  const char* const outer_;
};

// From now on a refusal throws instead, std::bad_alloc or std::system_error: for a library, whose
// caller decides.
void ThrowWhenExhausted();

// Ends the process for want of `bytes`. Without allocating; of several threads the first speaks.
// purpose: empty for the thread's MemoryPurpose.
[[noreturn]] void EndForMemory(uint64_t bytes, std::string_view purpose);

// Ends the process because thread `number` (from 1) of `asked` could not be started. error: errno.
[[noreturn]] void EndForThreads(int64_t number, int64_t asked, const char* purpose, int error);

// Starts thread `number` (from 1) of the `asked` that are for `purpose`.
template <typename Work>
std::thread StartThread(int64_t number, int64_t asked, const char* purpose, Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error& refused) {
    EndForThreads(number, asked, purpose, refused.code().value());
  }
}

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_EXHAUSTED_H_
