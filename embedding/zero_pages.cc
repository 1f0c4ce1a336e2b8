#include "embedding/zero_pages.h"

#include <sys/mman.h>

#include <utility>

#include "core/base/exhausted.h"
#include "core/base/log.h"

namespace elastor {

ZeroPages::ZeroPages(int64_t bytes, std::string_view what, Use use) {
  CHECK_GE(bytes, 0) << what;
  if (bytes == 0) return;
  bytes_ = static_cast<size_t>(bytes);
  data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
               -1, 0);
  if (data_ == MAP_FAILED) EndForMemory(bytes_, what);
  // A hint: fewer misses of the address cache. Not for large arrays that are touched here and
  // there: every touch would take, and clear, 2 MiB.
  constexpr size_t kMostHuge = size_t{256} << 20;
  if (use == Use::kFromTheBegin || bytes_ <= kMostHuge) madvise(data_, bytes_, MADV_HUGEPAGE);
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
