#ifndef ELASTOR_TESTS_FAULTS_LIMIT_FAULTS_H_
#define ELASTOR_TESTS_FAULTS_LIMIT_FAULTS_H_

#include "tests/faults/faults.h"

namespace elastor {

// Faults by what the system grants: memory and descriptors of a rank, memory of a job.
void LimitMemory(Random& random, DisturbedJob* attempt);
void LimitFiles(Random& random, DisturbedJob* attempt);
void EndMemory(Random& random, DisturbedJob* attempt);

}  // namespace elastor

#endif  // ELASTOR_TESTS_FAULTS_LIMIT_FAULTS_H_
