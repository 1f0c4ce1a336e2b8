#!/usr/bin/env bash
# A run that its host cannot hold is refused before it begins, in one line (code 2); memory and
# threads that the system refuses later end it in one line too (code 3), never by a crash. A run
# that touches little of large tables works. Arguments: the trainer, prepare.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
source "$(dirname "$0")/spread_run.sh"
cd "$TEST_TMPDIR" || exit 1

make_data() { # NAME IDS
  cat >"$1.textproto" <<SCHEMA
name: "$1"
layout: SYNTHETIC
split { train: 0.8 validation: 0.1 test: 0.1 }
synthetic { rows: 2000 seed: 1 numeric_fields: 2 categorical_fields: 3 ids_per_field: $2 }
SCHEMA
  "$prepare" --schema="$1.textproto" --output_dir="$1" >/dev/null || exit 1
}
make_data small 300
make_data huge 2000000000 # at 128 bytes a row 768 GB
cat >tiny.textproto <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding { width: 8 }
training { batch_size: 64 max_steps: 5 }
spectrum { disabled: true }
EXPERIMENT
tiny=("$trainer" --experiment=tiny.textproto)
new=--output_dir=new

# expect CODE PATTERN COMMAND...
expect() {
  rm -rf new
  expect_line "$@"
}
# Were it not refused, a run would get no further than its first table.
bounded() { (ulimit -d 40000000 && "$@"); }

# All rows of the tables, or none that is sure.
dense=--set=optimizer.sparse=DENSE_ADAM
expect 2 'memory: the run needs at least 7' \
  bounded "${tiny[@]}" --set=data.path=huge "$dense" "$new"
expect 2 'would fit with optimizer.sparse=LAZY_ADAM' \
  bounded on_ranks 3 "${tiny[@]}" --set=data.path=huge "$dense" "$new"
[[ ! -e new ]] || fail 'a refused run left its output_dir'
sure_bytes() {
  "${tiny[@]}" --mode=describe --set=data.path=huge "$@" |
    sed --quiet 's/.*"surely_touched_bytes_on_fullest_rank": \(.*\),/\1/p'
}
[[ $(sure_bytes "$dense") -gt 768000000000 ]] || fail "describe, DENSE_ADAM: $(sure_bytes "$dense")"
[[ $(sure_bytes) -lt 100000000 ]] || fail "describe, LAZY_ADAM: $(sure_bytes)"
if ! "${tiny[@]}" --set=data.path=huge --output_dir=lazy >log 2>&1; then
  fail 'LAZY_ADAM on tables of which little occurs'
  cat log
fi
! grep --quiet memory log || fail "a run without need for it warns: $(grep memory log)"

# More than any host has: of activations, of parameters, in a pass that holds a whole leaf.
wide=1000000,10,1000000,10,1000000,10,1000000,10
expect 2 'activations of the threads' "${tiny[@]}" --set=data.path=small "$new" \
  --set=model.kind=MLP --set=model.hidden=$wide,$wide,$wide,$wide --set=parallel.threads=10000
expect 2 'dense weights' "${tiny[@]}" --set=data.path=small "$new" \
  --set=model.kind=MLP --set=model.hidden=200000,200000
expect 2 'the neural tangent kernel (--rows, spectrum.ntk_rows)' "${tiny[@]}" --set=data.path=small \
  "$new" --mode=ntk --rows=100 --set=model.kind=MLP --set=model.hidden=200000,200000
expect 2 'activations of the threads' "${tiny[@]}" --set=data.path=small "$new" \
  --set=model.kind=MLP --set=model.batch_norm=true --set=training.batch_size=900000000000000

# Threads that cannot be had.
limited() { # KIBIBYTES COMMAND...
  local limit=$1
  shift
  (ulimit -v "$limit" && exec "$@")
}
expect 3 'for computing: Resource temporarily unavailable' \
  limited 300000 "${tiny[@]}" --set=data.path=small "$new" --set=parallel.threads=100
expect 3 'of 1000 for reading ahead' \
  limited 300000 "${tiny[@]}" --set=data.path=small "$new" --set=data.reader_threads=1000

# One rank of three lacks address space, or has stacks too large for it: it speaks, and the job
# ends at once. (The ranks that wait for it may say so when mpirun ends them.)
beside_limited() { # LIMITS FLAGS...
  mpi_each "${tiny[@]}" "${@:2}" "$new" + \
    bash -c "$1; exec ${tiny[*]} ${*:2} $new" + "${tiny[@]}" "${@:2}" "$new" 2>&1 |
    grep --invert-match 'SIGTERM came; waiting for rank 1$'
}
expect 2 'memory: rank 1 needs at least 25' \
  beside_limited 'ulimit -v 10000000' --set=data.path=huge
# (Of the eight stacks that MPI's and ours would take there is room for five.)
expect 3 'of 8 for reading ahead' \
  beside_limited 'ulimit -v 22000000; ulimit -s 4000000' --set=data.path=small \
  --set=data.reader_threads=8

# Whatever the limit, a program that starts at all ends well or with one line of its own.
expect_end() { # LIMIT COMMAND...
  local output status lines
  output=$(limited "$@" 2>&1 >/dev/null)
  status=$?
  lines=$(grep --count --extended-regexp '^(trainer|prepare): ' <<<"$output")
  case $status:$lines in
    127:0) ;; # the system could not load the program
    0:0) ends_well=$((ends_well + 1)) ;;
    3:1) ends_in_a_line=$((ends_in_a_line + 1)) ;;
    # What glibc itself cannot do without memory, it says itself.
    134:0) [[ $output == *'Fatal glibc error: failed to register TLS destructor: out of memory' ]] || fail "ulimit -v $1: $output" ;;
    *)
      fail "ulimit -v $1: ${*:2}"
      printf '  found exit code %d and:\n%s\n' "$status" "$output"
      ;;
  esac
}
ends_well=0 ends_in_a_line=0
for limit in $(seq 16500 5000 61500); do
  expect_end "$limit" "${tiny[@]}" --set=data.path=small --output_dir="run$limit" \
    --set=parallel.threads=2
  expect_end "$limit" "$prepare" --schema=small.textproto --output_dir="data$limit" --threads=2
done
[[ $ends_well -gt 0 && $ends_in_a_line -gt 2 ]] ||
  fail "the limits show too little: $ends_well good ends, $ends_in_a_line lines"
exit "$((failures > 0))"
