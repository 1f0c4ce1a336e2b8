#ifndef ELASTOR_EMBEDDING_BLOCK_ARENA_H_
#define ELASTOR_EMBEDDING_BLOCK_ARENA_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "embedding/zero_pages.h"

namespace elastor {

// Blocks of memory that many small tables grow in, side by side in pages of 2 MiB. A block has a
// power of two of bytes, kLeast or more, begins at a cache line, and reads as zeros when it is
// taken. Memory that is given back goes to the system, but for that of blocks below a page.
// Thread-safe.
class BlockArena {
 public:
  static constexpr int64_t kLeast = 128;

  // bytes: address space of all blocks. The process ends with the line of a lack of memory, naming
  // `what`, when a block goes beyond it.
  BlockArena(int64_t bytes, std::string what);

  void* Take(int64_t bytes);
  void Return(void* block, int64_t bytes);
  // Forgets all blocks.
  void Clear();

 private:
  std::vector<char*>& FreeOf(int64_t bytes);

  const int64_t bytes_;
  const std::string what_;
  ZeroPages pages_;
  std::mutex mutex_;
  int64_t used_ = 0;
  std::array<std::vector<char*>, 64> free_;  // by the logarithm of the size
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_BLOCK_ARENA_H_
