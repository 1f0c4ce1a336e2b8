#include "core/cuda/emulation/block.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/cuda/emulation/sequence.h"
#include "core/cuda/emulation/shared_memory.h"
#include "core/cuda/emulation/switch_stack.h"

namespace elastor::cuda::emulation {
namespace {

constexpr int kLanes = 32;
constexpr unsigned kMaxThreads = 1024;
constexpr size_t kStackBytes = 128 << 10;
constexpr size_t kGuardBytes = 64 << 10;  // a whole page
constexpr int kStackShifts = 61;
constexpr size_t kStackShiftBytes = 64;  // a line of the cache

// A stack that runs threads of a block: one after another, as long as none of them waits.
struct Worker {
  void* top = nullptr;  // of the stack while it does not run, below the registers it has saved
};

struct Thread {
  uint3 index;
  Worker* worker = nullptr;  // null before it starts and after it ends
  WarpBarrier barrier;
  unsigned mask;
  uint64_t value;
  Exchange exchange;
};

// The threads of a warp in sets of bits: one of them runs, or they are in one of these sets, or
// they have ended.
struct Warp {
  int begin;  // first thread
  unsigned can_run;
  unsigned waits_for_warp;
  unsigned waits_for_block;
  uint64_t delivered[kLanes];
};

class Executor {
 public:
  void Run(dim3 grid, dim3 block, size_t shared_bytes, Body body);

  const uint64_t* WaitForWarp(WarpBarrier barrier, unsigned mask, uint64_t value,
                              Exchange exchange);
  void WaitForBlock();
  SharedMemory& shared() { return shared_; }
  bool running() const { return running_; }

 private:
  void Prepare(dim3 block, size_t shared_bytes);
  void RunBlock();
  void RunWarp(Warp* warp);
  void StartTurn();
  bool ReleaseLanes(Warp& warp);
  bool MaskIsThere(const Warp& warp, const Thread& thread) const;
  void ReleaseBlock();

  static void EnterStack();
  Worker* IdleWorker();
  void Work(Worker* self);
  Worker* Next();
  void GoOn(Worker* self);

  Body body_;
  std::vector<Thread> threads_;
  dim3 prepared_ = {0, 0, 0};  // the block that they are of
  std::vector<Warp> warps_;
  Sequence block_order_, warp_order_, lane_order_;
  int workers_ = 0;
  std::vector<Worker*> idle_;
  Worker host_;  // the stack that called Run
  // The lanes of the warp take turns in this order.
  Warp* warp_ = nullptr;
  const int* next_lane_ = nullptr;
  const int* end_of_turn_ = nullptr;
  Thread* current_ = nullptr;
  int finished_ = 0;
  bool running_ = false;
  SharedMemory shared_;
};

// Never destroyed: its workers never return.
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
  if (block.x != prepared_.x || block.y != prepared_.y || block.z != prepared_.z) {
    prepared_ = block;
    threads_.resize(count);
    for (int i = 0; i < count; ++i) {
      const unsigned u = i;
      threads_[i].index = {u % block.x, u / block.x % block.y, u / block.x / block.y};
    }
  }
  warps_.resize((count + kLanes - 1) / kLanes);
  warp_order_.Reset(static_cast<int>(warps_.size()));
  lane_order_.Reset(kLanes);
  shared_.Reserve(shared_bytes);
}

void Executor::RunBlock() {
  shared_.StartBlock();
  const int count = static_cast<int>(threads_.size());
  for (size_t w = 0; w < warps_.size(); ++w) {
    const int begin = static_cast<int>(w) * kLanes;
    warps_[w].begin = begin;
    warps_[w].can_run = ~0u >> std::max(0, kLanes - (count - begin));
    warps_[w].waits_for_warp = warps_[w].waits_for_block = 0;
  }
  finished_ = 0;
  while (true) {
    for (const int w : warp_order_.Next()) RunWarp(&warps_[w]);
    if (finished_ == count) return;
    ReleaseBlock();
  }
}

// Runs the warp until every lane has ended or waits for the block.
void Executor::RunWarp(Warp* warp) {
  warp_ = warp;
  StartTurn();
  GoOn(&host_);
}

void Executor::StartTurn() {
  const std::vector<int>& order = lane_order_.Next();
  next_lane_ = order.data();
  end_of_turn_ = next_lane_ + order.size();
}

// Whether all lanes of the thread's mask have come to its barrier.
bool Executor::MaskIsThere(const Warp& warp, const Thread& thread) const {
  if ((thread.mask & ~warp.waits_for_warp) != 0) return false;
  for (unsigned rest = thread.mask; rest != 0; rest &= rest - 1) {
    const Thread& other = threads_[warp.begin + std::countr_zero(rest)];
    if (other.barrier != thread.barrier || other.mask != thread.mask ||
        other.exchange != thread.exchange) {
      return false;
    }
  }
  return true;
}

// No lane of the warp can run. True when some can now.
bool Executor::ReleaseLanes(Warp& warp) {
  for (unsigned rest = warp.waits_for_warp; rest != 0;) {
    const Thread& first = threads_[warp.begin + std::countr_zero(rest)];
    rest &= rest - 1;
    if (!MaskIsThere(warp, first)) continue;
    const unsigned mask = first.mask;
    for (unsigned lanes = mask; lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      warp.delivered[lane] = threads_[warp.begin + lane].value;
    }
    if (first.exchange != nullptr) first.exchange(warp.delivered);
    warp.waits_for_warp &= ~mask;
    warp.can_run |= mask;
    rest &= ~mask;
  }
  if (warp.can_run != 0) return true;
  if (warp.waits_for_warp != 0) {
    current_ = &threads_[warp.begin + std::countr_zero(warp.waits_for_warp)];
    threadIdx = current_->index;
    DieOfKernel("waits for lanes of its mask that exited or wait for something else");
  }
  return false;
}

// Every thread has ended or waits for the block.
void Executor::ReleaseBlock() {
  for (Warp& warp : warps_) {
    if (finished_ > 0 && warp.waits_for_block != 0) {
      threadIdx = threads_[warp.begin + std::countr_zero(warp.waits_for_block)].index;
      DieOfKernel("waits at __syncthreads, which other threads of the block have passed by");
    }
    warp.can_run = std::exchange(warp.waits_for_block, 0);
  }
}

Worker* Executor::IdleWorker() {
  if (!idle_.empty()) {
    Worker* const worker = idle_.back();
    idle_.pop_back();
    return worker;
  }
  void* const map = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (map == MAP_FAILED || mprotect(map, kGuardBytes, PROT_NONE) != 0) {
    DieOfLaunch("no memory for the stacks of its threads");
  }
  // Without a shift, all stacks compete for the same lines of the cache.
  const size_t shift = workers_++ % kStackShifts * kStackShiftBytes;
  char* const end = static_cast<char*>(map) + kGuardBytes + kStackBytes - shift;
  return new Worker{NewStack(end, &Executor::EnterStack)};
}

void Executor::EnterStack() { TheExecutor().Work(TheExecutor().current_->worker); }

// Never returns: an idle worker sleeps in its last line.
void Executor::Work(Worker* self) {
  while (true) {
    body_.run(body_.context);
    current_->worker = nullptr;
    ++finished_;
    idle_.push_back(self);
    GoOn(self);
  }
}

// Chooses the next lane of the warp, and returns its stack; the host's when none can run.
Worker* Executor::Next() {
  do {
    while (next_lane_ != end_of_turn_) {
      const int lane = *next_lane_++;
      if ((warp_->can_run >> lane & 1) == 0) continue;
      warp_->can_run &= ~(1u << lane);
      current_lane = lane;
      current_ = &threads_[warp_->begin + lane];
      threadIdx = current_->index;
      if (current_->worker == nullptr) current_->worker = IdleWorker();
      return current_->worker;
    }
    if (!ReleaseLanes(*warp_)) return &host_;
    StartTurn();
  } while (true);
}

// Runs the next lane; returns when it is the turn of the caller, whose stack is `self`.
void Executor::GoOn(Worker* self) {
  Worker* const next = Next();
  if (next != self) ElastorSwitchStack(&self->top, next->top);
}

const uint64_t* Executor::WaitForWarp(WarpBarrier barrier, unsigned mask, uint64_t value,
                                      Exchange exchange) {
  if ((mask >> current_lane & 1) == 0) DieOfKernel("is not in the mask that it gives");
  current_->barrier = barrier;
  current_->mask = mask;
  current_->value = value;
  current_->exchange = exchange;
  warp_->waits_for_warp |= 1u << current_lane;
  GoOn(current_->worker);
  return warp_->delivered;
}

void Executor::WaitForBlock() {
  warp_->waits_for_block |= 1u << current_lane;
  GoOn(current_->worker);
}

}  // namespace

void RunGrid(dim3 grid, dim3 block, size_t shared_bytes, Body body) {
  TheExecutor().Run(grid, block, shared_bytes, body);
}

void* DynamicSharedMemory() { return TheExecutor().shared().dynamic(); }

const uint64_t* WaitForWarp(WarpBarrier barrier, unsigned mask, uint64_t value, Exchange exchange) {
  return TheExecutor().WaitForWarp(barrier, mask, value, exchange);
}

void WaitForBlock() { TheExecutor().WaitForBlock(); }

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
