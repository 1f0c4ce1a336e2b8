#include "trainer/data/prefetch.h"

#include <glog/logging.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace elastor {

struct Prefetcher::State {
  struct Wanted {
    int64_t epoch;
    Range positions;
  };
  struct Ready {
    Status status;
    Rows rows;
  };

  State(const Dataset* dataset, Split split, const RowOrder& order)
      : dataset(dataset), split(split), order(order), reader([this] { ReadLoop(); }) {}

  void ReadLoop();

  const Dataset* const dataset;
  const Split split;
  const RowOrder order;

  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex.
  bool stopping = false;
  int64_t pending = 0;
  std::deque<Wanted> wanted;
  std::deque<Ready> ready;
  std::vector<Rows> spare;  // memory to reuse

  std::thread reader;  // last: it uses everything above
};

void Prefetcher::State::ReadLoop() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return stopping || !wanted.empty(); });
    if (stopping) return;
    const Wanted next = wanted.front();
    wanted.pop_front();
    Ready done;
    if (!spare.empty()) {
      done.rows = std::move(spare.back());
      spare.pop_back();
    }
    lock.unlock();
    done.status = dataset->Read(split, order, next.epoch, next.positions, &done.rows);
    lock.lock();
    ready.push_back(std::move(done));
    changed.notify_all();
  }
}

Prefetcher::Prefetcher(const Dataset* dataset, Split split, const RowOrder& order)
    : state_(std::make_unique<State>(dataset, split, order)) {}

Prefetcher::~Prefetcher() {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  state_->reader.join();
}

void Prefetcher::Request(int64_t epoch, const Range& positions) {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->wanted.push_back({epoch, positions});
    ++state_->pending;
  }
  state_->changed.notify_all();
}

Status Prefetcher::Next(Rows* rows) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  CHECK_GT(state_->pending, 0) << "Next without a Request";
  state_->changed.wait(lock, [this] { return !state_->ready.empty(); });
  State::Ready done = std::move(state_->ready.front());
  state_->ready.pop_front();
  --state_->pending;
  std::swap(*rows, done.rows);
  state_->spare.push_back(std::move(done.rows));
  return std::move(done.status);
}

int64_t Prefetcher::pending() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->pending;
}

}  // namespace elastor
