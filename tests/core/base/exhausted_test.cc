#include "core/base/exhausted.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "core/base/thread_pool.h"

namespace elastor {
namespace {

constexpr size_t kTooMuch = size_t{1} << 50;

// Read at run time, lest the compiler knows that no memory has this size.
size_t TooMuch() {
  volatile size_t bytes = kTooMuch;
  return bytes;
}

const auto kEndsWith3 = testing::ExitedWithCode(3);

TEST(ExhaustedDeathTest, RefusedMemoryIsOneLineWithBytesAndPurpose) {
  EXPECT_EXIT(
      {
        const MemoryPurpose outer("gradients");
        const MemoryPurpose inner("activations");
        std::vector<char> memory(TooMuch());
      },
      kEndsWith3,
      "exhausted_test: cannot allocate 1125899906842624 bytes for activations;"
      "( the process has [^;]+ \\(ulimit -v\\) is [0-9]+;)?"  // where there is a limit
      " of the host's [0-9]+ bytes of memory [0-9]+ are available\n$");
  EXPECT_EXIT(
      {
        const MemoryPurpose outer("gradients");
        { const MemoryPurpose inner("activations"); }
        static_cast<void>(::operator new (TooMuch(), std::align_val_t{64}));
      },
      kEndsWith3, "cannot allocate 1125899906842624 bytes for gradients;");
  EXPECT_EXIT(EndForMemory(17, "rows of a table"), kEndsWith3,
              "cannot allocate 17 bytes for rows of a table;");
}

// On any thread, and under a launcher with the rank.
TEST(ExhaustedDeathTest, OneOfSeveralThreadsSpeaks) {
  EXPECT_EXIT(
      {
        setenv("PMIX_RANK", "3", 1);
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i) {
          threads.emplace_back([] { std::vector<char> memory(TooMuch()); });
        }
        for (std::thread& thread : threads) thread.join();
      },
      kEndsWith3,
      "^exhausted_test: rank 3: cannot allocate 1125899906842624 bytes for working "
      "memory[^\n]*\n$");
}

TEST(ExhaustedTest, WhoCanGoOnWithoutGetsNull) {
  const std::unique_ptr<char[]> memory(new (std::nothrow) char[TooMuch()]);
  EXPECT_EQ(memory, nullptr);
}

TEST(ExhaustedDeathTest, ARefusedThreadIsOneLine) {
  EXPECT_EXIT(
      {
        rlimit limit;
        limit.rlim_cur = limit.rlim_max = rlim_t{64} << 20;
        setrlimit(RLIMIT_AS, &limit);
        ThreadPool pool(100);
      },
      kEndsWith3,
      "cannot start thread [0-9]+ of 100 for computing: Resource temporarily unavailable; it takes "
      "[0-9]+ bytes of address space \\(ulimit -s\\), the process may have 67108864 \\(ulimit -v\\)"
      "\n$");
  EXPECT_EXIT(
      EndForThreads(5, 7, "reading ahead", EAGAIN), kEndsWith3,
      "cannot start thread 5 of 7 for reading ahead: Resource temporarily unavailable; there "
      "can be [0-9]+ at most \\([^\n]*\n$");
}

// As `ulimit -s 64` leaves the main thread, and the threads that are started.
TEST(ExhaustedDeathTest, ASmallStackIsNoObstacle) {
  EXPECT_EXIT(
      {
        rlimit limit;
        getrlimit(RLIMIT_STACK, &limit);
        limit.rlim_cur = 64 << 10;
        setrlimit(RLIMIT_STACK, &limit);
        pthread_attr_t small;
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 64 << 10);
        pthread_setattr_default_np(&small);
        RaiseStackLimit();
        getrlimit(RLIMIT_STACK, &limit);
        StartThread(1, 1, "a test", [] {
          std::array<volatile char, 1 << 20> deep;
          deep[0] = 1;
          deep[deep.size() - 1] = 1;
        }).join();
        std::_Exit(limit.rlim_cur >= rlim_t{8} << 20 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace elastor
