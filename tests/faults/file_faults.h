#ifndef ELASTOR_TESTS_FAULTS_FILE_FAULTS_H_
#define ELASTOR_TESTS_FAULTS_FILE_FAULTS_H_

#include "tests/faults/faults.h"

namespace elastor {

// Faults of files and disks.
void DamageCheckpoint(Random& random, Attempt* attempt);
void DamageMetrics(Random& random, Attempt* attempt);
void DamageData(Random& random, Attempt* attempt);
void ChangeData(Random& random, Attempt* attempt);
void MoveFolder(Random& random, Attempt* attempt);
void FillDisk(Random& random, Attempt* attempt);
void FailDisk(Random& random, Attempt* attempt);
void NoSpace(Random& random, Attempt* attempt);
void IoError(Random& random, Attempt* attempt);
void ShortCalls(Random& random, Attempt* attempt);
void SlowDisk(Random& random, Attempt* attempt);
void TornWrite(Random& random, Attempt* attempt);
void Clocks(Random& random, Attempt* attempt);

}  // namespace elastor

#endif  // ELASTOR_TESTS_FAULTS_FILE_FAULTS_H_
