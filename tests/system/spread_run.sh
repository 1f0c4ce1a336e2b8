# Sourced by tests of bits: runs spread over ranks, and what of a run must not depend on the spread.

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 HWLOC_HIDE_ERRORS=2
export TMPDIR=/tmp # Open MPI's sockets need a short path.

# on_ranks RANKS COMMAND...: 1 rank alone, without mpirun.
on_ranks() {
  local ranks=$1
  shift
  if [[ $ranks -eq 1 ]]; then
    timeout 600 "$@"
  else
    timeout 600 mpirun -q --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 \
      -np "$ranks" "$@"
  fi
}

# force_allreduce ALGORITHM: Open MPI takes this one from now on, 4 (ring) or 5 (segmented ring); its
# MPI_Iallreduce has an algorithm of its own, then the ring.
force_allreduce() {
  export OMPI_MCA_coll_tuned_use_dynamic_rules=1
  export OMPI_MCA_coll_tuned_allreduce_algorithm=$1
  export OMPI_MCA_coll_libnbc_iallreduce_algorithm=ring
}

# digest_of RUN
digest_of() {
  sed --quiet 's/.*"state_digest": "\(.*\)",/\1/p' "$1/summary.json"
}

# numbers_of RUN: the digest and all metrics but rates and times.
numbers_of() {
  digest_of "$1"
  sed 's/,"samples_per_s":.*//' "$1/metrics.jsonl"
}
