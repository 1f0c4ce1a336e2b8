#include "core/cuda/emulation/streams.h"

#include <utility>

namespace elastor::cuda::emulation {
namespace {

void Run(const std::function<void()>& operation) {
  if (!operation) return;
  if (before_call != nullptr) before_call();
  operation();
}

}  // namespace

void RunQueue(Queue& queue, const Recording* until) {
  while (!queue.operations.empty() && (until == nullptr || !until->done)) {
    const Operation operation = std::move(queue.operations.front());
    queue.operations.pop_front();
    if (operation.wait != nullptr && !operation.wait->done) {
      RunQueue(*operation.wait->queue, operation.wait.get());
    }
    Run(operation.run);
    if (operation.record != nullptr) operation.record->done = true;
  }
}

bool RunCaptured(const CapturedWork& work, bool lazy, bool dry) {
  if (!lazy) {
    for (const CapturedOperation& operation : work.operations) {
      if (!dry) Run(operation.run);
    }
    return true;
  }
  std::vector<Queue> queues(work.queues);
  std::vector<std::shared_ptr<Recording>> recordings(work.events);
  for (const CapturedOperation& captured : work.operations) {
    Queue& queue = queues[captured.queue];
    Operation operation;
    if (captured.run && !dry) operation.run = std::cref(captured.run);
    if (captured.wait >= 0) operation.wait = recordings[captured.wait];
    if (captured.record >= 0) {
      operation.record = recordings[captured.record] = std::make_shared<Recording>();
      operation.record->queue = &queue;
    }
    queue.operations.push_back(std::move(operation));
  }
  RunQueue(queues[0], nullptr);
  for (const Queue& queue : queues) {
    if (!queue.operations.empty()) return false;
  }
  return true;
}

}  // namespace elastor::cuda::emulation
