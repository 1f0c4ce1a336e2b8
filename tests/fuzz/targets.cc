#include "tests/fuzz/targets.h"

namespace elastor {

std::vector<FuzzTarget> FuzzTargets() {
  std::vector<FuzzTarget> all;
  for (const auto targets : {DataTargets(), ModelTargets(), LauncherTargets()}) {
    all.insert(all.end(), targets.begin(), targets.end());
  }
  return all;
}

}  // namespace elastor
