#include "launcher/plan.h"

#include <algorithm>

namespace elastor {
namespace {

// Memory of the libraries in one process (docs/use/running.md).
constexpr int64_t kLibraryBytes = 50'000'000;
constexpr int64_t kGigabyte = 1'000'000'000;

}  // namespace

const char* StageName(Stage stage) { return stage == Stage::kTune ? "tune" : "final"; }

int64_t PlannedRun::bytes() const {
  return std::max<int64_t>(ranks * (bytes_of_rank + kLibraryBytes), memory_gb * kGigabyte);
}

double PlannedRun::cost() const {
  return static_cast<double>(samples) * (static_cast<double>(multiply_adds) + kFixedMultiplyAdds);
}

}  // namespace elastor
