#ifndef ELASTOR_CORE_BASE_THREAD_POOL_H_
#define ELASTOR_CORE_BASE_THREAD_POOL_H_

#include <cstdint>
#include <functional>
#include <memory>

namespace elastor {

// A fixed team of computing threads, the caller being thread 0. Every thread runs in canonical
// floating point. Not thread-safe: one owner calls Run.
class ThreadPool {
 public:
  // Sets canonical floating point on the calling thread too. threads >= 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  // Calls work(thread) once on every thread and returns when all are done. Waiting threads sleep
  // (no spinning: ranks may share cores).
  void Run(const std::function<void(int thread)>& work);
  // Splits [0, total) into one contiguous part a thread: work(thread, begin, end); parts are
  // multiples of `grain` long but for the last.
  void ParallelFor(int64_t total, int64_t grain,
                   const std::function<void(int thread, int64_t begin, int64_t end)>& work);

 private:
  struct State;
  int threads_;
  std::unique_ptr<State> state_;
};

// Takes denormals for 0 on the calling thread, which canonical arithmetic needs (floating_point.h).
void SetCanonicalFloatingPoint();

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_THREAD_POOL_H_
