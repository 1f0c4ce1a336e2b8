#ifndef ELASTOR_TESTS_TRAINER_PREPARE_REAL_DATA_H_
#define ELASTOR_TESTS_TRAINER_PREPARE_REAL_DATA_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace elastor {

// Where real data lies: $ELASTOR_SHARED_DATA, else shared/data beside the repository.
// REQUIRES: the test has //configs:schemas as data.
inline std::string DataFolder() {
  if (const char* folder = std::getenv("ELASTOR_SHARED_DATA")) return folder;
  std::error_code error;
  const std::filesystem::path schema =
      std::filesystem::canonical("configs/criteo/schema.textproto", error);
  const std::filesystem::path repository = schema.parent_path().parent_path().parent_path();
  return (repository.parent_path() / "shared" / "data").string();
}

#define SKIP_WITHOUT(file)                                                                        \
  if (!std::filesystem::exists(DataFolder() + "/" + (file))) {                                    \
    GTEST_SKIP() << "no data: " << DataFolder() << "/" << (file) << " (set ELASTOR_SHARED_DATA)"; \
  }

}  // namespace elastor

#endif  // ELASTOR_TESTS_TRAINER_PREPARE_REAL_DATA_H_
