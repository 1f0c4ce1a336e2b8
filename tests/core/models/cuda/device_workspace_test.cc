#include "core/models/cuda/device_workspace.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace elastor::cuda {
namespace {

TEST(DeviceWorkspaceTest, ModulesThatDoNotRunAtOnceShareTemporaries) {
  Stream stream;
  DeviceWorkspace workspace(&stream);
  const int outer = workspace.Temporary({.row = 8});
  int first[2], second;
  {
    const DeviceWorkspace::Frame frame(&workspace);
    for (int& slot : first) slot = workspace.Temporary({.row = 100, .leaf = 4, .once = 1});
  }
  const int kept = workspace.Keep({.leaf = 12});
  {
    const DeviceWorkspace::Frame frame(&workspace);
    second = workspace.Temporary({.once = 1000});
  }
  workspace.Scratch({.row = 4});
  workspace.Scratch({.once = 10});
  for (const auto& [rows, leaves] : {std::pair(3, 1), std::pair(10, 2)}) {
    workspace.Reserve(rows, leaves);
    const auto begin = [&](int slot) {
      const auto address = reinterpret_cast<uintptr_t>(workspace.Slot<char>(slot));
      EXPECT_EQ(address % 256, 0u);
      return static_cast<int64_t>(address);
    };
    EXPECT_EQ(begin(first[0]), begin(second));
    EXPECT_GE(begin(first[0]) - begin(outer), 8 * rows);
    EXPECT_GE(begin(first[1]) - begin(first[0]), 100 * rows + 4 * leaves + 1);
    EXPECT_GE(begin(outer) - begin(kept), 12 * leaves);  // kept slots lie first
    EXPECT_GE(begin(outer) - reinterpret_cast<intptr_t>(workspace.scratch()), 4 * rows + 10);
  }
  // A smaller pass moves nothing.
  const char* place = workspace.Slot<char>(kept);
  workspace.Reserve(5, 1);
  EXPECT_EQ(workspace.Slot<char>(kept), place);
}

}  // namespace
}  // namespace elastor::cuda
