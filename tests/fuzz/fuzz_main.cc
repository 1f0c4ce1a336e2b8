// libFuzzer's program of one target, which the variable ELASTOR_FUZZ_TARGET names (tools/fuzz.sh).
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/base/log.h"
#include "tests/fuzz/targets.h"

namespace {

elastor::FuzzTarget target = {};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const name = std::getenv("ELASTOR_FUZZ_TARGET");
  for (const elastor::FuzzTarget& known : elastor::FuzzTargets()) {
    if (name != nullptr && std::string_view(name) == known.name) target = known;
  }
  CHECK(target.run != nullptr) << "ELASTOR_FUZZ_TARGET names no target";
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  target.run({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
