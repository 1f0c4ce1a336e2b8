#ifndef ELASTOR_TRAINER_DATA_PREFETCH_H_
#define ELASTOR_TRAINER_DATA_PREFETCH_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/leaves.h"
#include "core/base/status.h"
#include "trainer/data/dataset.h"

namespace elastor {

// Reads ranges of rows on threads of its own, a request on each, while the caller computes: Request
// what will be needed, later wait for it with Next, in the order of the requests. Not thread-safe:
// one owner calls Request and Next.
class Prefetcher {
 public:
  // `dataset` must outlive the prefetcher. threads >= 1.
  Prefetcher(const Dataset* dataset, Split split, const RowOrder& order, int threads);
  ~Prefetcher();  // requests not begun are dropped
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // take(rows): called, unless reading fails, on the thread that read them, which reuses what
  // memory is left there for a later request.
  void Request(int64_t epoch, const Range& positions, std::function<void(Rows*)> take);
  // Waits until the oldest request's rows are taken. REQUIRES: more Requests than Nexts so far.
  Status Next();
  int64_t pending() const;  // requests not taken yet

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_PREFETCH_H_
