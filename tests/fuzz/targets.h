#ifndef ELASTOR_TESTS_FUZZ_TARGETS_H_
#define ELASTOR_TESTS_FUZZ_TARGETS_H_

#include <span>
#include <string_view>

namespace elastor {

// Everything that reads bytes which a user, a disk or another program may have spoilt. A target
// takes any bytes; it ends the process when what it calls breaks a promise of its header, and
// sanitizers end it when memory or arithmetic goes wrong. tools/fuzz.sh runs them under libFuzzer,
// corpus_test on the inputs of corpus/ and on damaged copies of them.
struct FuzzTarget {
  const char* name;
  bool opens_files;  // in $TEST_TMPDIR, or /dev/shm: slower by far
  void (*run)(std::string_view bytes);
};

std::span<const FuzzTarget> FuzzTargets();

}  // namespace elastor

#endif  // ELASTOR_TESTS_FUZZ_TARGETS_H_
