#include "core/cuda/runtime.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <mutex>

#include "core/base/floating_point.h"
#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "core/cuda/emulation/fault.h"
#include "core/cuda/emulation/memory.h"
#include "core/cuda/emulation/queue.h"
#include "core/cuda/emulation/schedule.h"
#include "core/cuda/emulation/streams.h"

namespace elastor::cuda {
namespace {

using emulation::CapturedWork;
using emulation::CurrentSchedule;
using emulation::KindOf;
using emulation::MemoryKind;
using emulation::Operation;
using emulation::Queue;
using emulation::Recording;

// Guards all streams, events and graphs; held while work runs.
std::mutex& Lock() {
  static std::mutex* const mutex = new std::mutex;
  return *mutex;
}

// Captures that the calling thread has begun. Meanwhile CUDA refuses it whatever waits or
// allocates.
thread_local int captures = 0;

void CheckNoCapture(const char* call) { CHECK_EQ(captures, 0) << call << " during a capture"; }

// The device at work: the host's floating point is the kernels', and device memory is open.
class Work {
 public:
  Work() : control_(FloatingPoint::Get()) {
    SetCanonicalFloatingPoint();
    emulation::OpenDeviceMemory(true);
  }
  ~Work() {
    if (CurrentSchedule().guard_device_memory) emulation::OpenDeviceMemory(false);
    FloatingPoint::Set(control_);
  }

 private:
  uint32_t control_;
};

void RunAll(Queue& queue, const Recording* until) {
  const Work work;
  emulation::RunQueue(queue, until);
}

// Takes an operation: into the graph that is captured, or into the stream.
void Take(Stream::State& stream, Operation operation) {
  if (stream.capture != nullptr) {
    stream.capture->work->operations.push_back(
        {stream.capture_queue, std::move(operation.run),
         operation.wait == nullptr ? -1 : operation.wait->number,
         operation.record == nullptr ? -1 : operation.record->number});
    return;
  }
  stream.queue.operations.push_back(std::move(operation));
  if (!CurrentSchedule().lazy) RunAll(stream.queue, nullptr);
}

void Join(Graph::State& graph, Stream::State& stream) {
  stream.capture = &graph;
  stream.capture_queue = graph.work->queues++;
  graph.streams.push_back(&stream);
}

// Without padding between rows a 2-D copy is one row.
struct Extent {
  size_t to_pitch;
  size_t from_pitch;
  size_t row_bytes;
  size_t rows;
};

void CopyRows(char* to, const char* from, const Extent& extent) {
  for (size_t row = 0; row < extent.rows; ++row) {
    std::memmove(to + row * extent.to_pitch, from + row * extent.from_pitch, extent.row_bytes);
  }
}

void CopyExtent(Stream& stream, void* to, const void* from, const Extent& extent) {
  if (extent.rows == 0 || extent.row_bytes == 0) return;
  char* const target = static_cast<char*>(to);
  const char* source = static_cast<const char*>(from);
  const MemoryKind target_kind = KindOf(to, (extent.rows - 1) * extent.to_pitch + extent.row_bytes);
  const MemoryKind source_kind =
      KindOf(from, (extent.rows - 1) * extent.from_pitch + extent.row_bytes);
  const bool pageable =
      target_kind == MemoryKind::kPageable || source_kind == MemoryKind::kPageable;
  const std::lock_guard lock(Lock());
  CHECK(!pageable || stream.state()->capture == nullptr)
      << "a captured copy needs page-locked host memory";
  if (source_kind == MemoryKind::kPageable && target_kind != MemoryKind::kPageable) {
    // Read before the call returns.
    Extent packed = extent;
    packed.from_pitch = extent.row_bytes;
    auto staged = std::make_shared<std::string>(extent.rows * extent.row_bytes, '\0');
    CopyRows(staged->data(), source,
             {extent.row_bytes, extent.from_pitch, extent.row_bytes, extent.rows});
    Take(*stream.state(), {[=] { CopyRows(target, staged->data(), packed); }, nullptr, nullptr});
    return;
  }
  Take(*stream.state(), {[=] { CopyRows(target, source, extent); }, nullptr, nullptr});
  // Written before the call returns.
  if (target_kind == MemoryKind::kPageable) RunAll(stream.state()->queue, nullptr);
}

}  // namespace

namespace emulation {

void Enqueue(Stream& stream, std::function<void()> work) {
  const std::lock_guard lock(Lock());
  Take(*stream.state(), {std::move(work), nullptr, nullptr});
}

int64_t Waiting(Stream& stream) {
  const std::lock_guard lock(Lock());
  return static_cast<int64_t>(stream.state()->queue.operations.size());
}

void CheckReachable(const void* address) {
  CHECK(address == nullptr || Reachable(address))
      << "a kernel is given a pointer to memory that the device cannot reach: " << address;
}

}  // namespace emulation

int DeviceCount() { return 1; }

StatusOr<DeviceInfo> OpenDevice(int index) {
  if (index != 0) {
    return UserError("device " + std::to_string(index) + ": the emulation has device 0 only");
  }
  emulation::InstallFaultHandler();
  DeviceInfo info;
  info.name = "emulated device";
  info.multiprocessors = 4;
  info.memory_bytes = emulation::kDeviceBytes;
  info.l2_bytes = 1 << 20;
  info.capability = "0.0";
  info.libraries = "emulation";
  info.emulated = true;
  return info;
}

void DieOfDevice(const std::string& what) {
  std::fprintf(stderr, "emulated device: %s\n", what.c_str());
  std::fflush(nullptr);
  _exit(3);
}

Event::Event() : state_(std::make_unique<State>()) {}
Event::~Event() = default;

void Event::Record(Stream& stream) {
  const std::lock_guard lock(Lock());
  Stream::State& on = *stream.state();
  auto recording = std::make_shared<Recording>();
  recording->queue = &on.queue;
  if (on.capture != nullptr) {
    recording->graph = on.capture;
    recording->number = on.capture->work->events++;
  }
  state_->recording = recording;
  state_->polls = 0;
  Take(on, {nullptr, nullptr, recording});
}

bool Event::Done() const {
  CheckNoCapture("Done");
  const std::lock_guard lock(Lock());
  const Recording* const recording = state_->recording.get();
  if (recording == nullptr || recording->done) return true;
  CHECK(recording->graph == nullptr) << "the event belongs to a captured graph";
  // A device goes on by itself: the second look finds it done.
  if (state_->polls++ > 0) RunAll(*recording->queue, recording);
  return recording->done;
}

void Event::Synchronize() const {
  CheckNoCapture("Synchronize");
  const std::lock_guard lock(Lock());
  const Recording* const recording = state_->recording.get();
  if (recording == nullptr || recording->done) return;
  CHECK(recording->graph == nullptr) << "the event belongs to a captured graph";
  RunAll(*recording->queue, recording);
}

double Event::MillisecondsSince(const Event& start) const {
  const std::lock_guard lock(Lock());
  for (const Event* event : {&start, this}) {
    const Recording* const recording = event->state_->recording.get();
    CHECK(recording != nullptr && recording->done) << "the time of an event that is not done";
  }
  return 0;
}

Stream::Stream(StreamPriority) : state_(std::make_unique<State>()) {}

Stream::~Stream() { Synchronize(); }

void Stream::Wait(const Event& event) {
  const std::lock_guard lock(Lock());
  const std::shared_ptr<Recording> recording = event.state()->recording;
  if (recording == nullptr) return;
  if (recording->graph != nullptr) {
    CHECK(!recording->graph->captured) << "the event was recorded in a capture that has ended";
    if (state_->capture == nullptr) Join(*recording->graph, *state_);
    CHECK(state_->capture == recording->graph) << "the event belongs to another capture";
  } else {
    CHECK(state_->capture == nullptr) << "a captured stream waits for an event outside its graph";
  }
  Take(*state_, {nullptr, recording, nullptr});
}

void Stream::Synchronize() {
  CheckNoCapture("Synchronize");
  const std::lock_guard lock(Lock());
  CHECK(state_->capture == nullptr) << "another thread captures the stream";
  RunAll(state_->queue, nullptr);
}

void* Stream::handle() const { return nullptr; }

Graph::Graph() : state_(std::make_unique<State>()) {}
Graph::~Graph() = default;

void Graph::BeginCapture(Stream& stream) {
  const std::lock_guard lock(Lock());
  CHECK(stream.state()->capture == nullptr) << "the stream is captured already";
  state_->captured = false;
  state_->work = std::make_shared<CapturedWork>();
  Join(*state_, *stream.state());
  ++captures;
}

void Graph::EndCapture(Stream& stream) {
  const std::lock_guard lock(Lock());
  CHECK(stream.state()->capture == state_.get() && stream.state()->capture_queue == 0)
      << "EndCapture on another stream than BeginCapture";
  for (Stream::State* const joined : state_->streams) joined->capture = nullptr;
  state_->streams.clear();
  --captures;
  state_->captured = true;
  CHECK(emulation::RunCaptured(*state_->work, /*lazy=*/true, /*dry=*/true))
      << "the captured stream does not wait for all work of the streams that joined it";
}

bool Graph::captured() const { return state_->captured; }

void Graph::Launch(Stream& stream) {
  const std::lock_guard lock(Lock());
  CHECK(state_->captured) << "nothing is captured";
  CHECK(stream.state()->capture == nullptr) << "a graph launched into a capture";
  Take(*stream.state(),
       {[work = state_->work] { emulation::RunCaptured(*work, CurrentSchedule().lazy, false); },
        nullptr, nullptr});
}

namespace internal {

void* AllocateDevice(Stream& stream, size_t bytes) {
  CheckNoCapture("allocation");
  void* const memory = emulation::AllocateMemory(MemoryKind::kDevice, bytes);
  if (memory == nullptr) {
    DieOfDevice("out of memory: needs " + std::to_string(bytes) + " bytes, " +
                std::to_string(emulation::FreeDeviceBytes()) + " free");
  }
  const std::lock_guard lock(Lock());
  // Again in stream order: work of other streams must not come before.
  if (CurrentSchedule().lazy) {
    Take(*stream.state(), {[=] { std::memset(memory, 0xff, bytes); }, nullptr, nullptr});
  }
  return memory;
}

void FreeDevice(Stream& stream, void* memory) {
  CheckNoCapture("memory freed");
  const std::lock_guard lock(Lock());
  Take(*stream.state(),
       {[=] { emulation::FreeMemory(MemoryKind::kDevice, memory); }, nullptr, nullptr});
}

void* AllocatePinned(size_t bytes) {
  CheckNoCapture("allocation");
  void* const memory = emulation::AllocateMemory(MemoryKind::kPinned, bytes);
  if (memory == nullptr) {
    DieOfDevice("no page-locked host memory: needs " + std::to_string(bytes) + " bytes");
  }
  return memory;
}

void FreePinned(void* memory) {
  CheckNoCapture("memory freed");
  emulation::FreeMemory(MemoryKind::kPinned, memory);
}

void CopyBytes(Stream& stream, void* to, const void* from, size_t bytes) {
  CopyExtent(stream, to, from, {bytes, bytes, bytes, 1});
}

void Copy2DBytes(Stream& stream, void* to, size_t to_pitch, const void* from, size_t from_pitch,
                 size_t row_bytes, size_t rows) {
  CHECK(row_bytes <= to_pitch && row_bytes <= from_pitch) << "rows overlap";
  CopyExtent(stream, to, from, {to_pitch, from_pitch, row_bytes, rows});
}

void FillBytes(Stream& stream, void* to, int byte, size_t bytes) {
  CHECK(KindOf(to, bytes) != MemoryKind::kPageable) << "a fill of memory outside the device";
  const std::lock_guard lock(Lock());
  Take(*stream.state(), {[=] { std::memset(to, byte, bytes); }, nullptr, nullptr});
}

}  // namespace internal
}  // namespace elastor::cuda
