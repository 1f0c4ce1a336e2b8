// What MakeWorldCommunicator makes of the launcher's environment, in a process that has none.
#include <cstdlib>
#include <string>

#include "collective/communicator.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

TEST(LaunchTest, AloneIsOneRank) {
  const auto alone = MakeWorldCommunicator({});
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ((*alone)->size(), 1);
}

TEST(LaunchTest, RefusesTasksOfSrunWithoutPmix) {
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  const auto alone = MakeWorldCommunicator({});
  unsetenv("SLURM_STEP_NUM_TASKS");
  EXPECT_EQ(alone.status().code(), StatusCode::kUser);
  EXPECT_NE(alone.status().message().find("SLURM_STEP_NUM_TASKS"), std::string::npos);
}

TEST(LaunchTest, RefusesAnUnknownMpi) {
  setenv("ELASTOR_MPI", "lam", 1);
  setenv("PMI_SIZE", "1", 1);
  const auto alone = MakeWorldCommunicator({});
  unsetenv("PMI_SIZE");
  unsetenv("ELASTOR_MPI");
  EXPECT_EQ(alone.status().code(), StatusCode::kUser);
  EXPECT_EQ(alone.status().message(),
            "environment: ELASTOR_MPI: expected openmpi or mpich, found 'lam'");
}

}  // namespace
}  // namespace elastor
