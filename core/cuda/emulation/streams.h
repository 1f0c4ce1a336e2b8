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
  Queue* queue = nullptr;  // that will do it; valid until done
  bool done = false;
  // Of a capture: the graph and the event's number in it.
  Graph::State* graph = nullptr;
  int number = -1;
};

struct Operation {
  std::function<void()> run;          // unless empty
  std::shared_ptr<Recording> wait;    // first, unless null
  std::shared_ptr<Recording> record;  // last, unless null
};

struct Queue {
  std::deque<Operation> operations;
};

// Called before every operation that runs, unless null (traffic.h).
inline void (*before_call)() = nullptr;

// Runs the queue up to and with what does `until` (null: all of it), and of other queues what that
// waits for and no more.
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

// Runs captured work: as it was called, or (`lazy`) the first stream, and others when it waits for
// them. False when work is left that the first stream does not wait for. `dry`: only looks.
bool RunCaptured(const CapturedWork& work, bool lazy, bool dry);

}  // namespace emulation

struct Event::State {
  std::shared_ptr<emulation::Recording> recording;  // null: never
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
