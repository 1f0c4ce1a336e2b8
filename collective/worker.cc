#include "collective/worker.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "collective/pause.h"
#include "core/base/exhausted.h"
#include "core/base/thread_pool.h"

namespace elastor {

struct CommunicationWorker::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::packaged_task<Status()>> jobs;  // guarded by mutex
  bool stopping = false;                          // guarded by mutex
  std::thread thread;

  void RunJobs() {
    SetCanonicalFloatingPoint();  // jobs fold what they exchange
    WaitBesideComputation();
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return stopping || !jobs.empty(); });
      if (jobs.empty()) return;
      std::packaged_task<Status()> job = std::move(jobs.front());
      jobs.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }
};

CommunicationWorker::CommunicationWorker() : state_(std::make_unique<State>()) {
  state_->thread = StartThread(1, 1, "communication (parallel.overlap)",
                               [state = state_.get()] { state->RunJobs(); });
}

CommunicationWorker::~CommunicationWorker() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_one();
  state_->thread.join();
}

std::future<Status> CommunicationWorker::Post(std::function<Status()> job) {
  std::packaged_task<Status()> task(std::move(job));
  std::future<Status> done = task.get_future();
  {
    const std::lock_guard lock(state_->mutex);
    state_->jobs.push_back(std::move(task));
  }
  state_->changed.notify_one();
  return done;
}

}  // namespace elastor
