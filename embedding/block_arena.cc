#include "embedding/block_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/base/exhausted.h"

namespace elastor {
namespace {

constexpr int64_t kPage = 4096;

}  // namespace

BlockArena::BlockArena(int64_t bytes, std::string what)
    : bytes_(bytes), what_(std::move(what)), pages_(bytes, what_, ZeroPages::Use::kGrowing) {}

std::vector<char*>& BlockArena::FreeOf(int64_t bytes) {
  return free_[std::countr_zero(static_cast<uint64_t>(bytes))];
}

void* BlockArena::Take(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  std::vector<char*>& free = FreeOf(bytes);
  if (!free.empty()) {
    char* const block = free.back();
    free.pop_back();
    return block;
  }
  const int64_t unit = std::min(bytes, kPage);
  const int64_t begin = (used_ + unit - 1) / unit * unit;
  if (begin + bytes > bytes_) EndForMemory(static_cast<uint64_t>(begin + bytes), what_);
  used_ = begin + bytes;
  return static_cast<char*>(pages_.data()) + begin;
}

void BlockArena::Return(void* block, int64_t bytes) {
  if (bytes < kPage || madvise(block, bytes, MADV_DONTNEED) != 0) std::memset(block, 0, bytes);
  const std::lock_guard lock(mutex_);
  FreeOf(bytes).push_back(static_cast<char*>(block));
}

void BlockArena::Clear() {
  const std::lock_guard lock(mutex_);
  pages_ = ZeroPages();  // before new ones
  pages_ = ZeroPages(bytes_, what_, ZeroPages::Use::kGrowing);
  used_ = 0;
  for (std::vector<char*>& free : free_) free.clear();
}

}  // namespace elastor
