#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/random.h"
#include "tests/fuzz/targets.h"

namespace elastor {
namespace {

// Inputs of corpus/TARGET, by name.
std::vector<std::string> Corpus(const FuzzTarget& target) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string("tests/fuzz/corpus/") + target.name)) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<std::string> inputs;
  for (const auto& path : paths) inputs.push_back(*ReadFile(path));
  return inputs;
}

// What the fuzzer begins with and what it has found, and some damage to them: no target ends the
// process. A target that refuses all of its inputs tries nothing but refusals.
TEST(CorpusTest, EveryTargetBearsItsInputsAndDamagedOnes) {
  for (const FuzzTarget& target : FuzzTargets()) {
    const std::vector<std::string> inputs = Corpus(target);
    EXPECT_FALSE(inputs.empty()) << target.name;
    const int damages = target.opens_files ? 30 : 200;
    uint32_t number = 0;
    const auto draw = [&](size_t below) { return Philox(1, {number++})[0] % below; };
    bool read = false;
    for (const std::string& input : inputs) {
      read |= target.run(input);
      for (int i = 0; i < damages && !input.empty(); ++i) {
        std::string damaged = input;
        damaged[draw(damaged.size())] = static_cast<char>(draw(256));
        if (i % 3 == 0) damaged.resize(draw(damaged.size()));
        if (i % 3 == 1) damaged.insert(draw(damaged.size()), input, draw(input.size()), draw(64));
        target.run(damaged);
      }
    }
    EXPECT_TRUE(read) << target.name;
  }
}

}  // namespace
}  // namespace elastor
