#include "tests/faults/tally.h"

#include <algorithm>
#include <cstdio>

namespace elastor {
namespace {

std::string MedianAndWorst(std::vector<double> values) {
  if (values.empty()) return "      -       -";
  std::sort(values.begin(), values.end());
  char text[32];
  std::snprintf(text, sizeof(text), "%7.2f %7.2f", values[values.size() / 2], values.back());
  return text;
}

std::string Number(int64_t number) { return std::to_string(number); }

}  // namespace

void Tally::Print() const {
  std::printf("%-24s %6s %8s %8s %9s  %15s  %15s\n", "", "", "", "", "", "notice, s",
              "first step, s");
  std::printf("%-24s %6s %8s %8s %9s  %7s %7s  %7s %7s\n", "fault", "struck", "harmless", "refused",
              "restarted", "median", "worst", "median", "worst");
  for (const auto& [name, fault] : faults) {
    std::printf("%-24s %6s %8s %8s %9s  %s  %s\n", name.c_str(), Number(fault.struck).c_str(),
                Number(fault.harmless).c_str(), Number(fault.refused).c_str(),
                Number(fault.restarted).c_str(), MedianAndWorst(fault.notice_seconds).c_str(),
                MedianAndWorst(fault.first_step_seconds).c_str());
  }
  std::printf("supervised jobs, from the strike to training again, s: %s\n",
              MedianAndWorst(restart_seconds).c_str());
  const std::string line = "jobs=" + Number(jobs) + " supervised=" + Number(supervised) +
                           " restarted=" + Number(restarted) + " wrong_ends=" + Number(wrong_ends) +
                           "\nruns=" + Number(runs) + " hangs=" + Number(hangs) +
                           " digest_mismatches=" + Number(digest_mismatches) +
                           " silent_differences=" + Number(silent_differences) +
                           " mpirun_hangs=" + Number(launcher_hangs) +
                           " refused=" + Number(refused) + " resumed=" + Number(resumed);
  std::printf("%s\n", line.c_str());
}

}  // namespace elastor
