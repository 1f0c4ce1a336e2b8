#include "core/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "core/base/exhausted.h"
#include "core/base/floating_point.h"
#include "core/base/leaves.h"
#include "core/base/log.h"

namespace elastor {

struct ThreadPool::State {
  // One Run is one round: the owner sets `work` and `running`, then advances `round`, which wakes
  // the workers; the last worker to finish brings `running` to 0, which wakes the owner.
  std::atomic<int> round{0};
  std::atomic<int> running{0};
  const std::function<void(int)>* work = nullptr;  // null in the last round: leave
  std::vector<std::thread> workers;

  void StartRound(const std::function<void(int)>* next) {
    work = next;
    running.store(static_cast<int>(workers.size()), std::memory_order_relaxed);
    round.fetch_add(1, std::memory_order_release);
    round.notify_all();
  }

  void FinishRound() {
    for (int left = running.load(std::memory_order_acquire); left != 0;
         left = running.load(std::memory_order_acquire)) {
      running.wait(left, std::memory_order_acquire);
    }
  }

  void Serve(int thread) {
    SetCanonicalFloatingPoint();
    for (int seen = 0;; ++seen) {
      round.wait(seen, std::memory_order_acquire);
      if (work == nullptr) return;
      (*work)(thread);
      if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) running.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : threads_(threads), state_(std::make_unique<State>()) {
  CHECK_GE(threads, 1);
  SetCanonicalFloatingPoint();
  state_->workers.reserve(threads - 1);
  for (int thread = 1; thread < threads; ++thread) {
    state_->workers.push_back(
        StartThread(thread + 1, threads, "computing",
                    [state = state_.get(), thread] { state->Serve(thread); }));
  }
}

ThreadPool::~ThreadPool() {
  state_->StartRound(nullptr);
  for (std::thread& worker : state_->workers) worker.join();
}

void ThreadPool::Run(const std::function<void(int thread)>& work) {
  CHECK(work != nullptr);
  CHECK_EQ(state_->running.load(std::memory_order_relaxed), 0) << "ThreadPool::Run inside Run";
  state_->StartRound(&work);
  work(0);
  state_->FinishRound();
}

void ThreadPool::ParallelFor(int64_t total, int64_t grain,
                             const std::function<void(int, int64_t, int64_t)>& work) {
  CHECK_GE(total, 0);
  CHECK_GE(grain, 1);
  const int64_t grains = (total + grain - 1) / grain;
  if (grains == 0) return;
  if (grains == 1 || threads_ == 1) {
    work(0, 0, total);
    return;
  }
  Run([&](int thread) {
    const Range part = PartOf(thread, threads_, grains);
    if (part.size() == 0) return;
    work(thread, part.begin * grain, std::min(part.end * grain, total));
  });
}

void SetCanonicalFloatingPoint() { FloatingPoint::Set(FloatingPoint::kCanonical); }

}  // namespace elastor
