#!/usr/bin/env bash
# Ranks that were started differently, stop, die or are no trainers at all: the job ends soon, with one line
# of ours that names the rank and what is wrong with it. Signals in a job's first moments end it in order.
# Arguments: the trainer, prepare, slow_disk.so.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
slow_disk=$PWD/$3
work=$TEST_TMPDIR
source "$(dirname "$0")/spread_run.sh"

cat >"$work/tiny.textproto" <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding { width: 4 }
training { batch_size: 64 }
spectrum { samples: 32 }
EXPERIMENT
make_tiny_data 1000
tiny=("$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/data")
new=--output_dir=$work/new

# Jobs that end by themselves run side by side, since each waits more than it computes.
# expect_beside, like expect_line; all_beside: waits for all of them and counts those that failed.
beside=()
expect_beside() {
  (failures=0; expect_line "$@"; exit "$failures") &
  beside+=($!)
}
all_beside() {
  local process
  for process in "${beside[@]}"; do wait "$process" || failures=$((failures + 1)); done
}

# differs LINE ARGUMENT...: of two ranks the second has these arguments besides; the line may be a part.
differs() {
  local line=$1
  shift
  expect_beside 2 "rank 1: $line" mpi_each "${tiny[@]}" "$new" + "${tiny[@]}" "$new" "$@"
}
# Each of these would otherwise make the second rank call something else sooner or later. Every other field
# of the experiment: start_agreement_test.
differs "training.max_steps is 3, expected rank 0's 0" --set=training.max_steps=3
differs "parallel.plan is REPLICATED, expected rank 0's AUTO" --set=parallel.plan=REPLICATED
differs "--resume is 'true', expected rank 0's 'false'" --resume
differs "--mode is 'evaluate', expected rank 0's 'train'" --mode=evaluate --model=nowhere
differs "--output_dir is '$work/elsewhere', expected rank 0's '$work/new'" --output_dir="$work/elsewhere"

# build NAME COMMIT [BYTES]: a trainer of that commit, by another compiler if there are bytes.
build() {
  echo "STABLE_ELASTOR_COMMIT $2" >"$work/$1.status"
  tools/stamp.sh "$trainer" "$work/$1.status" "$work/$1" || fail "stamp $1"
  printf '%s' "${3:-}" >>"$work/$1"
}
# together PROGRAM PROGRAM ARGUMENT...: a job of two ranks
together() {
  local flags=("${tiny[@]:1}" "${@:3}")
  mpi_each "$work/$1" "${flags[@]}" + "$work/$2" "${flags[@]}"
}
cp "$(dirname "$trainer")/../../collective/libelastor_openmpi.so" "$work/"
build here 0123456789ab
build there 0123456789ab other
build later fedcba987654
build changed '0123456789ab, dirty'
build changed_too '0123456789ab, dirty' other
here="$(<VERSION) (0123456789ab)"
expect_beside 2 "rank 1: the build is '$(<VERSION) (fedcba987654)', expected rank 0's '$here'" together here later "$new"
expect_beside 2 "rank 1: the build is '$(<VERSION) (0123456789ab, dirty), checksum" together changed changed_too "$new"
together here there --output_dir="$work/two_builds" --set=training.max_steps=2 >"$work/log" 2>&1 ||
  fail "two builds of one commit: $(<"$work/log")"
for file in summary.json model/manifest.json; do
  grep --quiet --fixed-strings "\"build\": \"$here\"" "$work/two_builds/$file" || fail "$file does not name its build"
done

# The job ends although the process that is no trainer would not.
soon=(--set=parallel.start_seconds=1)
expect_beside 3 'rank 0: MPI_Init did not complete within 1 s; is every rank of the job this program?' \
  mpi_each "${tiny[@]}" "$new" "${soon[@]}" + sleep infinity

# A rank that may not even start the thread that keeps MPI's start from waiting for ever. The other one does not wait
# until its own deadline, which would be a second line.
expect_beside 3 "cannot start thread 1 of 1 for the deadline of MPI_Init and MPI_Finalize: Resource temporarily unavailable" \
  mpi_each prlimit --as=40000000000 --stack=64000000000 "${tiny[@]}" "$new" + "${tiny[@]}" "$new"

all_beside
[[ ! -e $work/new ]] || fail 'a refused run left its folder'

# What may differ between ranks changes no bit.
cp --recursive "$work/data" "$work/copy"
make_deadline 4 "${tiny[@]}" --output_dir="$work/alone" || fail "one rank: $(cat "$work/log")"
echo 'units_per_host: 2 multiply_adds_per_s: 1e10 memory_bytes_per_s: 1e10
same_host { latency_s: 1e-6 bytes_per_s: 1e9 }' >"$work/machine"
run=("${tiny[@]}" --output_dir="$work/together" --set=parallel.overlap=true --set=parallel.plan=PLANNED)
mpi_each "${run[@]}" --set=parallel.machine="$work/machine" + "${run[@]}" --set=data.path="$work/copy" \
  --set=data.reader_threads=3 --set=parallel.machine="$work/none" --set=parallel.threads=3 >"$work/log" 2>&1 ||
  fail "fields of a rank's own: $(cat "$work/log")"
[[ $(digest_of "$work/together") == "$(digest_of "$work/alone")" ]] ||
  fail 'fields of a rank'\''s own: another digest'

# begin RANKS RUN ARGUMENT...: a job in the background that does not end by itself; sets $mpirun.
begin() {
  mpirun --mca orte_execute_quiet 1 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --timeout $hang_seconds -np "$1" "${tiny[@]}" \
    --set=training.epochs=1000000 --output_dir="$work/$2" "${@:3}" >"$work/log" 2>&1 &
  mpirun=$!
}
# find_ranks RUN: once it trains; sets the array $ranks, the ranks' process ids by rank.
find_ranks() {
  local process rank
  until grep --quiet train "$work/$1/metrics.jsonl" 2>/dev/null || ! kill -0 $mpirun; do sleep 0.1; done
  ranks=()
  for process in $(pgrep --full -- "--output_dir=$work/$1\b"); do
    rank=$(tr '\0' '\n' <"/proc/$process/environ" | sed --quiet 's/^OMPI_COMM_WORLD_RANK=//p')
    [[ -z $rank ]] || ranks[rank]=$process
  done
}
endless() {
  begin "$@"
  find_ranks "$2"
}
# ended CODE PATTERN WHAT: the job ends with that code and one line besides progress, and what Open MPI says
# of reading a dead peer's memory, which matches.
ended() {
  local code
  wait $mpirun
  code=$?
  lines=$(loud_lines <"$work/log" | grep --invert-match '^\[.*\] Read -1')
  [[ $code -eq $1 && $(wc --lines <<<"$lines") -eq 1 && $lines =~ $2 ]] ||
    fail "$3: expected exit code $1 and one line like '$2', found exit code $code and: $lines"
}

# A stopped rank is blamed, and it alone.
endless 4 stopped --set=parallel.deadline_seconds=$deadline
kill -STOP "${ranks[2]}"
silent='no word, stopped or cut off, heard of last in [A-Za-z]* \([a-z_]*, call [0-9]*\)'
ended 3 "^elastor: rank 0: .* did not complete within $deadline s; waiting for rank 2; rank 2 on [^ ]*: $silent; ranks? [0-9,-]* waits? in " \
  'SIGSTOP of rank 2'
endless 3 stopped_first --set=parallel.deadline_seconds=$deadline
kill -STOP "${ranks[0]}"
ended 3 "^elastor: rank 1: .* did not complete within $deadline s; waiting for rank 0; rank 0 on [^ ]*: $silent; ranks? [0-9,-]* waits? in " \
  'SIGSTOP of rank 0'

# The watchdog names the late rank and what it is in, not those that wait, long before the deadline; and
# says that the job goes on.
# stalls WHO REST GOES_ON...: a line with these two extended patterns comes, and after the command another one.
stalls() {
  local line
  for line in "^elastor: no progress for [0-9.]* s: $1 on [^ ]*: $2" '^elastor: the job goes on after [0-9.]* s$'; do
    says() { tail --lines=+"$((told + 1))" "$work/log" | grep --text --quiet --extended-regexp "$line"; }
    wait_until says_or_ended
    says || fail "watchdog: expected '$line', found: $(grep --invert-match '^step ' "$work/log")"
    [[ $line == *'goes on'* ]] || "${@:3}"
  done
  told=$(wc --lines <"$work/log")
}
says_or_ended() { says || ! kill -0 $mpirun; }
# What the line says of a stopped rank and of those that wait. The signal may come while all write a checkpoint: then the
# rank may have said before what it is in.
stopped_rank="($silent|checkpoint_fsync for [0-9.]* s after .*); ranks? [0-9,-]* waits? (in |for the files of other ranks(; |$))"
told=0
touch "$work/slow_read"
export SLOW_RANK=1 SLOW_READ=$work/slow_read SLOW_SYNC=$work/slow_sync
LD_PRELOAD=$slow_disk begin 4 watched --set=parallel.watchdog_seconds=$((deadline / 2)) --set=checkpoint.every_steps=20
stalls 'rank 1' 'data_read for [0-9.]* s after .*; ranks 0,2-3 wait in AllReduceMax \(setup, call ' rm "$work/slow_read"
find_ranks watched
kill -STOP "${ranks[2]}"
stalls 'rank 2' "$stopped_rank" kill -CONT "${ranks[2]}"
kill -STOP "${ranks[0]}"
stalls 'rank 0' "$stopped_rank" kill -CONT "${ranks[0]}"
touch "$work/slow_sync"
stalls 'rank 1' 'checkpoint_fsync for [0-9.]* s after .*; ranks 0,2-3 wait for the files of other ranks$' \
  rm "$work/slow_sync"
unset SLOW_RANK SLOW_READ SLOW_SYNC
kill -USR1 $mpirun
wait $mpirun
code=$?
lines=$(loud_lines <"$work/log" | wc --lines)
[[ $code -eq 75 && $lines -eq 9 ]] ||
  fail "watchdog: expected exit code 75 and nine lines, found exit code $code and: $(cat "$work/log")"

# A rank that is stopped while all write a checkpoint is named, and that others wait for its files. A rank to which it
# still owes a message waits for that.
told=0
touch "$work/slow_sync"
SLOW_RANK=1 SLOW_SYNC=$work/slow_sync LD_PRELOAD=$slow_disk begin 4 frozen --set=parallel.watchdog_seconds=$((deadline / 2)) \
  --set=training.log_every_steps=1 --set=checkpoint.every_steps=20 --set=checkpoint.staging_bytes=1
find_ranks frozen
written() { [[ $(compgen -G "$work/frozen/checkpoints/*.partial/embedding-*.safetensors" | wc --lines) -eq 3 ]]; }
until written || ! kill -0 $mpirun; do sleep 0.02; done
kill -STOP "${ranks[1]}"
thaw() { rm "$work/slow_sync" && kill -CONT "${ranks[1]}"; }
stalls 'rank 1' "($silent|checkpoint_fsync for [0-9.]* s after .*); ranks? [0-9,-]* waits? for the files of other ranks(; |$)" thaw
kill -USR1 $mpirun
wait $mpirun
code=$?
[[ $code -eq 75 ]] || fail "stopped in a checkpoint: expected exit code 75, found $code and: $(cat "$work/log")"

# last_line PATTERN: of a rank that says it while mpirun ends the job; Open MPI 5's passes nothing on by then.
last_line() { if [[ $(mpirun --version) == *\ 5.* ]]; then echo '^$'; else echo "$1"; fi; }
# Time for a busy machine: from here on mpirun sends SIGTERM after 2 s, SIGKILL after 2 more.
export OMPI_MCA_odls_base_sigkill_timeout=2
# A dead one leaves a line although mpirun itself is told to be quiet.
endless 3 dead
kill -KILL "${ranks[1]}"
ended 137 "$(last_line '^elastor: rank 0: .*: SIGTERM came; waiting for rank 1$')" 'SIGKILL of rank 1'

# A signal to mpirun reaches the ranks; exit code 1 at SIGTERM is mpirun's own.
endless 2 terminated
kill -TERM $mpirun
ended 1 "$(last_line '^trainer: stopped by a signal at step [0-9]*; start the same command again with --resume')" \
  'SIGTERM to mpirun'
[[ -n $(ls "$work/terminated/checkpoints") ]] || fail 'SIGTERM to mpirun: no checkpoint'

unset OMPI_MCA_odls_base_sigkill_timeout

# Who is ended while nobody reads its lines any more, as by such an mpirun, still leaves its checkpoint.
mkfifo "$work/unread"
exec {unread}<>"$work/unread"
"${tiny[@]}" --set=training.epochs=1000000 --set=training.log_every_steps=1 --output_dir="$work/unheard" \
  2>"$work/unread" &
unheard=$!
wait_until test -s "$work/unheard/metrics.jsonl" || fail 'stderr unread: no run'
dd if=/dev/zero of="$work/unread" bs=512 count=256 oflag=nonblock 2>/dev/null # until it is full
kill -TERM $unheard
ended_unheard() { ! kill -0 $unheard; }
wait_until ended_unheard || { fail 'SIGTERM, stderr unread: still there' && kill -KILL $unheard; }
wait $unheard
code=$?
[[ $code -eq 75 && -n $(ls "$work/unheard/checkpoints" 2>/dev/null) ]] ||
  fail "SIGTERM, stderr unread: expected exit code 75 and a checkpoint, found exit code $code"
exec {unread}>&-

mkdir "$work/early"
TEST_TMPDIR=$work/early bash "$(dirname "$0")/early_signals.sh" "$trainer" "$prepare" 4 $$ ||
  fail 'signals in the first moments'
exit "$((failures > 0))"
