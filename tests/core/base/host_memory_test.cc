#include "core/base/host_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace elastor {
namespace {

// A host's /proc and /sys, made for one test.
class FakeHost {
 public:
  explicit FakeHost(const std::string& name) : root_(testing::TempDir() + "host_" + name) {
    std::filesystem::remove_all(root_);
    Write("/proc/meminfo",
          "MemTotal:       24684092 kB\nMemFree:        21989268 kB\n"
          "MemAvailable:   22752536 kB\n");
    Write("/proc/sys/kernel/random/boot_id", "0efd63a4-4b39\n");
  }

  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  HostMemory Read() const { return ReadHostMemory(root_); }
  const std::string& root() const { return root_; }

 private:
  const std::string root_;
};

TEST(HostMemoryTest, AHostWithoutControlGroups) {
  const HostMemory memory = FakeHost("plain").Read();
  EXPECT_EQ(memory.bytes, int64_t{24684092} * 1024);
  EXPECT_EQ(memory.available, int64_t{22752536} * 1024);
  EXPECT_EQ(memory.boot_id, "0efd63a4-4b39");
  EXPECT_FALSE(memory.host.empty());
  EXPECT_EQ(memory.group, "");
  EXPECT_EQ(memory.group_bytes, kNoMemoryLimit);
}

TEST(HostMemoryTest, PeakOfThisProcess) {
  const FakeHost host("peak");
  host.Write("/proc/self/status", "Name:\tt\nVmPeak:\t  900 kB\nVmHWM:\t  300 kB\nVmRSS:\t 5 kB\n");
  EXPECT_EQ(PeakMemoryBytes(host.root()), 300 * 1024);
  EXPECT_EQ(PeakMemoryBytes(host.root() + "/none"), 0);
  const int64_t before = PeakMemoryBytes();
  std::vector<char> more(size_t{1} << 26, 'x');
  EXPECT_GE(PeakMemoryBytes(), std::max(before, static_cast<int64_t>(more.size())));
}

// Slurm limits a job or a step; the process's own group below it has no limit.
TEST(HostMemoryTest, ALimitOfVersion2AboveTheProcesssGroup) {
  const FakeHost host("v2");
  host.Write("/proc/self/cgroup", "0::/job_7/step_0/task_1\n");
  host.Write("/proc/self/mountinfo",
             "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
             "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  const std::string job = "/sys/fs/cgroup/job_7";
  host.Write(job + "/step_0/task_1/memory.max", "max\n");
  host.Write(job + "/step_0/memory.max", "3000\n");
  host.Write(job + "/step_0/memory.current", "1200\n");
  host.Write(job + "/step_0/memory.stat", "anon 700\ninactive_file 500\n");
  host.Write(job + "/memory.max", "4000\n");
  host.Write(job + "/memory.current", "0\n");
  const HostMemory memory = host.Read();
  EXPECT_EQ(memory.group, job + "/step_0");
  EXPECT_EQ(memory.group_bytes, 3000);
  EXPECT_EQ(memory.group_available, 2300);  // pages of files are taken back
}

TEST(HostMemoryTest, ALimitOfVersion1InAContainer) {
  const FakeHost host("v1");
  host.Write("/proc/self/cgroup", "5:cpu,cpuacct:/docker/f00\n4:memory:/docker/f00\n0::/\n");
  host.Write("/proc/self/mountinfo",
             "35 31 0:32 /docker/f00 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
             "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  host.Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n");
  host.Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "6000\n");
  const HostMemory memory = host.Read();
  EXPECT_EQ(memory.group, "/sys/fs/cgroup/memory");
  EXPECT_EQ(memory.group_bytes, 5000);
  EXPECT_EQ(memory.group_available, 0);

  // How version 1 writes that there is no limit.
  host.Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(host.Read().group, "");
}

TEST(HostMemoryTest, WhatTheKernelDoesNotTellHasNoLimit) {
  const HostMemory memory = ReadHostMemory(testing::TempDir() + "nowhere");
  EXPECT_EQ(memory.bytes, kNoMemoryLimit);
  EXPECT_EQ(memory.available, kNoMemoryLimit);
}

TEST(HostMemoryTest, TheLimitOfAddressSpaceIsTheProcesssOwn) {
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  const rlimit old = limit;
  limit.rlim_cur = rlim_t{1} << 46;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  EXPECT_EQ(ReadHostMemory().address_space_bytes, int64_t{1} << 46);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &old), 0);
  EXPECT_GT(ReadHostMemory().bytes, 0);
}

}  // namespace
}  // namespace elastor
