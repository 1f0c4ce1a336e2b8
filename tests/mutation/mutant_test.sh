#!/usr/bin/env bash
# Cases of a test pass when the code is right and fail when it has a mistake.
# Arguments: the test, linked with mutants of the code; a filter of cases; names of mistakes.
set -uo pipefail
program=$1
cases=$2
shift 2

failed=0
run() {
  ELASTOR_ISA=$isa ELASTOR_MISTAKE=$1 "$program" --gtest_filter="$cases" --gtest_fail_fast >"$TEST_TMPDIR/log" 2>&1
}

# With the kernels of every instruction set that the CPU has.
isas=(v3)
[[ $(uname --machine) != aarch64 ]] || isas=(neon)
if grep --quiet avx512vl /proc/cpuinfo; then isas+=(v4); fi
for isa in "${isas[@]}"; do
  if ! run none || ! grep --quiet '\[  PASSED  \] [1-9]' "$TEST_TMPDIR/log"; then
    printf '%s: without a mistake %s does not pass:\n' "$isa" "$cases"
    tail --lines=50 "$TEST_TMPDIR/log"
    failed=1
  fi
  for mistake; do
    run "$mistake"
    status=$?
    # A test that finds a difference ends with 1; a crash is not what is looked for.
    if [[ $status -ne 1 ]] || ! grep --quiet '\[  FAILED  \]' "$TEST_TMPDIR/log"; then
      printf '%s: with the mistake "%s" %s ends with %d:\n' "$isa" "$mistake" "$cases" "$status"
      tail --lines=50 "$TEST_TMPDIR/log"
      failed=1
    fi
  done
done
exit "$failed"
