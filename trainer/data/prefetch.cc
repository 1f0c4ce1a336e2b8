#include "trainer/data/prefetch.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/exhausted.h"
#include "core/base/log.h"

namespace elastor {

struct Prefetcher::State {
  // A request, until it is taken.
  struct Request {
    int64_t epoch;
    Range positions;
    std::function<Status(Rows*)> take;
    bool begun = false;
    bool done = false;
    Status status = {};
  };

  State(const Dataset* dataset, Split split, const RowOrder& order, int threads)
      : dataset(dataset), split(split), order(order) {
    CHECK_GE(threads, 1);
    for (int i = 1; i <= threads; ++i) {
      readers.push_back(StartThread(i, threads, "reading ahead", [this] { ReadLoop(); }));
    }
  }

  void ReadLoop();
  Request* FirstNotBegun();

  const Dataset* const dataset;
  const Split split;
  const RowOrder order;

  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex.
  bool stopping = false;
  std::deque<Request> requests;  // oldest first; elements stay in place

  std::vector<std::thread> readers;  // last: they use everything above
};

Prefetcher::State::Request* Prefetcher::State::FirstNotBegun() {
  for (Request& request : requests) {
    if (!request.begun) return &request;
  }
  return nullptr;
}

void Prefetcher::State::ReadLoop() {
  const MemoryPurpose purpose("batches read ahead");
  Rows rows;
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    Request* request = nullptr;
    changed.wait(lock, [&] { return stopping || (request = FirstNotBegun()) != nullptr; });
    if (stopping) return;
    request->begun = true;
    lock.unlock();
    request->status = dataset->Read(split, order, request->epoch, request->positions, &rows);
    if (request->status.ok()) request->status = request->take(&rows);
    lock.lock();
    request->done = true;
    changed.notify_all();
  }
}

Prefetcher::Prefetcher(const Dataset* dataset, Split split, const RowOrder& order, int threads)
    : state_(std::make_unique<State>(dataset, split, order, threads)) {}

Prefetcher::~Prefetcher() {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  for (std::thread& reader : state_->readers) reader.join();
}

void Prefetcher::Request(int64_t epoch, const Range& positions, std::function<Status(Rows*)> take) {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->requests.push_back({.epoch = epoch, .positions = positions, .take = std::move(take)});
  }
  state_->changed.notify_all();
}

Status Prefetcher::Next() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  CHECK(!state_->requests.empty()) << "Next without a Request";
  State::Request& oldest = state_->requests.front();
  state_->changed.wait(lock, [&] { return oldest.done; });
  Status status = std::move(oldest.status);
  state_->requests.pop_front();
  return status;
}

int64_t Prefetcher::pending() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return static_cast<int64_t>(state_->requests.size());
}

}  // namespace elastor
