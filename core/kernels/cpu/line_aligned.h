#ifndef ELASTOR_CORE_KERNELS_CPU_LINE_ALIGNED_H_
#define ELASTOR_CORE_KERNELS_CPU_LINE_ALIGNED_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace elastor {

// Returns `elements` elements of `memory`, which is grown as needed, from the start of a cache line
// on.
template <typename T>
T* LineAligned(int64_t elements, std::vector<T>& memory) {
  constexpr size_t kLine = 64;
  memory.resize(std::max<size_t>(memory.size(), elements + kLine / sizeof(T)));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory.data());
  return memory.data() + (kLine - begin % kLine) % kLine / sizeof(T);
}

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_CPU_LINE_ALIGNED_H_
