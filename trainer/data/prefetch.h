#ifndef ELASTOR_TRAINER_DATA_PREFETCH_H_
#define ELASTOR_TRAINER_DATA_PREFETCH_H_

#include <cstdint>
#include <memory>

#include "core/base/leaves.h"
#include "core/base/status.h"
#include "trainer/data/dataset.h"

namespace elastor {

// Reads ranges of rows on threads of its own, a request on each, while the caller computes: Request
// what will be needed, later take it with Next, in the order of the requests. Each request waiting
// holds its rows in memory. Not thread-safe: one owner calls Request and Next.
class Prefetcher {
 public:
  // `dataset` must outlive the prefetcher. threads >= 1.
  Prefetcher(const Dataset* dataset, Split split, const RowOrder& order, int threads);
  ~Prefetcher();  // requests not taken are dropped
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  void Request(int64_t epoch, const Range& positions);
  // Waits for the oldest request and swaps its rows into *rows (whose memory is reused for a later
  // request). On error *rows is unspecified. REQUIRES: more Requests than Nexts so far.
  Status Next(Rows* rows);
  int64_t pending() const;  // requests not taken yet

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_PREFETCH_H_
