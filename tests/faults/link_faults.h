#ifndef ELASTOR_TESTS_FAULTS_LINK_FAULTS_H_
#define ELASTOR_TESTS_FAULTS_LINK_FAULTS_H_

#include "tests/faults/faults.h"

namespace elastor {

// Faults of the link between two hosts, network namespaces (virtual_hosts.sh): half of the ranks
// are on the second one.
void CutLink(Random& random, DisturbedJob* attempt);
void BreakLink(Random& random, DisturbedJob* attempt);
void SlowLink(Random& random, DisturbedJob* attempt);
void DelayedLink(Random& random, DisturbedJob* attempt);

}  // namespace elastor

#endif  // ELASTOR_TESTS_FAULTS_LINK_FAULTS_H_
