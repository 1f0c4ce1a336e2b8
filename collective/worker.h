#ifndef ELASTOR_COLLECTIVE_WORKER_H_
#define ELASTOR_COLLECTIVE_WORKER_H_

#include <functional>
#include <future>
#include <memory>

#include "core/base/status.h"

namespace elastor {

// The one thread that owns the communicator while a step is overlapped: runs jobs first in, first
// out. Every rank posts the same jobs in the same order, hence the same collectives.
// The computing thread must not use the communicator between Post and the end of that job's future.
class CommunicationWorker {
 public:
  CommunicationWorker();
  ~CommunicationWorker();  // runs the queued jobs, then joins
  CommunicationWorker(const CommunicationWorker&) = delete;
  CommunicationWorker& operator=(const CommunicationWorker&) = delete;

  std::future<Status> Post(std::function<Status()> job);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_WORKER_H_
