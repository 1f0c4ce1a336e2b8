#ifndef ELASTOR_TRAINER_PREPARE_VALUES_PARALLEL_TASKS_H_
#define ELASTOR_TRAINER_PREPARE_VALUES_PARALLEL_TASKS_H_

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/status.h"
#include "core/base/thread_pool.h"

namespace elastor {

// Calls task(i) for every i in [0, count), each thread taking the next one when it is free. Returns
// the first error, after which no task is begun.
template <typename Task>
Status RunTasks(int64_t count, ThreadPool* pool, const Task& task) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  Status failure;
  const auto work = [&](int) {
    for (int64_t i = next++; i < count; i = next++) {
      const Status status = task(i);
      if (status.ok()) continue;
      next = count;
      const std::lock_guard<std::mutex> lock(mutex);
      if (failure.ok()) failure = status;
    }
  };
  pool->Run(work);
  return failure;
}

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_VALUES_PARALLEL_TASKS_H_
