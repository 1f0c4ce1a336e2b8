#!/usr/bin/env bash
# trainer --supervise: a job whose ranks, or mpirun, are killed goes on by itself and ends with the bits of
# one that nobody touched; signals, limits and mistakes of who supervises.
# Arguments: the trainer, prepare.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
work=$TEST_TMPDIR
source "$(dirname "$0")/spread_run.sh"

cat >"$work/tiny.textproto" <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding { width: 4 }
training { batch_size: 64 epochs: 1000000 max_steps: 400 }
checkpoint { every_steps: 50 }
spectrum { disabled: true }
EXPERIMENT
make_tiny_data 4000
tiny=("$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/data")

# Mistakes: one line, and nothing left behind.
new=--output_dir=$work/new
supervised=("${tiny[@]}" "$new" --supervise --ranks=2)
expect_line 2 '--output_dir: missing' "${tiny[@]}" --supervise
expect_line 2 '--supervise: mpirun or srun started this process' mpirun --mca orte_execute_quiet 1 --oversubscribe -np 2 "${supervised[@]}"
expect_line 2 "mpirun: not found; expected Open MPI's first in PATH" env PATH=/nonexistent "${supervised[@]}"
expect_line 2 '--supervise: only --mode=train can go on; found --mode=describe' "${supervised[@]}" --mode=describe
expect_line 2 'checkpoint.disabled: true; expected false' "${supervised[@]}" --set=checkpoint.disabled=true
expect_line 2 'checkpoint.every_steps: 0, and every_minutes, delta_every_steps' "${supervised[@]}" --set=checkpoint.every_steps=0
expect_line 2 '--hosts=localhost:1,no..host:1: no..host: ' "${supervised[@]}" --hosts=localhost:1,no..host:1
expect_line 2 '--ranks=2: the hosts have room for 1' "${supervised[@]}" --hosts=localhost:1
expect_line 2 '--hosts: is of a job that is supervised' "${tiny[@]}" "$new" --hosts=localhost
expect_line 2 '--max_restarts=-1: expected 0 or more' "${supervised[@]}" --max_restarts=-1
expect_line 2 'cannot be spread over 2 ranks' "${supervised[@]}" --set=parallel.virtual_shards=1
[[ -z $(ls --directory "$work"/new* 2>/dev/null) ]] || fail "a mistake left $(ls --directory "$work"/new*)"

make_deadline 2 "${tiny[@]}" --output_dir="$work/alone" || fail "undisturbed: $(<"$work/log")"

# Four jobs whose mpirun stays: one is done, one was told to end, of one the ranks die while they start, before
# anybody has seen them, and are never waited for, and of one that is done a rank is frozen. Looked at below.
cat >"$work/staying" <<'STAYING'
#!/usr/bin/env bash
mpirun --mca orte_execute_quiet 1 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "$@" &
trap "kill -USR1 $!" USR1
wait $!
wait $!
exec sleep 600
STAYING
cat >"$work/deaf" <<'DEAF'
#!/usr/bin/env bash
mkdir "$0.again" 2>/dev/null || exec mpirun --mca orte_execute_quiet 1 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "$@"
(sleep 0.2; exec "$6" --version >/dev/null) &
exec sleep 600
DEAF
cat >"$work/frozen" <<'FROZEN'
#!/usr/bin/env bash
mpirun --mca orte_execute_quiet 1 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "$@"
"${@:3:4}" --flagfile=<(exec sleep 600) # flags that never come
FROZEN
chmod +x "$work/staying" "$work/deaf" "$work/frozen"
staying=(timeout --signal=KILL $hang_seconds "${tiny[@]}" --supervise --ranks=2 --launch="$work/staying")
"${staying[@]}" --output_dir="$work/done" >"$work/done.log" 2>&1 &
left_done=$!
"${staying[@]}" --output_dir="$work/told" --set=training.max_steps=0 >"$work/told.log" 2>&1 &
left_told=$!
until grep --quiet '"event":"checkpoint"' "$work/told/metrics.jsonl" 2>/dev/null || ! kill -0 $left_told 2>/dev/null; do sleep 0.05; done
pkill -TERM --parent $left_told
timeout --signal=KILL $hang_seconds "${tiny[@]}" --output_dir="$work/unseen" --supervise --ranks=2 --launch="$work/deaf" >"$work/unseen.log" 2>&1 &
left_unseen=$!
timeout --signal=KILL $hang_seconds "${tiny[@]}" --output_dir="$work/whole" --supervise --ranks=2 --launch="$work/frozen" \
  --set=parallel.deadline_seconds=$deadline >"$work/whole.log" 2>&1 &
left_frozen=$!

# A job that cannot run is tried so often and no more.
timeout $hang_seconds "${supervised[@]}" --launch=false --max_restarts=2 >"$work/log" 2>&1
code=$?
expected='supervise: the job: exit code 1; again on 2 ranks from the beginning, try 1 of 2
supervise: the job: exit code 1; again on 2 ranks from the beginning, try 2 of 2
supervise: the job: exit code 1; given up after 2 tries without a later checkpoint'
[[ $code -eq 1 && $(<"$work/log") == "$expected" ]] ||
  fail "a job that cannot run: found exit code $code and: $(<"$work/log")"

# processes NAME: of the job of $run.
processes() { pgrep --full -- "^[^ ]*$1 .*--output_dir=$run( |\$)" | grep --invert-match "^$supervisor\$"; }
# supervise RUN RANKS ARGUMENT...: in the background, until it has trained to its first checkpoint.
supervise() {
  run=$work/$1
  timeout --signal=KILL $hang_seconds "${tiny[@]}" --output_dir="$run" --supervise --ranks="$2" "${@:3}" >"$work/log" 2>&1 &
  job=$!
  until supervisor=$(pgrep --parent $job) && [[ -n $supervisor ]]; do sleep 0.05; done
  trained 0
}
# trained COUNT: once metrics.jsonl has more than so many checkpoints; sets $checkpoints.
trained() {
  until checkpoints=$(grep --count '"event":"checkpoint"' "$run/metrics.jsonl" 2>/dev/null) &&
    [[ $checkpoints -gt $1 ]] || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
}

supervise lost 4 --set=checkpoint.every_steps=0 --set=checkpoint.delta_every_steps=50
kill -KILL "$(processes trainer | tail --lines=1)"
until grep --quiet 'try 1 of 5' "$work/log" || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
trained "$(grep --count '"event":"checkpoint"' "$run/metrics.jsonl")"
expect_line 2 'another supervisor is at work there' "${tiny[@]}" --output_dir="$run" --supervise
pkill -KILL --parent "$supervisor"
wait $job
code=$?
lines=$(grep '^supervise: ' "$work/log")
[[ $code -eq 0 && $(wc --lines <<<"$lines") -eq 2 &&
  $lines =~ supervise:\ rank\ [0-3]\ on\ [^\ ]+\ was\ killed\ by\ signal\ 9\ at\ step\ [0-9]+\;\ again\ on\ 4\ ranks\ from\ step\ [0-9]+,\ try\ 1\ of\ 5 &&
  $lines =~ supervise:\ the\ job:\ killed\ by\ signal\ 9\ at\ step\ [0-9]+\;\ again\ on\ 4\ ranks\ from\ step\ [0-9]+,\ try\ 1\ of\ 5 ]] ||
  fail "a rank and mpirun killed: found exit code $code and: $(grep --invert-match '^step ' "$work/log")"
[[ $(digest_of "$run") == "$(digest_of "$work/alone")" ]] || fail 'a rank and mpirun killed: another digest'
[[ ! -e $run.supervise ]] || fail 'the lock stays'

# A signal to the supervisor is the job's.
supervise stopped 2 --set=training.max_steps=0
kill -TERM "$supervisor"
wait $job
code=$?
lines=$(grep --count '^supervise: ' "$work/log")
[[ $code -eq 75 && $lines -eq 1 ]] && grep --quiet 'stopped by a signal at step' "$work/log" ||
  fail "SIGTERM: found exit code $code and: $(grep --invert-match '^step ' "$work/log")"

# Nothing outlives it.
supervise orphaned 3 --set=training.max_steps=0
kill -KILL "$supervisor"
no_process() { [[ -z $(processes '') ]]; }
wait_until no_process || fail "kill -9 of the supervisor: there is still $(processes '')"

wait $left_done
code=$?
[[ $code -eq 0 && $(digest_of "$work/done") == "$(digest_of "$work/alone")" ]] && ! grep --quiet '^supervise: ' "$work/done.log" ||
  fail "mpirun stays after a job that is done: found exit code $code and: $(grep --invert-match '^step ' "$work/done.log")"
wait $left_told
code=$?
[[ $code -eq 75 && $(grep --count '^supervise: ' "$work/told.log") -eq 1 ]] ||
  fail "mpirun stays after a stop: found exit code $code and: $(grep --invert-match '^step ' "$work/told.log")"
wait $left_unseen
code=$?
[[ $code -eq 0 && $(digest_of "$work/unseen") == "$(digest_of "$work/alone")" &&
  $(grep '^supervise: ' "$work/unseen.log") == 'supervise: mpirun did not end within 20 s of its ranks; again on 2 ranks from the beginning, try 1 of 5' ]] ||
  fail "ranks that died unseen: found exit code $code and: $(grep --invert-match '^step ' "$work/unseen.log")"
wait $left_frozen
code=$?
[[ $code -eq 0 && $(digest_of "$work/whole") == "$(digest_of "$work/alone")" ]] && ! grep --quiet '^supervise: ' "$work/whole.log" ||
  fail "a rank frozen at the end: found exit code $code and: $(grep --invert-match '^step ' "$work/whole.log")"
exit "$((failures > 0))"
