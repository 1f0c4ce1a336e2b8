#include <gtest/gtest.h>

#include "core/cuda/runtime.h"
#include "tests/core/cuda/schedules.h"

namespace elastor::cuda {
namespace {

// Skips every test where there is no device.
class NeedsDevice : public testing::Environment {
 public:
  explicit NeedsDevice(Status status) : status_(std::move(status)) {}
  void SetUp() override {
    if (!status_.ok()) GTEST_SKIP() << status_.message();
  }

 private:
  Status status_;
};

int Main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // Streams may have threads: a child begins anew.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const StatusOr<DeviceInfo> device = OpenDevice(0);
  testing::AddGlobalTestEnvironment(new NeedsDevice(device.status()));
  return RunUnderSchedules(argc, argv, [] { return RUN_ALL_TESTS(); });
}

}  // namespace
}  // namespace elastor::cuda

int main(int argc, char** argv) { return elastor::cuda::Main(argc, argv); }
