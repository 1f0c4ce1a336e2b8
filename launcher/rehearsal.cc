#include "launcher/rehearsal.h"

#include <algorithm>
#include <charconv>

namespace elastor {

int64_t RehearsalStep(const std::string& folder, int64_t steps) {
  if (steps < 2) return 0;
  const std::string hash = HashOfFolder(folder);
  uint64_t bits = 0;
  std::from_chars(hash.data(), hash.data() + hash.size(), bits, /*base=*/16);
  constexpr int64_t kTenths = 10;
  const int64_t first = std::max<int64_t>(1, steps / kTenths);
  const int64_t last = std::max(first, steps - 1 - steps / kTenths);
  return first + static_cast<int64_t>(bits % static_cast<uint64_t>(last - first + 1));
}

bool RehearsalDue(const PlannedRun& run, const Attempts& attempts, const RunProgress& progress) {
  const int64_t step = RehearsalStep(run.folder, run.steps);
  return step > 0 && attempts.rehearsed == 0 && progress.step >= step && progress.step < run.steps;
}

}  // namespace elastor
