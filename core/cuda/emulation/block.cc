#include "core/cuda/emulation/block.h"

#include <alloca.h>

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "core/cuda/emulation/sequence.h"
#include "core/cuda/emulation/shared_memory.h"

namespace elastor::cuda::emulation {
namespace {

using boost::context::fiber;

constexpr int kLanes = 32;
constexpr unsigned kMaxThreads = 1024;
constexpr size_t kStackBytes = 128 << 10;
constexpr int kStackShifts = 61;
constexpr int kCacheLine = 64;

// A fiber that runs threads of a block: one after another, as long as none of them waits.
struct Worker {
  int number = 0;
  fiber here;
  fiber scheduler;
};

enum class ThreadState { kFinished, kRunnable, kWaitsForWarp, kWaitsForBlock };

struct Thread {
  uint3 index;
  ThreadState state;
  Worker* worker;
  WarpBarrier barrier;
  unsigned mask;
  uint64_t value;
};

struct Warp {
  int begin;  // first thread
  int count;  // threads
  bool started;
  uint64_t delivered[kLanes];
};

class Executor {
 public:
  void Run(dim3 grid, dim3 block, size_t shared_bytes, Body body);

  const uint64_t* WaitForWarp(WarpBarrier barrier, unsigned mask, uint64_t value);
  void WaitForBlock();
  int lane() const { return static_cast<int>((current_ - threads_.data()) % kLanes); }
  SharedMemory& shared() { return shared_; }
  bool running() const { return running_; }

 private:
  void Prepare(dim3 block, size_t shared_bytes);
  void RunBlock();
  bool RunWarp(Warp& warp);
  void StartLanes(Warp& warp);
  bool ReleaseLanes(Warp& warp);
  bool MaskIsThere(const Warp& warp, const Thread& thread) const;
  void ReleaseBlock();

  Worker* IdleWorker();
  void Work(Worker* self);
  void Resume(Thread* thread);
  void Suspend();

  Body body_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  Sequence block_order_, warp_order_, lane_order_;
  int workers_ = 0;
  std::vector<Worker*> idle_;
  Thread* current_ = nullptr;
  // Lanes that the workers shall start, in this order.
  Warp* starting_ = nullptr;
  std::vector<int> to_start_;
  size_t next_to_start_ = 0;
  int finished_ = 0;
  bool running_ = false;
  SharedMemory shared_;
};

// Never destroyed: its fibers never return.
Executor& TheExecutor() {
  static Executor* const executor = new Executor;
  return *executor;
}

[[noreturn]] void DieOfLaunch(const char* what) {
  std::fprintf(stderr, "kernel launch: %s\n", what);
  std::abort();
}

void Executor::Run(dim3 grid, dim3 block, size_t shared_bytes, Body body) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads < 1 || threads > kMaxThreads || block.z > 64) DieOfLaunch("bad block dimensions");
  if (grid.x < 1 || grid.y < 1 || grid.z < 1) DieOfLaunch("empty grid");
  if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) DieOfLaunch("grid too large");
  if (shared_bytes > size_t{kMaxSharedBytes}) DieOfLaunch("more than 227 KiB of shared memory");
  body_ = body;
  gridDim = grid;
  blockDim = block;
  Prepare(block, shared_bytes);
  running_ = true;
  const int64_t blocks = int64_t{grid.x} * grid.y * grid.z;
  block_order_.Reset(static_cast<int>(blocks));
  for (const int i : block_order_.Next()) {
    blockIdx = {i % grid.x, i / grid.x % grid.y, static_cast<unsigned>(i / grid.x / grid.y)};
    RunBlock();
  }
  running_ = false;
}

void Executor::Prepare(dim3 block, size_t shared_bytes) {
  const int count = static_cast<int>(block.x * block.y * block.z);
  threads_.resize(count);
  for (int i = 0; i < count; ++i) {
    const unsigned u = i;
    threads_[i].index = {u % block.x, u / block.x % block.y, u / block.x / block.y};
  }
  warps_.resize((count + kLanes - 1) / kLanes);
  warp_order_.Reset(static_cast<int>(warps_.size()));
  lane_order_.Reset(kLanes);
  shared_.Reserve(shared_bytes);
}

void Executor::RunBlock() {
  shared_.StartBlock();
  const int count = static_cast<int>(threads_.size());
  for (Thread& thread : threads_) thread.state = ThreadState::kRunnable;
  for (size_t w = 0; w < warps_.size(); ++w) {
    const int begin = static_cast<int>(w) * kLanes;
    warps_[w].begin = begin;
    warps_[w].count = std::min(kLanes, count - begin);
    warps_[w].started = false;
  }
  finished_ = 0;
  while (true) {
    for (const int w : warp_order_.Next()) {
      while (RunWarp(warps_[w])) {
      }
    }
    if (finished_ == count) return;
    ReleaseBlock();
  }
}

// Runs every lane that can until it waits. False when none could.
bool Executor::RunWarp(Warp& warp) {
  bool ran = false;
  if (!warp.started) {
    warp.started = true;
    StartLanes(warp);
    ran = true;
  } else {
    for (const int lane : lane_order_.Next()) {
      if (lane >= warp.count) continue;
      Thread* const thread = &threads_[warp.begin + lane];
      if (thread->state != ThreadState::kRunnable) continue;
      Resume(thread);
      ran = true;
    }
  }
  return ran && ReleaseLanes(warp);
}

void Executor::StartLanes(Warp& warp) {
  starting_ = &warp;
  to_start_.clear();
  for (const int lane : lane_order_.Next()) {
    if (lane < warp.count) to_start_.push_back(lane);
  }
  next_to_start_ = 0;
  while (next_to_start_ < to_start_.size()) {
    Worker* const worker = IdleWorker();
    worker->here = std::move(worker->here).resume();
  }
}

// Whether all lanes of the thread's mask have come to its barrier.
bool Executor::MaskIsThere(const Warp& warp, const Thread& thread) const {
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((thread.mask >> lane & 1) == 0) continue;
    if (lane >= warp.count) return false;
    const Thread& other = threads_[warp.begin + lane];
    if (other.state != ThreadState::kWaitsForWarp || other.barrier != thread.barrier ||
        other.mask != thread.mask) {
      return false;
    }
  }
  return true;
}

// No lane of the warp can run. True when some can now.
bool Executor::ReleaseLanes(Warp& warp) {
  bool waits = false, completed = false;
  for (int first = 0; first < warp.count; ++first) {
    Thread& thread = threads_[warp.begin + first];
    if (thread.state != ThreadState::kWaitsForWarp) continue;
    waits = true;
    if (!MaskIsThere(warp, thread)) continue;
    completed = true;
    const unsigned mask = thread.mask;
    for (int lane = 0; lane < warp.count; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      Thread& other = threads_[warp.begin + lane];
      warp.delivered[lane] = other.value;
      other.state = ThreadState::kRunnable;
    }
  }
  if (waits && !completed) {
    for (int lane = 0; lane < warp.count; ++lane) {
      current_ = &threads_[warp.begin + lane];
      if (current_->state == ThreadState::kWaitsForWarp) break;
    }
    threadIdx = current_->index;
    DieOfKernel("waits for lanes of its mask that exited or wait for something else");
  }
  return completed;
}

// Every thread has exited or waits for the block.
void Executor::ReleaseBlock() {
  if (finished_ > 0) {
    for (Thread& thread : threads_) {
      current_ = &thread;
      if (thread.state == ThreadState::kWaitsForBlock) break;
    }
    threadIdx = current_->index;
    DieOfKernel("waits at __syncthreads, which other threads of the block have passed by");
  }
  for (Thread& thread : threads_) thread.state = ThreadState::kRunnable;
}

Worker* Executor::IdleWorker() {
  if (!idle_.empty()) {
    Worker* const worker = idle_.back();
    idle_.pop_back();
    return worker;
  }
  Worker* const worker = new Worker;
  worker->number = workers_++;
  worker->here = fiber(std::allocator_arg, boost::context::protected_fixedsize_stack(kStackBytes),
                       [this, worker](fiber&& scheduler) {
                         worker->scheduler = std::move(scheduler);
                         // Otherwise all stacks compete for the same lines of the cache.
                         void* const shift = alloca(worker->number % kStackShifts * kCacheLine);
                         asm volatile("" ::"r"(shift) : "memory");
                         Work(worker);
                         return fiber();
                       });
  return worker;
}

// Never returns: an idle worker sleeps in its last line.
void Executor::Work(Worker* self) {
  while (true) {
    while (next_to_start_ < to_start_.size()) {
      current_ = &threads_[starting_->begin + to_start_[next_to_start_++]];
      current_->worker = self;
      threadIdx = current_->index;
      body_.run(body_.context);
      current_->state = ThreadState::kFinished;
      ++finished_;
    }
    idle_.push_back(self);
    self->scheduler = std::move(self->scheduler).resume();
  }
}

void Executor::Resume(Thread* thread) {
  current_ = thread;
  threadIdx = thread->index;
  Worker* const worker = thread->worker;
  worker->here = std::move(worker->here).resume();
}

void Executor::Suspend() {
  Worker* const self = current_->worker;
  self->scheduler = std::move(self->scheduler).resume();
}

const uint64_t* Executor::WaitForWarp(WarpBarrier barrier, unsigned mask, uint64_t value) {
  if ((mask >> lane() & 1) == 0) DieOfKernel("is not in the mask that it gives");
  current_->barrier = barrier;
  current_->mask = mask;
  current_->value = value;
  current_->state = ThreadState::kWaitsForWarp;
  Suspend();
  return warps_[(current_ - threads_.data()) / kLanes].delivered;
}

void Executor::WaitForBlock() {
  current_->state = ThreadState::kWaitsForBlock;
  Suspend();
}

}  // namespace

void RunGrid(dim3 grid, dim3 block, size_t shared_bytes, Body body) {
  TheExecutor().Run(grid, block, shared_bytes, body);
}

void* DynamicSharedMemory() { return TheExecutor().shared().dynamic(); }

const uint64_t* WaitForWarp(WarpBarrier barrier, unsigned mask, uint64_t value) {
  return TheExecutor().WaitForWarp(barrier, mask, value);
}

void WaitForBlock() { TheExecutor().WaitForBlock(); }

int CurrentLane() { return TheExecutor().lane(); }

void PoisonSharedBytes(void* variable, size_t bytes) {
  TheExecutor().shared().Declare(variable, bytes);
}

void DescribeRunningThread(char* text, size_t bytes) {
  text[0] = '\0';
  if (!TheExecutor().running()) return;
  std::snprintf(text, bytes, "thread (%u, %u, %u) of block (%u, %u, %u)", threadIdx.x, threadIdx.y,
                threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z);
}

void DieOfKernel(const char* what) {
  char thread[128];
  DescribeRunningThread(thread, sizeof(thread));
  std::fprintf(stderr, "kernel: %s %s\n", thread, what);
  std::abort();
}

}  // namespace elastor::cuda::emulation
