#include "core/cuda/emulation/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace elastor::cuda::emulation {
namespace {

constexpr size_t kAlignment = 256;
constexpr unsigned char kPoison = 0xff;
// Between the end of an allocation and its guard page.
constexpr unsigned char kCanary = 0xa5;

struct Allocation {
  MemoryKind kind;
  size_t bytes;
  char* pages;
  size_t page_bytes;  // without the guard pages
  bool open;          // one of its pages, at least
};

std::mutex mutex;
std::map<const char*, Allocation>& Allocations() {
  static auto* const allocations = new std::map<const char*, Allocation>;
  return *allocations;
}
// Page ranges.
std::vector<std::pair<const char*, const char*>>& Freed() {
  static auto* const freed = new std::vector<std::pair<const char*, const char*>>;
  return *freed;
}
int64_t device_bytes_used = 0;
bool device_memory_open = true;

[[noreturn]] void Die(const char* what, const void* address) {
  std::fprintf(stderr, "device memory: %s at %p\n", what, address);
  std::abort();
}

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// The allocation that begins at or before `address`, when it reaches so far.
const Allocation* Find(const char* address, const char** begin) {
  auto next = Allocations().upper_bound(address);
  if (next == Allocations().begin()) return nullptr;
  const auto& [start, allocation] = *--next;
  if (address > start + allocation.bytes) return nullptr;
  *begin = start;
  return &allocation;
}

// The allocation of device memory whose pages hold `address`.
Allocation* Holder(const char* address) {
  // Allocations end with their pages and begin in the first of them.
  auto found = Allocations().upper_bound(address);
  if (found != Allocations().begin()) {
    const Allocation& before = std::prev(found)->second;
    if (address < before.pages + before.page_bytes) --found;
  }
  if (found == Allocations().end() || found->second.kind != MemoryKind::kDevice) return nullptr;
  return address < found->second.pages ? nullptr : &found->second;
}

void Open(Allocation* allocation) {
  if (mprotect(allocation->pages, allocation->page_bytes, PROT_READ | PROT_WRITE) != 0) {
    Die("cannot be opened", allocation->pages);
  }
  allocation->open = true;
}

}  // namespace

size_t PageBytes() {
  static const size_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}

void* AllocateMemory(MemoryKind kind, size_t bytes) {
  const std::lock_guard lock(mutex);
  if (kind == MemoryKind::kDevice &&
      static_cast<int64_t>(bytes) > kDeviceBytes - device_bytes_used) {
    return nullptr;
  }
  // Guard page, pages whose end is the allocation's, guard page.
  const size_t page_bytes = RoundUp(bytes, PageBytes());
  void* const map = mmap(nullptr, page_bytes + 2 * PageBytes(), PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  char* const pages = static_cast<char*>(map) + PageBytes();
  if (mprotect(pages, page_bytes, PROT_READ | PROT_WRITE) != 0) return nullptr;
  if (kind == MemoryKind::kDevice) device_bytes_used += bytes;
  char* const memory = pages + page_bytes - RoundUp(bytes, kAlignment);
  std::memset(memory, kPoison, bytes);
  std::memset(memory + bytes, kCanary, pages + page_bytes - (memory + bytes));
  const bool open = kind != MemoryKind::kDevice || device_memory_open;
  if (!open) mprotect(pages, page_bytes, PROT_NONE);
  Allocations()[memory] = {kind, bytes, pages, page_bytes, open};
  return memory;
}

void FreeMemory(MemoryKind kind, void* memory) {
  const std::lock_guard lock(mutex);
  const auto found = Allocations().find(static_cast<char*>(memory));
  if (found == Allocations().end() || found->second.kind != kind) {
    Die("freed but not allocated", memory);
  }
  Allocation& allocation = found->second;
  Open(&allocation);
  for (const char* p = found->first + allocation.bytes;
       p < allocation.pages + allocation.page_bytes; ++p) {
    if (static_cast<unsigned char>(*p) != kCanary) Die("written past the end", memory);
  }
  if (kind == MemoryKind::kDevice) device_bytes_used -= allocation.bytes;
  // The addresses stay taken, so that nothing else is ever found there.
  if (mmap(allocation.pages, allocation.page_bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
    Die("cannot be unmapped", memory);
  }
  Freed().emplace_back(allocation.pages, allocation.pages + allocation.page_bytes);
  Allocations().erase(found);
}

MemoryKind KindOf(const void* address, size_t bytes) {
  const std::lock_guard lock(mutex);
  const char* begin = nullptr;
  const Allocation* const found = Find(static_cast<const char*>(address), &begin);
  if (found == nullptr) return MemoryKind::kPageable;
  if (static_cast<const char*>(address) + bytes > begin + found->bytes) {
    Die("copy past the end of an allocation", address);
  }
  return found->kind;
}

bool Reachable(const void* address) {
  const std::lock_guard lock(mutex);
  const char* begin = nullptr;
  return Find(static_cast<const char*>(address), &begin) != nullptr;
}

Place PlaceOf(const void* address) {
  const char* const at = static_cast<const char*>(address);
  for (const auto& [memory, allocation] : Allocations()) {
    const char* const end = allocation.pages + allocation.page_bytes;
    if (at < allocation.pages - PageBytes() || at >= end + PageBytes()) continue;
    return at >= allocation.pages && at < end ? Place::kClosed : Place::kBehindEnd;
  }
  for (const auto& [begin, end] : Freed()) {
    if (at >= begin && at < end) return Place::kFreed;
  }
  return Place::kUnknown;
}

int64_t FreeDeviceBytes() {
  const std::lock_guard lock(mutex);
  return kDeviceBytes - device_bytes_used;
}

void OpenDeviceMemory(bool open) {
  const std::lock_guard lock(mutex);
  device_memory_open = open;
  if (open) return;
  for (auto& [memory, allocation] : Allocations()) {
    if (allocation.kind != MemoryKind::kDevice || !allocation.open) continue;
    mprotect(allocation.pages, allocation.page_bytes, PROT_NONE);
    allocation.open = false;
  }
}

bool OpenTouched(const void* address) {
  const std::lock_guard lock(mutex);
  Allocation* const allocation = Holder(static_cast<const char*>(address));
  if (allocation == nullptr || !device_memory_open) return false;
  Open(allocation);
  return true;
}

bool OpenPage(const void* address, bool write) {
  const std::lock_guard lock(mutex);
  Allocation* const allocation = Holder(static_cast<const char*>(address));
  if (allocation == nullptr) return false;
  const uintptr_t page = reinterpret_cast<uintptr_t>(address) / PageBytes() * PageBytes();
  mprotect(reinterpret_cast<void*>(page), PageBytes(), write ? PROT_READ | PROT_WRITE : PROT_READ);
  allocation->open = true;
  return true;
}

}  // namespace elastor::cuda::emulation
