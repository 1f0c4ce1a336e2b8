#include "embedding/zero_pages.h"

#include <unistd.h>

#include <fstream>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace elastor {
namespace {

constexpr int64_t kMebibyte = 1 << 20;

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(ZeroPagesTest, ReadAsZeroAndKeepWhatIsWritten) {
  ZeroPages pages(3 * kMebibyte, "test");
  char* const data = static_cast<char*>(pages.data());
  EXPECT_EQ(data[2 * kMebibyte], 0);
  data[2 * kMebibyte] = 7;
  const ZeroPages moved = std::move(pages);
  EXPECT_EQ(static_cast<char*>(moved.data())[2 * kMebibyte], 7);
}

// A table of a billion rows of which a few thousand occur must not take memory for the rest.
TEST(ZeroPagesTest, ALargeArrayTouchedHereAndThereTakesLittleMemory) {
  constexpr int64_t kTouches = 1024;
  const int64_t before = ResidentBytes();
  const ZeroPages pages(kTouches * 4 * kMebibyte, "test");
  for (int64_t i = 0; i < kTouches; ++i) static_cast<char*>(pages.data())[i * 4 * kMebibyte] = 1;
  EXPECT_LT(ResidentBytes() - before, 64 * kMebibyte);
}

// Every table of keys that come and go has such arrays, on each rank.
TEST(ZeroPagesTest, AnArrayThatGrowsTakesLittleMemoryWhileItIsSmall) {
  constexpr int64_t kArrays = 100;
  const int64_t before = ResidentBytes();
  std::vector<ZeroPages> arrays;
  for (int64_t i = 0; i < kArrays; ++i) {
    arrays.emplace_back(64 * kMebibyte, "test", ZeroPages::Use::kGrowing);
    char* const data = static_cast<char*>(arrays.back().data());
    data[0] = 1;
    data[200 << 10] = 1;
  }
  EXPECT_LT(ResidentBytes() - before, kArrays * kMebibyte / 2);
  static_cast<char*>(arrays[0].data())[64 * kMebibyte - 1] = 1;
}

TEST(ZeroPagesDeathTest, RefusedAddressSpaceIsOneLineWithItsPurpose) {
  EXPECT_EXIT(
      ZeroPages(int64_t{1} << 60, "rows of embedding table 'C1'"), testing::ExitedWithCode(3),
      "cannot allocate 1152921504606846976 bytes for rows of embedding table 'C1';[^\n]*\n$");
}

}  // namespace
}  // namespace elastor
