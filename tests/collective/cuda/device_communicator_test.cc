// The suite alone: ranks as threads on one device, through the host. Under mpirun: the world's
// ranks, over NCCL where the build has it, else through the host.
#include "collective/cuda/device_communicator.h"

#include <cstdlib>
#include <thread>
#include <vector>

#include "collective/cuda/nccl_backend.h"
#include "gtest/gtest.h"
#include "tests/collective/cuda/device_communicator_suite.h"

namespace elastor::cuda {
namespace {

bool UnderMpirun() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

// The world and its device communicator, for the process's life: MPI starts once.
class World : public testing::Environment {
 public:
  static inline std::unique_ptr<Communicator> host;
  static inline std::unique_ptr<DeviceCommunicator> device;

 private:
  void SetUp() override {
    if (!UnderMpirun()) return;
    auto made = MakeWorldCommunicator({.deadline_seconds = kSuiteDeadlineSeconds});
    ASSERT_TRUE(made.ok()) << made.status().message();
    host = std::move(made).value();
    if (DeviceCount() == 0) return;
    auto communicator = MakeDeviceCommunicator(host.get(), kSuiteDeadlineSeconds);
    ASSERT_TRUE(communicator.ok()) << communicator.status().message();
    device = std::move(communicator).value();
  }
  void TearDown() override {
    device.reset();
    host.reset();
  }
};
const testing::Environment* const kWorld = testing::AddGlobalTestEnvironment(new World);

}  // namespace

std::vector<int> SuiteRanks() {
  if (!UnderMpirun()) return {1, 2, 3, 4, 7, 8};
  return {0};
}

// ranks: of threads; 0: the world.
void OnEveryRank(int ranks, const std::function<void(DeviceCommunicator&, Stream&)>& test) {
  if (ranks == 0) {
    Stream stream;
    return test(*World::device, stream);
  }
  auto hosts = MakeThreadCommunicators(ranks, {.deadline_seconds = kSuiteDeadlineSeconds});
  std::vector<std::thread> threads;
  for (auto& host : hosts) {
    threads.emplace_back([&test, &host] {
      const auto communicator = MakeHostDeviceCommunicator(host.get());
      Stream stream;
      test(*communicator, stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

namespace {

// The two ways are one interface: what was meant to run over NCCL must not run through the host.
TEST(WorldDeviceCommunicatorTest, IsNcclWhereTheBuildHasIt) {
  if (!UnderMpirun()) GTEST_SKIP() << "one process: not started by mpirun";
  const std::string name = World::device->name();
  if (World::host->size() == 1) {
    EXPECT_EQ(name, "self");
  } else if (internal::HaveNccl()) {
    EXPECT_EQ(name.substr(0, 5), "nccl ");
  } else {
    EXPECT_EQ(name, "host");
  }
}

TEST(RanksOnOneDeviceTest, NamesTheLowestPair) {
  constexpr int kRanks = 5;
  const auto sharing = [](const std::vector<std::string>& identities) {
    auto hosts = MakeThreadCommunicators(kRanks, {.deadline_seconds = kSuiteDeadlineSeconds});
    std::vector<std::pair<int, int>> found(kRanks);
    std::vector<std::thread> threads;
    for (int r = 0; r < kRanks; ++r) {
      threads.emplace_back(
          [&, r] { found[r] = internal::RanksOnOneDevice(hosts[r].get(), identities[r]).value(); });
    }
    for (std::thread& thread : threads) thread.join();
    for (int r = 1; r < kRanks; ++r) EXPECT_EQ(found[r], found[0]);
    return found[0];
  };
  EXPECT_EQ(sharing({"a", "b", "c", "d", "e"}), std::pair(-1, -1));
  EXPECT_EQ(sharing({"a", "b", "c", "b", "c"}), std::pair(1, 3));
  EXPECT_EQ(sharing({"", "", "", "", ""}), std::pair(0, 1));
}

// Only different values of NCCL_HOSTID let NCCL put two ranks on one device.
TEST(IdentityForNcclTest, HostIdsSetRanksApart) {
  const char* const id = std::getenv("NCCL_HOSTID");
  const std::string saved = id == nullptr ? "" : id;
  const std::string device = "GPU-0123456789abcdef0123456789abcdef";
  const auto identity = [&](const char* host) {
    setenv("NCCL_HOSTID", host, 1);
    return internal::IdentityForNccl(device);
  };
  unsetenv("NCCL_HOSTID");
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);  // not a variable of NCCL's
  EXPECT_EQ(internal::IdentityForNccl(device), device);
  unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
  const std::string longest(1000, 'h');
  EXPECT_EQ(identity("rank0"), identity("rank0"));
  EXPECT_NE(identity("rank0"), identity("rank1"));
  EXPECT_NE(identity(longest.c_str()), device);
  EXPECT_LT(identity(longest.c_str()).size(), 64u);
  if (id == nullptr) {
    unsetenv("NCCL_HOSTID");
  } else {
    setenv("NCCL_HOSTID", saved.c_str(), 1);
  }
}

TEST(MakeNcclCommunicatorTest, SaysThatTheBuildLacksIt) {
  const auto self = MakeSelfCommunicator();
  const auto made = MakeNcclCommunicator(self.get(), kSuiteDeadlineSeconds);
  if (internal::HaveNccl()) {
    EXPECT_EQ(std::string(made.value()->name()), "self");
  } else {
    EXPECT_EQ(made.status().code(), StatusCode::kUser);
    EXPECT_EQ(made.status().message(), "NCCL: not in this build; build with --config=cuda");
  }
}

}  // namespace
}  // namespace elastor::cuda
