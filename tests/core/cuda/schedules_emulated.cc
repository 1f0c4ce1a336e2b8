#include <cstdio>
#include <string>

#include "core/cuda/emulation/schedule.h"
#include "tests/core/cuda/schedules.h"

namespace elastor::cuda {

int RunUnderSchedules(int argc, char** argv, const std::function<int()>& run) {
  std::string chosen;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::string flag = "--schedule=";
    if (argument.starts_with(flag)) chosen = argument.substr(flag.size());
  }
  int result = 0;
  bool ran = false;
  for (const emulation::NamedSchedule& named : emulation::AllSchedules()) {
    if (chosen.empty() ? !named.by_default : chosen != "all" && chosen != named.name) continue;
    ran = true;
    std::printf("--- schedule %s\n", named.name.c_str());
    std::fflush(stdout);
    emulation::SetSchedule(named.schedule);
    if (const int failed = run(); failed != 0 && result == 0) result = failed;
  }
  if (!ran) {
    std::fprintf(stderr, "no schedule %s\n", chosen.c_str());
    return 2;
  }
  return result;
}

}  // namespace elastor::cuda
