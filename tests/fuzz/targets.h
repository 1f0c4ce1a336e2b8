#ifndef ELASTOR_TESTS_FUZZ_TARGETS_H_
#define ELASTOR_TESTS_FUZZ_TARGETS_H_

#include <span>
#include <string_view>
#include <vector>

namespace elastor {

// Everything that reads bytes which a user, a disk or another program may have spoilt. A target
// takes any bytes; it ends the process when what it calls breaks a promise of its header, and
// sanitizers end it when memory or arithmetic goes wrong. tools/fuzz.sh runs them under libFuzzer,
// corpus_test on the inputs of corpus/ and on damaged copies of them.
struct FuzzTarget {
  const char* name;
  bool opens_files;                     // in $TEST_TMPDIR, or /dev/shm: slower by far
  bool (*run)(std::string_view bytes);  // whether they were read, not refused
};

std::vector<FuzzTarget> FuzzTargets();
std::span<const FuzzTarget> DataTargets();      // raw data, prepared sets, prepare's own files
std::span<const FuzzTarget> ModelTargets();     // experiments, models, checkpoints, rows to score
std::span<const FuzzTarget> LauncherTargets();  // what jobs and runs leave, and is made of it

}  // namespace elastor

#endif  // ELASTOR_TESTS_FUZZ_TARGETS_H_
