#ifndef ELASTOR_EMBEDDING_GROW_BUFFER_H_
#define ELASTOR_EMBEDDING_GROW_BUFFER_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "embedding/zero_pages.h"

namespace elastor {

// Scratch memory of a step: grows geometrically, never shrinks, is not initialised between uses.
template <typename T>
class GrowBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Returns room for `size` elements. The contents are lost if the buffer has to grow.
  T* Resize(int64_t size) {
    if (size > capacity_) {
      capacity_ = std::max(size, capacity_ + capacity_ / 2);
      const int64_t bytes = capacity_ * static_cast<int64_t>(sizeof(T));
      pages_ = ZeroPages(bytes, "exchange buffer", ZeroPages::Use::kFromTheBegin);
    }
    size_ = size;
    return data();
  }

  T* data() { return static_cast<T*>(pages_.data()); }
  const T* data() const { return static_cast<const T*>(pages_.data()); }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) { return data()[i]; }
  const T& operator[](int64_t i) const { return data()[i]; }

 private:
  ZeroPages pages_;
  int64_t capacity_ = 0;
  int64_t size_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_GROW_BUFFER_H_
