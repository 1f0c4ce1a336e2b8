#include "core/cuda/emulation/shared_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace elastor::cuda::emulation {
namespace {

constexpr int kPoison = 0xff;
constexpr size_t kAlignment = 16;
constexpr size_t kGuardBytes = 64 << 10;  // a whole page
constexpr size_t kArenaBytes = 4 * kGuardBytes;

}  // namespace

void SharedMemory::Reserve(size_t dynamic_bytes) {
  if (arena_ == nullptr) {
    void* const map = mmap(nullptr, kArenaBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) std::abort();
    arena_ = static_cast<char*>(map);
    mprotect(arena_ + kArenaBytes, kGuardBytes, PROT_NONE);
  }
  dynamic_bytes_ = (dynamic_bytes + kAlignment - 1) / kAlignment * kAlignment;
  dynamic_ = arena_ + kArenaBytes - dynamic_bytes_;
}

void SharedMemory::StartBlock() {
  std::memset(dynamic_, kPoison, dynamic_bytes_);
  declared_.clear();
}

void SharedMemory::Declare(void* variable, size_t bytes) {
  if (std::find(declared_.begin(), declared_.end(), variable) != declared_.end()) return;
  declared_.push_back(variable);
  std::memset(variable, kPoison, bytes);
}

}  // namespace elastor::cuda::emulation
