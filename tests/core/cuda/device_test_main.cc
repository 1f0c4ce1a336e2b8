#include <gtest/gtest.h>

#include <cstdio>

#include "core/cuda/runtime.h"
#include "tests/core/cuda/schedules.h"

namespace elastor::cuda {
namespace {

// Names every test that does not run.
void PrintSkipped(const char* reason) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      std::printf("[  SKIPPED ] %s.%s (%s)\n", suite.name(), suite.GetTestInfo(t)->name(), reason);
    }
  }
}

int Main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const StatusOr<DeviceInfo> device = OpenDevice(0);
  if (!device.ok()) {
    PrintSkipped(device.status().message().c_str());
    return 0;
  }
  return RunUnderSchedules(argc, argv, [] { return RUN_ALL_TESTS(); });
}

}  // namespace
}  // namespace elastor::cuda

int main(int argc, char** argv) { return elastor::cuda::Main(argc, argv); }
