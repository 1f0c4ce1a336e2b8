#include "tests/faults/moments.h"

#include <string>

namespace elastor {

void AtSomeMoment(Random& random, DisturbedJob* attempt) {
  if (Below(random, 2) == 0) {
    attempt->strike.after_seconds = Share(random) * attempt->undisturbed.seconds;
  } else {
    attempt->strike.after_records =
        1 + static_cast<int>(Below(random, attempt->undisturbed.records));
  }
}

void AtOnce(DisturbedJob* attempt) {
  attempt->strike.act = [](const Processes&, bool* struck) -> std::optional<double> {
    *struck = true;
    return std::nullopt;
  };
}

void SetDeadlines(int seconds, int start_seconds, DisturbedJob* attempt) {
  for (const std::string& setting : {"deadline_seconds=" + std::to_string(seconds),
                                     "start_seconds=" + std::to_string(start_seconds)}) {
    attempt->arguments.push_back("--set=parallel." + setting);
  }
}

int SomeRank(Random& random, const DisturbedJob& attempt) {
  return static_cast<int>(Below(random, attempt.ranks));
}

}  // namespace elastor
