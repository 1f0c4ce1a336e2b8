#ifndef ELASTOR_TESTS_FAULTS_MOMENTS_H_
#define ELASTOR_TESTS_FAULTS_MOMENTS_H_

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <set>

#include "tests/faults/faults.h"

namespace elastor {

// What the plans of faults are made of: when they strike, and whom.

inline size_t Below(Random& random, size_t n) { return random() % n; }
inline double Share(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

// Half of the moments by time, so that starts and ends have their share; half by progress.
void AtSomeMoment(Random& random, DisturbedJob* attempt);
// For what strikes by being there when the job begins.
void AtOnce(DisturbedJob* attempt);

// A strike that found nothing to disturb yet looks again after so long.
inline constexpr double kAgainSeconds = 0.01;

int SomeRank(Random& random, const DisturbedJob& attempt);

// Calls act(process) once the rank runs the trainer, and again after the seconds that it returns.
template <typename Act>
void OnRank(int rank, DisturbedJob* attempt, Act act) {
  attempt->strike.act = [rank, act](const Processes& processes,
                                    bool* struck) mutable -> std::optional<double> {
    const auto found = processes.ranks.find(rank);
    if (found == processes.ranks.end()) return kAgainSeconds;
    *struck = true;
    return act(found->second);
  };
}

// parallel.deadline_seconds and start_seconds of all ranks.
void SetDeadlines(int seconds, int start_seconds, DisturbedJob* attempt);

}  // namespace elastor

#endif  // ELASTOR_TESTS_FAULTS_MOMENTS_H_
