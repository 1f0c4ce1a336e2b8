#include "embedding/zero_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/base/exhausted.h"
#include "core/base/log.h"

namespace elastor {

ZeroPages::ZeroPages(int64_t bytes, std::string_view what, Use use) {
  CHECK_GE(bytes, 0) << what;
  if (bytes == 0) return;
  constexpr size_t kHugePage = size_t{2} << 20;
  // Huge pages of a growing array begin here. A larger part in small pages saves memory of small
  // arrays, and costs speed.
  constexpr size_t kSmall = size_t{256} << 10;
  constexpr size_t kMostHuge = size_t{256} << 20;
  const bool grows = use == Use::kGrowing;
  const size_t page = sysconf(_SC_PAGESIZE);
  bytes_ = (static_cast<size_t>(bytes) + page - 1) / page * page;
  const size_t room = bytes_ + (grows ? kHugePage : 0);
  void* const mapped = mmap(nullptr, room, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) EndForMemory(bytes_, what);
  char* const begin = static_cast<char*>(mapped);
  char* data = begin;
  if (grows) {
    data += (kHugePage - (reinterpret_cast<uintptr_t>(begin) + kSmall) % kHugePage) % kHugePage;
    if (data > begin) munmap(begin, data - begin);
    if (data + bytes_ < begin + room) munmap(data + bytes_, begin + room - data - bytes_);
  }
  data_ = data;
  // A hint: fewer misses of the address cache. Not for large arrays that are touched here and
  // there: every touch would take, and clear, 2 MiB.
  if (use == Use::kHereAndThere && bytes_ > kMostHuge) return;
  const size_t small = grows ? std::min(kSmall, bytes_) : 0;
  madvise(data + small, bytes_ - small, MADV_HUGEPAGE);
}

ZeroPages::~ZeroPages() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

ZeroPages::ZeroPages(ZeroPages&& other) noexcept { *this = std::move(other); }

ZeroPages& ZeroPages::operator=(ZeroPages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace elastor
