#ifndef ELASTOR_CORE_CUDA_EMULATION_STREAMS_H_
#define ELASTOR_CORE_CUDA_EMULATION_STREAMS_H_

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/cuda/runtime.h"

// How the emulation represents streams, events and graphs. One lock of the process guards all of
// it and is held while work runs (runtime_emulated.cc).

namespace elastor::cuda {

namespace emulation {

struct Queue;

// One Event::Record.
struct Recording {
  Queue* queue = nullptr;  // the queue that will record the event; valid until it has
  bool done = false;
  // Set for a recording within a capture: the graph, and the event's number in it.
  Graph::State* graph = nullptr;
  int number = -1;
};

struct Operation {
  std::function<void()> run;          // unless empty
  std::shared_ptr<Recording> wait;    // the recording to wait for before run; null: none
  std::shared_ptr<Recording> record;  // the recording to complete after run; null: none
};

struct Queue {
  std::deque<Operation> operations;
};

// If set, called before every operation that runs (traffic.h).
inline void (*before_call)() = nullptr;

// Runs the queue up to and including the operation that completes `until` (null: the whole queue),
// and only those operations of other queues that it waits for.
void RunQueue(Queue& queue, const Recording* until);

// A call on a stream that is captured.
struct CapturedOperation {
  int queue = 0;  // number of the stream in the capture; 0 is the one that began it
  std::function<void()> run;
  int wait = -1;    // number of an event
  int record = -1;  // number of an event
};
struct CapturedWork {
  std::vector<CapturedOperation> operations;  // in the order of the calls
  int queues = 0;
  int events = 0;
};

// Runs captured work in the order of the calls or, if `lazy`, the first stream's work and other
// streams' work only when it is waited for. Returns false if some work is left that the first
// stream does not wait for. `dry`: checks this without running anything.
bool RunCaptured(const CapturedWork& work, bool lazy, bool dry);

}  // namespace emulation

struct Event::State {
  std::shared_ptr<emulation::Recording> recording;  // null if the event was never recorded
  mutable int polls = 0;
};

struct Stream::State {
  emulation::Queue queue;
  Graph::State* capture = nullptr;
  int capture_queue = 0;
};

struct Graph::State {
  bool captured = false;
  std::shared_ptr<emulation::CapturedWork> work;
  std::vector<Stream::State*> streams;  // while capturing
};

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_EMULATION_STREAMS_H_
