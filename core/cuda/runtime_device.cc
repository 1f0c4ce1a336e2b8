#include <cuda_runtime_api.h>

#include "core/cuda/device_error.h"
#include "core/cuda/runtime.h"

namespace elastor::cuda {

using internal::Check;
using internal::Handle;
using internal::UseDevice;

struct Event::State {
  cudaEvent_t event = nullptr;
  bool recorded = false;
};

Event::Event() : state_(std::make_unique<State>()) {
  UseDevice();
  Check(cudaEventCreate(&state_->event), "cudaEventCreate");
}

// Errors of destruction are those of earlier work, which its waits report, or the end of the
// process.
Event::~Event() { static_cast<void>(cudaEventDestroy(state_->event)); }

void Event::Record(Stream& stream) {
  Check(cudaEventRecord(state_->event, Handle(stream)), "cudaEventRecord");
  state_->recorded = true;
}

bool Event::Done() const {
  UseDevice();
  const cudaError_t error = cudaEventQuery(state_->event);
  if (error == cudaErrorNotReady) {
    // The thread's last error now; CUB would take it for its own launch's.
    static_cast<void>(cudaGetLastError());
    return false;
  }
  Check(error, "cudaEventQuery");
  return true;
}

void Event::Synchronize() const {
  UseDevice();
  Check(cudaEventSynchronize(state_->event), "cudaEventSynchronize");
}

double Event::MillisecondsSince(const Event& start) const {
  UseDevice();
  float milliseconds = 0;
  Check(cudaEventElapsedTime(&milliseconds, start.state_->event, state_->event),
        "cudaEventElapsedTime");
  return milliseconds;
}

struct Stream::State {
  cudaStream_t stream = nullptr;
};

Stream::Stream(StreamPriority priority) : state_(std::make_unique<State>()) {
  UseDevice();
  int least = 0;
  int greatest = 0;
  Check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  Check(cudaStreamCreateWithPriority(&state_->stream, cudaStreamNonBlocking,
                                     priority == StreamPriority::kHigh ? greatest : least),
        "cudaStreamCreateWithPriority");
}

Stream::~Stream() {
  static_cast<void>(cudaStreamSynchronize(state_->stream));
  static_cast<void>(cudaStreamDestroy(state_->stream));
}

void Stream::Wait(const Event& event) {
  // A capture refuses events from outside it, also those that were never recorded.
  if (!event.state()->recorded) return;
  Check(cudaStreamWaitEvent(Handle(*this), event.state()->event, cudaEventWaitDefault),
        "cudaStreamWaitEvent");
}

void Stream::Synchronize() { Check(cudaStreamSynchronize(Handle(*this)), "cudaStreamSynchronize"); }

void* Stream::handle() const {
  UseDevice();
  return state_->stream;
}

struct Graph::State {
  cudaGraphExec_t executable = nullptr;

  void Destroy() {
    if (executable != nullptr) static_cast<void>(cudaGraphExecDestroy(executable));
    executable = nullptr;
  }
};

Graph::Graph() : state_(std::make_unique<State>()) {}

Graph::~Graph() { state_->Destroy(); }

void Graph::BeginCapture(Stream& stream) {
  state_->Destroy();
  // Other threads go on to allocate and wait meanwhile.
  Check(cudaStreamBeginCapture(Handle(stream), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
}

void Graph::EndCapture(Stream& stream) {
  cudaGraph_t graph = nullptr;
  Check(cudaStreamEndCapture(Handle(stream), &graph), "cudaStreamEndCapture");
  Check(cudaGraphInstantiate(&state_->executable, graph, 0), "cudaGraphInstantiate");
  Check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  Check(cudaGraphUpload(state_->executable, Handle(stream)), "cudaGraphUpload");
}

bool Graph::captured() const { return state_->executable != nullptr; }

void Graph::Launch(Stream& stream) {
  Check(cudaGraphLaunch(state_->executable, Handle(stream)), "cudaGraphLaunch");
}

}  // namespace elastor::cuda
