#ifndef ELASTOR_TESTS_FAULTS_FILE_FAULTS_H_
#define ELASTOR_TESTS_FAULTS_FILE_FAULTS_H_

#include "tests/faults/faults.h"

namespace elastor {

// Faults of files and disks.
void DamageCheckpoint(Random& random, DisturbedJob* attempt);
void DamageMetrics(Random& random, DisturbedJob* attempt);
void DamageData(Random& random, DisturbedJob* attempt);
void ChangeData(Random& random, DisturbedJob* attempt);
void MoveFolder(Random& random, DisturbedJob* attempt);
void FillDisk(Random& random, DisturbedJob* attempt);
void FailDisk(Random& random, DisturbedJob* attempt);
void NoSpace(Random& random, DisturbedJob* attempt);
void IoError(Random& random, DisturbedJob* attempt);
void ShortCalls(Random& random, DisturbedJob* attempt);
void SlowDisk(Random& random, DisturbedJob* attempt);
void TornWrite(Random& random, DisturbedJob* attempt);
void Clocks(Random& random, DisturbedJob* attempt);

}  // namespace elastor

#endif  // ELASTOR_TESTS_FAULTS_FILE_FAULTS_H_
