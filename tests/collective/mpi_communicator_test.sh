#!/bin/bash
# The communicator suite over real MPI ranks, and what one that stays away, or does something else than
# the others, does to a job. Usage: mpi_communicator_test.sh SUITE DISTURBED_RANKS
set -u
suite=$1
disturbed_ranks=$2
work=$TEST_TMPDIR
source tests/system/spread_run.sh

# The *Death* test forks, which MPI processes must not. The small run also takes another all-reduce
# than the library would choose.
OMPI_MCA_coll_libnbc_iallreduce_algorithm=ring on_ranks 3 "$suite" --gtest_brief=1 \
  --gtest_filter=-*Death* --max_message_bytes=7 || fail "3 ranks, pieces of 7 bytes"
# With the devices and networks that Open MPI takes by itself.
(unset HWLOC_COMPONENTS OMPI_MCA_pml OMPI_MCA_btl && on_ranks 8 "$suite" --gtest_brief=1 --gtest_filter=-*Death*) ||
  fail "8 ranks"

# on_mpich RANKS COMMAND...: under MPICH's launcher, whose lines about MPI_Abort are left out.
on_mpich() {
  timeout $hang_seconds mpiexec.hydra -n "$@" 2> >(grep --invert-match '^Abort(' >&2)
}
on_mpich 3 "$suite" --gtest_brief=1 --gtest_filter=-*Death* --max_message_bytes=7 || fail "3 ranks of MPICH"

# expect_end DISTURBANCE DEADLINE LINE [STARTER]: three ranks end with code 3 and this line of ours alone, which may
# be a pattern. At the deadline the line would be another one.
expect_end() {
  local output code
  output=$("${4:-on_ranks}" 3 "$disturbed_ranks" "$1" "$2" 2>&1 | loud_lines
    exit "${PIPESTATUS[0]}")
  code=$?
  if [[ $code -ne 3 || $(wc --lines <<<"$output") -ne 1 || ! $output =~ ^elastor:\ $3$ ]]; then
    fail "$1: expected exit code 3 and the line '$3'"
    printf '  found exit code %d and:\n%s\n' "$code" "$output"
  fi
}
asked='; is every rank of the job this program\?'
make_deadline 3 on_ranks 3 "$suite" --gtest_filter=WorldCommunicatorTest.* || fail '3 ranks'
expect_end stays_away $deadline "rank 0: AllToAll \(row_exchange, 32 bytes, call 3\) did not complete within $deadline s; waiting for rank 1; rank 1 on [^ ]*: no word, busy, stopped or cut off, heard of last in Barrier \(setup, call 2\); ranks 0,2 wait in AllToAll \(row_exchange, call 3\)"
expect_end other_call 300 "rank 0 makes AllToAll \\(row_exchange, 32 bytes, call 3\\), rank 1 AllReduceSum \\(scalars, 32 bytes, call 3\\)$asked"
expect_end other_length 300 "rank 0 makes AllReduceSum \\(scalars, 64 bytes, call 3\\), rank 1 AllReduceSum \\(scalars, 48 bytes, call 3\\)$asked"
expect_end other_root 300 "rank 0 makes Barrier \\(setup, 0 bytes, call 4\\), rank 1 the same, after other calls$asked"
expect_end sends_less 300 'rank [02]: AllToAllV \(row_exchange, 64 bytes, call 3\) failed: expected 16 bytes from rank 1, found 8 bytes'
expect_end sends_more 300 'rank [02]: AllToAllV \(row_exchange, 64 bytes, call 3\) failed: expected 16 bytes from rank 1, found more'
expect_end sends_more 300 'rank [02]: AllToAllV \(row_exchange, 64 bytes, call 3\) failed: expected 16 bytes from rank 1, found more' on_mpich

exit "$((failures > 0))"
