#!/bin/bash
# The communicator suite over real MPI ranks, and what a rank that never arrives does to a job.
# Usage: mpi_communicator_test.sh SUITE LATE_RANK
set -u
suite=$1
late_rank=$2

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export TMPDIR=/tmp # Open MPI's sockets need a short path.

failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

on_ranks() {
  local ranks=$1
  shift
  timeout 60 mpirun -q --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np "$ranks" "$@"
}

# The *Death* test forks, which MPI processes must not. The small run also takes another all-reduce
# than the library would choose.
OMPI_MCA_coll_libnbc_iallreduce_algorithm=ring on_ranks 3 "$suite" --gtest_brief=1 \
  --gtest_filter=-*Death* --max_message_bytes=7 || fail "3 ranks, pieces of 7 bytes"
on_ranks 8 "$suite" --gtest_brief=1 --gtest_filter=-*Death* || fail "8 ranks"

output=$(on_ranks 3 "$late_rank" 2>&1)
code=$?
[ "$code" -eq 3 ] || fail "a late rank: exit code $code, expected 3"
expected='elastor: rank 0: AllToAll (row_exchange, 32 bytes) did not complete within 1 s; waiting for rank 1'
grep -qF "$expected" <<<"$output" || grep -qF "${expected/rank 0/rank 2}" <<<"$output" ||
  fail "a late rank: expected the line '$expected', found: $output"

exit "$((failures > 0))"
