#ifndef ELASTOR_TRAINER_DATA_PREFETCH_H_
#define ELASTOR_TRAINER_DATA_PREFETCH_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/leaves.h"
#include "core/base/status.h"
#include "trainer/data/dataset.h"

namespace elastor {

// Reads ranges of rows on threads of its own, one request per thread, while the caller computes.
// The caller Requests rows early and later waits for them with Next, in the order of the requests.
// Not thread-safe: one owner calls Request and Next.
class Prefetcher {
 public:
  // `dataset` must outlive the prefetcher. threads >= 1.
  Prefetcher(const Dataset* dataset, Split split, const RowOrder& order, int threads);
  ~Prefetcher();  // requests not begun are dropped
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Requests rows. Unless reading fails, take(rows) is called on the thread that read them. The
  // memory that `take` leaves in *rows is reused for a later request.
  void Request(int64_t epoch, const Range& positions, std::function<Status(Rows*)> take);
  // Waits until the oldest request's rows are taken. Returns the error of reading or of `take`.
  // REQUIRES: more Requests than Nexts so far.
  Status Next();
  int64_t pending() const;  // requests not taken yet

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_PREFETCH_H_
