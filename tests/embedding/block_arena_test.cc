#include "embedding/block_arena.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace elastor {
namespace {

struct Block {
  char* data;
  int64_t bytes;
};

// Takes blocks of many sizes, expects zeros in them, and fills them.
std::vector<Block> TakeBlocks(BlockArena* arena) {
  std::vector<Block> blocks;
  for (int round = 0; round < 3; ++round) {
    for (int64_t bytes = BlockArena::kLeast; bytes <= 1 << 18; bytes *= 2) {
      const Block block = {static_cast<char*>(arena->Take(bytes)), bytes};
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % 64, 0u) << bytes;
      EXPECT_EQ(std::count(block.data, block.data + bytes, 0), bytes);
      std::memset(block.data, 0xff, bytes);
      blocks.push_back(block);
    }
  }
  return blocks;
}

TEST(BlockArenaTest, BlocksReadAsZerosAlsoWhenTheyComeAgain) {
  BlockArena arena(8 << 20, "keys");
  std::vector<Block> first = TakeBlocks(&arena);
  for (const Block& block : first) arena.Return(block.data, block.bytes);
  std::vector<Block> second = TakeBlocks(&arena);
  const auto by_place = [](const Block& a, const Block& b) { return a.data < b.data; };
  std::ranges::sort(first, by_place);
  std::ranges::sort(second, by_place);
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].data, second[i].data);
    if (i == 0) continue;
    EXPECT_GE(second[i].data, second[i - 1].data + second[i - 1].bytes);
  }
  arena.Clear();
  TakeBlocks(&arena);
}

TEST(BlockArenaDeathTest, ABlockBeyondTheAddressSpaceIsOneLine) {
  BlockArena arena(1 << 20, "keys of embedding table 'user'");
  arena.Take(1 << 19);
  arena.Take(1 << 19);
  EXPECT_EXIT(arena.Take(128), testing::ExitedWithCode(3),
              "cannot allocate 1048704 bytes for keys of embedding table 'user';[^\n]*\n$");
}

}  // namespace
}  // namespace elastor
