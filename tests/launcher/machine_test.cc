#include "launcher/machine.h"

#include <string>
#include <vector>

#include "core/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Empty: not to be had.
std::vector<int> CoresTaken(FreeResources* free, int cores) {
  return free->Take(cores, 0, 10).value_or(Share()).cores;
}

TEST(FreeResourcesTest, RunsGetCoresOfTheirOwn) {
  FreeResources free(Machine{.host = "h", .cores = {0, 2, 3, 5}, .memory_bytes = 100});
  EXPECT_THAT(CoresTaken(&free, 2), ElementsAre(0, 2));
  EXPECT_THAT(CoresTaken(&free, 1), ElementsAre(3));
  EXPECT_THAT(CoresTaken(&free, 2), IsEmpty());
  free.Return({.cores = {0, 2}, .memory_bytes = 10});
  EXPECT_THAT(CoresTaken(&free, 3), ElementsAre(0, 2, 5));
}

TEST(FreeResourcesTest, MemoryIsSharedOut) {
  FreeResources free(Machine{.host = "h", .cores = {0, 1, 2}, .memory_bytes = 100});
  EXPECT_TRUE(free.Take(1, 0, 60));
  EXPECT_FALSE(free.Take(1, 0, 41));
  EXPECT_TRUE(free.Take(1, 0, 40));
  free.Return({.cores = {0}, .memory_bytes = 60});
  EXPECT_TRUE(free.Take(1, 0, 60));
}

TEST(FreeResourcesTest, GpusAreSharedOut) {
  FreeResources free(Machine{.cores = {0, 1, 2, 3}, .memory_bytes = 100, .gpus = {0, 1, 4}});
  EXPECT_THAT(free.Take(1, 2, 1)->gpus, ElementsAre(0, 1));
  EXPECT_FALSE(free.Take(1, 2, 1));
  free.Return({.cores = {0}, .gpus = {0, 1}, .memory_bytes = 1});
  EXPECT_THAT(free.Take(1, 3, 1)->gpus, ElementsAre(0, 1, 4));
}

// A machine whose control group has these files.
size_t CoresUnder(const std::string& name, const std::string& cgroup, const std::string& directory,
                  const std::string& file, const std::string& text) {
  const std::string root = testing::TempDir() + "/" + name;
  EXPECT_TRUE(MakeDirectory(root + "/proc/self").ok());
  EXPECT_TRUE(WriteFileAtomically(root + "/proc/self/cgroup", cgroup).ok());
  EXPECT_TRUE(MakeDirectory(root + directory).ok());
  EXPECT_TRUE(WriteFileAtomically(root + directory + "/cpu.cfs_period_us", "100000\n").ok());
  EXPECT_TRUE(WriteFileAtomically(root + directory + "/" + file, text).ok());
  return ReadMachine(root).cores.size();
}

TEST(MachineTest, TheControlGroupLimitsTheCores) {
  const size_t all = ReadMachine().cores.size();
  ASSERT_GE(all, 1u);
  // Less than a core is one.
  EXPECT_EQ(CoresUnder("v2", "0::/a/b\n", "/sys/fs/cgroup/a", "cpu.max", "50000 100000\n"), 1u);
  EXPECT_EQ(CoresUnder("none", "0::/a\n", "/sys/fs/cgroup/a", "cpu.max", "max 100000\n"), all);
  EXPECT_EQ(CoresUnder("v1", "4:cpu,cpuacct:/a\n", "/sys/fs/cgroup/cpu/a", "cpu.cfs_quota_us",
                       "150000\n"),
            1u);
  EXPECT_EQ(CoresUnder("v1_none", "4:cpuacct,cpu:/a\n", "/sys/fs/cgroup/cpu/a", "cpu.cfs_quota_us",
                       "-1\n"),
            all);
}

TEST(MachineTest, DevicesAreFilesWithANumber) {
  const std::string root = testing::TempDir() + "/devices";
  ASSERT_TRUE(MakeDirectory(root + "/dev").ok());
  for (const char* name :
       {"nvidia1", "nvidia0", "nvidiactl", "nvidia", "nvidia99999999999", "x0"}) {
    ASSERT_TRUE(WriteFileAtomically(root + "/dev/" + name, "").ok());
  }
  EXPECT_EQ(ReadMachine(root).gpus, (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace elastor
