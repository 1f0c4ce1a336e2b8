# Sourced by tests of bits: runs spread over ranks, and what of a run must not depend on the spread.

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 HWLOC_HIDE_ERRORS=2
# All ranks are on this host. They start with two thirds of the work, in half the time, if they do not look for PCI
# devices, which is slow on virtual machines, nor for networks. A test with more hosts unsets OMPI_MCA_btl.
export HWLOC_COMPONENTS=-gl,-pci,-linux:pci OMPI_MCA_pml=ob1 OMPI_MCA_btl=^tcp,openib,ofi,uct,usnic
export TMPDIR=/tmp # Open MPI's sockets need a short path.

# The instruction sets of kernels that this CPU has, the one that every CPU of the machine has first.
isas=(v3)
[[ $(uname --machine) != aarch64 ]] || isas=(neon)
if grep --quiet avx512vl /proc/cpuinfo; then isas+=(v4); fi

# fail WHAT...: says so and counts it; a test ends with `exit "$((failures > 0))"`.
failures=0
fail() {
  printf 'FAILED: %s\n' "$*"
  failures=$((failures + 1))
}

# What a training run says of itself on stderr, and libevent now and then inside mpirun; all else is a
# mistake's or a failure's line.
quiet_lines='^(step|run:|data:|plan:|continuing) |^\[warn\] Epoll'
# Open MPI 5's mpirun cannot be kept quiet; between processes of one host it would tell of interfaces that TCP cannot use.
if [[ $(mpirun --version) == *\ 5.* ]]; then
  export OMPI_MCA_btl=^tcp
  quiet_lines+='|^$|^-{70,}$|^prterun |^thus causing the job|^ +(Process name|Exit code): |PMIX_ERR_UNREACH'
  quiet_lines+='|^MPI_ABORT was invoked|^  (Proc|Errorcode): |^NOTE: invoking|^You may or may not|^exactly when'
  quiet_lines+='|^\[.* UCX  ERROR |^"abort"\. This may|^terminated by signals sent|^signal [0-9]+ \('
fi
readonly quiet_lines
# loud_lines: of the standard input the others. (Open MPI 5 also writes zero bytes.)
loud_lines() { tr --delete '\0' | grep --invert-match --extended-regexp "$quiet_lines"; }

# expect_line CODE PATTERN COMMAND...: must end with that exit code and one line that holds the fixed text
# PATTERN, quiet lines aside.
expect_line() {
  local code=$1 pattern=$2 output status
  shift 2
  output=$("$@" 2>&1 | loud_lines
    exit "${PIPESTATUS[0]}")
  status=$?
  if [[ $status -ne $code || $(wc --lines <<<"$output") -ne 1 || $output != *"$pattern"* ]]; then
    fail "$*"
    printf '  expected exit code %d and one line with: %s\n  found exit code %d and:\n%s\n' \
      "$code" "$pattern" "$status" "$output"
  fi
}

# The seconds after which a command or a wait counts as hanging. Each takes less than a tenth of it on an idle machine.
readonly hang_seconds=600

# mpi RANKS COMMAND...
mpi() {
  timeout $hang_seconds mpirun --mca orte_execute_quiet 1 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np "$@"
}

# mpi_each COMMAND + COMMAND...: the i-th rank runs the i-th command. (The mpirun of Open MPI 5.0.7 dies of a job of
# several programs.)
mpi_each() {
  local word ranks=1
  for word; do [[ $word != + ]] || ranks=$((ranks + 1)); done
  mpi $ranks bash -c '
    for ((rank = 0; rank < OMPI_COMM_WORLD_RANK; ++rank)); do
      until [[ $1 == + ]]; do shift; done
      shift
    done
    command=()
    for word; do
      [[ $word != + ]] || break
      command+=("$word")
    done
    exec "${command[@]}"' each "$@"
}

# on_ranks RANKS COMMAND...: 1 rank alone, without mpirun.
on_ranks() {
  if [[ $1 -eq 1 ]]; then timeout $hang_seconds "${@:2}"; else mpi "$@"; fi
}

# wait_until COMMAND...: repeats it until it succeeds; fails when the limit is over.
wait_until() {
  local end=$((SECONDS + hang_seconds))
  until "$@" >/dev/null 2>&1; do
    [[ $SECONDS -lt $end ]] || return 1
    sleep 0.05
  done
}

# make_deadline SECONDS COMMAND...: runs the command, with its output in $work/log, and returns its exit code. Sets
# $deadline to these seconds, or to four times what the command took, if that is more: a job that nothing disturbs meets
# such a deadline on a busy machine too.
make_deadline() {
  local begin=${EPOCHREALTIME/[.,]/} code=0 taken
  "${@:2}" >"$work/log" 2>&1 || code=$?
  taken=$((4 * (${EPOCHREALTIME/[.,]/} - begin) / 1000000))
  deadline=$((taken > $1 ? taken : $1))
  return $code
}

# force_allreduce ALGORITHM: Open MPI takes this one from now on, 4 (ring) or 5 (segmented ring); its
# MPI_Iallreduce has an algorithm of its own, then the ring.
force_allreduce() {
  export OMPI_MCA_coll_tuned_use_dynamic_rules=1
  export OMPI_MCA_coll_tuned_allreduce_algorithm=$1
  export OMPI_MCA_coll_libnbc_iallreduce_algorithm=ring
}

# make_tiny_data ROWS: prepares planted rows as $work/data.
make_tiny_data() {
  cat >"$work/schema.textproto" <<SCHEMA
name: "tiny"
layout: SYNTHETIC
split { train: 0.8 validation: 0.1 test: 0.1 }
synthetic { rows: $1 seed: 1 numeric_fields: 2 categorical_fields: 3 ids_per_field: 300 }
SCHEMA
  "$prepare" --schema="$work/schema.textproto" --output_dir="$work/data" >/dev/null || exit 1
}

# digest_of RUN: of a run without a digest a text that is another one each time, so that two runs that
# failed are never equal.
digest_of() {
  local digest
  digest=$(sed --quiet 's/.*"state_digest": "\(.*\)",/\1/p' "$1/summary.json")
  echo "${digest:-no digest of $1, $BASHPID $RANDOM}"
}

# is_digest TEXT
is_digest() { [[ $1 =~ ^[0-9a-f]{32}$ ]]; }

# expect_other_digest WHAT RUN OTHER: both have a digest, not the same.
expect_other_digest() {
  local one other
  one=$(digest_of "$2")
  other=$(digest_of "$3")
  is_digest "$one" && is_digest "$other" && [[ $one != "$other" ]] ||
    fail "$1: expected two digests, found '$one' and '$other'"
}

# numbers_of RUN: the digest and all metrics but rates, times and paths.
numbers_of() {
  digest_of "$1"
  sed 's/,"samples_per_s":.*//; s/,"path":.*//' "$1/metrics.jsonl"
}
