#ifndef ELASTOR_EMBEDDING_ZERO_PAGES_H_
#define ELASTOR_EMBEDDING_ZERO_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace elastor {

// Address space that reads as zero and takes memory only where it is written. It is taken in pages
// of 4 KiB or, up to 256 MiB in all, in pages of 2 MiB if the system grants them (random rows then
// miss the TLB far less).
class ZeroPages {
 public:
  ZeroPages() = default;
  // Ends the process naming `what` and the size when the system refuses the address space
  // (core/base/exhausted.h).
  ZeroPages(int64_t bytes, std::string_view what);
  ~ZeroPages();
  ZeroPages(ZeroPages&& other) noexcept;
  ZeroPages& operator=(ZeroPages&& other) noexcept;

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_ZERO_PAGES_H_
