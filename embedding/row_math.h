#ifndef ELASTOR_EMBEDDING_ROW_MATH_H_
#define ELASTOR_EMBEDDING_ROW_MATH_H_

#include <cstdint>

namespace elastor {

// Brings a row that will be read soon into the cache; or also written, by this core alone.
enum class RowUse { kRead, kWrite };
template <RowUse kUse = RowUse::kRead, typename T>
inline void PrefetchRow(const T* row, int64_t elements) {
  constexpr int64_t kLineElements = 64 / sizeof(T);
  for (int64_t i = 0; i < elements; i += kLineElements) {
    __builtin_prefetch(row + i, kUse == RowUse::kWrite ? 1 : 0);
  }
}

// y += x.
template <typename T>
inline void AddTo(int64_t length, const T* __restrict x, T* __restrict y) {
  for (int64_t i = 0; i < length; ++i) y[i] += x[i];
}

// sum = a + b; sum may be a or b.
template <typename T>
inline void Add(int64_t length, const T* a, const T* b, T* sum) {
#pragma GCC ivdep
  for (int64_t i = 0; i < length; ++i) sum[i] = a[i] + b[i];
}

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_ROW_MATH_H_
