#include "embedding/row_tier.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace elastor {
namespace {

const int64_t page_bytes = sysconf(_SC_PAGESIZE);

// Returns null where the folder of tests lies in memory.
std::unique_ptr<RowTier> OpenTier(int64_t pages) {
  auto tier = RowTier::Open({testing::TempDir(), pages * page_bytes});
  return tier.ok() ? std::move(tier).value() : nullptr;
}

// Returns the pages of a region that the kernel has in memory.
int64_t InMemory(const RowTier::Region& region, int64_t pages) {
  std::vector<unsigned char> resident(pages);
  EXPECT_EQ(mincore(region.data(), pages * page_bytes, resident.data()), 0);
  int64_t count = 0;
  for (const unsigned char page : resident) count += page & 1;
  return count;
}

TEST(RowTier, PagesLeaveMemoryAndComeBack) {
  constexpr int64_t kMost = 160, kPages = 1500;
  const std::unique_ptr<RowTier> tier = OpenTier(kMost);
  if (tier == nullptr) GTEST_SKIP() << "the folder of tests lies in memory";
  RowTier::Region* const region = tier->MakeRegion(kPages * page_bytes, "rows");
  const auto number = [&](int64_t page) -> int64_t& {
    return *reinterpret_cast<int64_t*>(region->data() + page * page_bytes + 8);
  };
  for (int64_t page = 0; page < kPages; ++page) {
    region->Write(page * page_bytes + 8, sizeof(int64_t));
    number(page) = 7 * page;
  }
  EXPECT_LE(tier->resident_bytes(), kMost * page_bytes);
  EXPECT_LE(InMemory(*region, kPages), kMost);
  EXPECT_GE(tier->file_bytes(), kPages * page_bytes);
  // Batches of 30 pages, every second fetched ahead.
  std::vector<RowTier::Page> next;
  for (int batch = 0; batch < 40; ++batch) {
    const bool fetched = !next.empty();
    std::vector<RowTier::Page> pages = std::move(next);
    next.clear();
    const auto page_of = [](int batch, int i) { return (batch * 53 + i * 31) % kPages; };
    for (int i = 0; i < 30 && !fetched; ++i) {
      region->AddPages(page_of(batch, i) * page_bytes, 64, &pages);
    }
    tier->Use(pages, fetched);
    for (int i = 0; i < 30 && batch % 2 == 0; ++i) {
      region->AddPages(page_of(batch + 1, i) * page_bytes, 64, &next);
    }
    if (!next.empty()) tier->UseNext(next);
    for (int i = 0; i < 30; ++i) ++number(page_of(batch, i));
  }
  tier->Use({}, true);
  EXPECT_LE(InMemory(*region, kPages), kMost);
  // A visit leaves nothing behind.
  std::vector<RowTier::Page> all;
  region->AddPages(0, kPages * page_bytes, &all);
  const std::vector<RowTier::Page> read = tier->Fetch(std::move(all));
  int64_t sum = 0;
  for (int64_t page = 0; page < kPages; ++page) sum += number(page) - 7 * page;
  EXPECT_EQ(sum, 40 * 30);
  tier->Drop(read);
  EXPECT_LE(InMemory(*region, kPages), kMost);
}

TEST(RowTier, ABatchTakesHalfOfTheMemoryAtMost) {
  const std::unique_ptr<RowTier> tier = OpenTier(100);
  if (tier == nullptr) GTEST_SKIP() << "the folder of tests lies in memory";
  RowTier::Region* const region = tier->MakeRegion(51 * page_bytes, "rows");
  std::vector<RowTier::Page> pages;
  for (int64_t page = 0; page < 51; ++page) region->Write(page * page_bytes, 1);
  region->AddPages(0, 50 * page_bytes, &pages);
  tier->Use(pages, false);
  EXPECT_EQ(tier->TakeExcess(), 0);
  region->AddPages(50 * page_bytes, 1, &pages);
  tier->UseNext(pages);
  tier->Use({}, true);
  EXPECT_EQ(tier->TakeExcess(), 51 * page_bytes);
  EXPECT_EQ(tier->TakeExcess(), 0);
}

TEST(RowTier, FoldersThatCannotHoldRows) {
  const std::string file = testing::TempDir() + "/file";
  std::ofstream(file) << "x";
  for (const auto& [path, found] : {std::pair<std::string, std::string>{file, "not a folder"},
                                    {file + "s", "No such file"},
                                    {"/proc", ""},
                                    {"/dev/shm", "its files lie in memory"}}) {
    const auto tier = RowTier::Open({path, 1 << 20});
    ASSERT_FALSE(tier.ok()) << path;
    EXPECT_EQ(tier.status().message().find("embedding.tier.path: " + path + ": "), 0);
    EXPECT_NE(tier.status().message().find(found), std::string::npos) << tier.status().message();
  }
}

}  // namespace
}  // namespace elastor
