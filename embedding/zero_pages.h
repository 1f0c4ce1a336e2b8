#ifndef ELASTOR_EMBEDDING_ZERO_PAGES_H_
#define ELASTOR_EMBEDDING_ZERO_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace elastor {

// Address space that reads as zero and takes memory only where it is written. It is taken in pages
// of 2 MiB if the system grants them (random rows then miss the TLB far less). Arrays of more than
// 256 MiB that are written here and there have pages of 4 KiB. So have the first 256 KiB of an
// array that grows, which may stay small.
class ZeroPages {
 public:
  // kFromTheBegin: wholly. kGrowing: as far as it is needed.
  enum class Use { kHereAndThere, kFromTheBegin, kGrowing };

  ZeroPages() = default;
  // Ends the process naming `what` and the size when the system refuses the address space
  // (core/base/exhausted.h).
  ZeroPages(int64_t bytes, std::string_view what, Use use = Use::kHereAndThere);
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
