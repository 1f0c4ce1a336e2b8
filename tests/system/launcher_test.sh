#!/usr/bin/env bash
# A sweep ends with the results of an undisturbed one wherever its launcher is killed, and leaves no
# process behind; what a user can get wrong is one line. Arguments: the trainer, prepare, the launcher.
# Kills of the launcher at random moments: 3, or ELASTOR_LAUNCHER_KILLS.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
launcher=$PWD/$3
work=$TEST_TMPDIR
source "$(dirname "$0")/spread_run.sh"
make_tiny_data 6000

cat >"$work/sweep.textproto" <<'SWEEP'
name: "tiny"
base {
  model { rank_elastor { tokens: 4 token_width: 8 blocks: 2 } }
  embedding { width: 4 init_stddev: 0.1 }
  optimizer { learning_rate: 0.01 }
  training { batch_size: 72 epochs: 8 log_every_steps: 20 }
  spectrum { disabled: true }
  parallel { virtual_shards: 4 }
  checkpoint { every_steps: 50 keep: 1 }
}
axis {
  name: "model"
  point { label: "elastor" set: "model.kind=RANK_ELASTOR" }
  point { label: "mixer" set: "model.kind=RANK_MIXER" }
}
axis { field: "training.seed" values: "1" values: "2" }
SWEEP

# sweep OUTPUT ARGUMENT...
sweep() {
  local output=$1
  shift
  timeout $hang_seconds "$launcher" --trainer="$trainer" --sweep="$work/sweep.textproto" \
    --set=base.data.path="$work/data" --output_dir="$output" "$@"
}

# begin_sweep OUTPUT ARGUMENT...: the same in the background; $! is the launcher.
begin_sweep() {
  local output=$1
  shift
  "$launcher" --trainer="$trainer" --sweep="$work/sweep.textproto" \
    --set=base.data.path="$work/data" --output_dir="$output" "$@" >>"$output.log" 2>&1 &
}

# must_sweep WHAT CODE OUTPUT ARGUMENT...: must end with that exit code.
must_sweep() {
  local what=$1 code=$2 status
  shift 2
  sweep "$@" >"$work/log" 2>&1
  status=$?
  [[ $status -eq $code ]] && return
  fail "$what: expected exit code $code, found $status"
  cat "$work/log"
}

# same_table OUTPUT WHAT: all columns but wall_s, samples_per_s, peak_memory_bytes and attempts.
same_table() {
  diff <(sed 's/\(,[^,]*\)\{4\}$//' "$work/whole/runs.csv") \
    <(sed 's/\(,[^,]*\)\{4\}$//' "$1/runs.csv") || fail "$2: another table than the undisturbed one (<)"
}

# no_orphans OUTPUT: its runs end when the launcher has.
no_orphans() {
  gone() { ! pgrep --full -- "--output_dir=$1/runs/"; }
  wait_until gone "$1" || fail "processes are left: $(pgrep --full --list-full -- "--output_dir=$1/runs/")"
}

# kill_in_mid_run OUTPUT ARGUMENT...: kill -9 of the launcher of runs that would go on for long.
kill_in_mid_run() {
  begin_sweep "$@" --set=base.training.epochs=2000
  until grep --quiet '"event":"train"' "$1"/runs/*/metrics.jsonl 2>/dev/null ||
    ! kill -0 $! 2>/dev/null; do sleep 0.01; done
  kill -KILL $! || fail "kill -9 in mid-run: $(<"$1.log")"
  wait $! 2>/dev/null
  no_orphans "$1"
}

# records OUTPUT: how many lines its runs have written.
records() { cat "$1"/runs/*/metrics.jsonl 2>/dev/null | wc --lines; }

# summaries OUTPUT: a line for every finished run, another one when it is done again.
summaries() { find "$1/runs" -name summary.json -printf '%p %i %T@\n' 2>/dev/null; }

must_sweep 'the undisturbed sweep' 0 "$work/whole"
[[ $(grep --count ',done,0,' "$work/whole/runs.csv") -eq 4 ]] || fail "runs.csv: $(<"$work/whole/runs.csv")"
[[ $(cut --delimiter=, --fields=18 "$work/whole/runs.csv" | sort --unique | wc --lines) -eq 5 ]] ||
  fail 'runs.csv: expected four different digests'

# At its end it leaves the report, with the runs' own figures; --report writes the same bytes again.
report=$work/whole/report
while IFS=, read -r folder _ _ _ _ _ _ _ _ _ _ _ _ _ auc logloss _ digest _; do
  [[ $folder == folder ]] && continue
  for what in "$folder" "$(printf '>%.5f<' "$auc")" "$(printf '>%.5f<' "$logloss")" "${digest:0:12}"; do
    grep --quiet --fixed-strings -- "$what" "$report/report.html" || fail "report.html: no $what of $folder"
  done
  grep --quiet "[ ,]$logloss" "$report/points.csv" || fail "points.csv: no $logloss of $folder"
done <"$work/whole/runs.csv"
grep --quiet '^report: .*/report/report.html$' "$work/log" || fail 'the report is not announced'
cp "$report/report.html" "$work/report.html"
"$launcher" --report --output_dir="$work/whole" >"$work/log" 2>&1 || fail "--report: $(<"$work/log")"
cmp "$work/report.html" "$report/report.html" || fail '--report: other bytes'
# Its policy names its script, and the sweep that it keeps is one.
script=$(sed --quiet '/^<script>$/,/^<\/script>$/p' "$report/report.html" | sed '1d;$d')
hash=$(printf '\n%s\n' "$script" | sha256sum | head --bytes=64 | sed 's/../\\x&/g')
grep --quiet --fixed-strings "'sha256-$(printf "$hash" | base64)'" "$report/report.html" ||
  fail 'report.html: its policy does not allow its script'
"$launcher" --trainer="$trainer" --sweep="$work/whole/sweep.textproto" --output_dir="$work/whole" \
  --dry_run >"$work/log" 2>&1 || fail "sweep.textproto: $(<"$work/log")"
grep --quiet 'sweep tiny: 4 runs, 4 done' "$work/log" || fail "sweep.textproto: $(<"$work/log")"

# What is finished is not done again.
cp "$work/whole/runs.csv" "$work/before.csv"
must_sweep 'a finished sweep' 0 "$work/whole"
diff "$work/before.csv" "$work/whole/runs.csv" || fail 'a finished sweep: the table changed'

# Killed at random moments, it goes on where it was; what is finished stays as it is.
planned_kills=${ELASTOR_LAUNCHER_KILLS:-3}
kills=0
for ((begun = 0; begun < planned_kills; begun++)); do
  begin_sweep "$work/killed"
  moment=$(($(records "$work/killed") + RANDOM % (180 / planned_kills + 1)))
  until [[ $(records "$work/killed") -ge $moment ]] || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
  kill -KILL $! 2>/dev/null
  wait $! 2>/dev/null
  [[ $? -ne 137 ]] || kills=$((kills + 1))
  no_orphans "$work/killed"
  summaries "$work/killed" >>"$work/finished"
done
echo "killed at work $kills times of $planned_kills:" \
  "$(sort --unique "$work/finished" | wc --lines) runs were finished before the last kill," \
  "$(cat "$work/killed/attempts/"*.jsonl | grep --count '"event":"start"') attempts until then"
kill_in_mid_run "$work/long"
must_sweep 'after kill -9' 0 "$work/killed"
same_table "$work/killed" 'kill -9'
for figures in fits points spectra; do
  cmp "$work/whole/report/$figures.csv" "$work/killed/report/$figures.csv" || fail "kill -9: other $figures in the report"
done
summaries "$work/killed" >"$work/summaries"
sort --unique "$work/finished" | grep --invert-match --fixed-strings --line-regexp \
  --file="$work/summaries" && fail 'kill -9: a finished run was done again'

# Two ranks a run have the bits of one, and die with the launcher too.
if [[ $(nproc) -ge 2 ]]; then
  kill_in_mid_run "$work/long_ranks" --set=resources.ranks=2
  must_sweep 'two ranks a run' 0 "$work/ranks" --set=resources.ranks=2
  diff <(cut --delimiter=, --fields=18 "$work/whole/runs.csv") \
    <(cut --delimiter=, --fields=18 "$work/ranks/runs.csv") || fail 'two ranks: other digests'
fi

# A tuning that is killed goes on to the undisturbed one's table; calibration says how long it takes.
{
  cat "$work/sweep.textproto"
  echo 'tuning { field { count: 3 } extensions: 1 }'
} >"$work/tuned.textproto"
tuning=("$launcher" --trainer="$trainer" --sweep="$work/tuned.textproto"
  --set=base.data.path="$work/data" --set=base.training.epochs=2)
# tuned OUTPUT ARGUMENT...
tuned() { timeout $hang_seconds "${tuning[@]}" --output_dir="$@"; }
tuned "$work/tuned" --dry_run --calibrate >"$work/log" 2>&1 || fail "--calibrate: $(<"$work/log")"
grep --quiet 'sweep tiny: 6 runs, 0 done; .*at most about .* core-hours' "$work/log" ||
  fail "--calibrate: $(<"$work/log")"
tuned "$work/tuned" >"$work/log" 2>&1 || fail "a tuning: $(<"$work/log")"
[[ $(grep --count ',final,.*,done,0,' "$work/tuned/runs.csv") -eq 4 ]] || fail "a tuning: $(<"$work/tuned/runs.csv")"
# The second of three trials a model goes on where the first rung left it, as does the best at the end.
[[ $(grep --count ' resume tune_.*_rung[23]_' "$work/log") -ge 6 ]] || fail "a tuning: $(<"$work/log")"
[[ $(grep --count ' resume ' "$work/log") -eq $(grep --count ' resume tune_.*_rung[23]_' "$work/log") ]] ||
  fail "a tuning: something else was resumed: $(<"$work/log")"
[[ $(grep --count '^tuned [elastormix]*: optimizer.learning_rate=' "$work/log") -eq 2 ]] ||
  fail "a tuning: $(<"$work/log")"
"${tuning[@]}" --output_dir="$work/tuned_killed" >"$work/log" 2>&1 &
until [[ $(records "$work/tuned_killed") -ge 20 ]] || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
kill -KILL $! || fail "a tuning to be killed: $(<"$work/log")"
wait $! 2>/dev/null
no_orphans "$work/tuned_killed"
tuned "$work/tuned_killed" >"$work/log" 2>&1 || fail "a killed tuning: $(<"$work/log")"
diff <(sed 's/\(,[^,]*\)\{4\}$//' "$work/tuned/runs.csv") \
  <(sed 's/\(,[^,]*\)\{4\}$//' "$work/tuned_killed/runs.csv") || fail 'a killed tuning: another table'
tuned "$work/tuned" >"$work/log" 2>&1 || fail "a tuning again: $(<"$work/log")"
grep --quiet ' start ' "$work/log" && fail 'a tuning again: something was trained'

# One launcher at a time; a signal stops it with checkpoints.
begin_sweep "$work/long" --set=base.training.epochs=2000
until grep --quiet ' resume ' "$work/long.log" || ! kill -0 $! 2>/dev/null; do sleep 0.05; done
begun=$(records "$work/long")
until [[ $(records "$work/long") -gt $begun ]] || ! kill -0 $! 2>/dev/null; do sleep 0.05; done
expect_line 2 'is at work there' sweep "$work/long" --set=base.training.epochs=2000
"$launcher" --status --output_dir="$work/long" | grep --quiet ' running  ' ||
  fail '--status: no run is running'
kill -TERM $!
wait $!
status=$?
no_orphans "$work/long"
[[ $status -eq 75 ]] || fail "SIGTERM: expected exit code 75, found $status: $(<"$work/long.log")"
"$launcher" --status --output_dir="$work/long" | grep --quiet ' cut off  ' ||
  fail '--status: no run is cut off'
[[ -n $(find "$work/long/runs" -name 'step-*') ]] || fail 'SIGTERM: no checkpoint'

# Every run is stopped once on purpose, whatever becomes of the launcher, and ends with its bits.
begin_sweep "$work/rehearsed" --rehearse_preemption
until grep --quiet --no-messages '"rehearsal"' "$work/rehearsed/attempts/"* || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
kill -KILL $! 2>/dev/null
wait $! 2>/dev/null
must_sweep 'a rehearsed preemption' 0 "$work/rehearsed" --rehearse_preemption
same_table "$work/rehearsed" 'a rehearsed preemption'
grep --quiet 'rehearsal: of 4 finished runs [1-4] were stopped in mid-run and went on, [0-3] ended before' \
  "$work/log" || fail "a rehearsed preemption: $(<"$work/log")"
must_sweep 'a rehearsed preemption again' 0 "$work/rehearsed" --rehearse_preemption
grep --quiet ' resume ' "$work/log" && fail 'a run was stopped twice'

# In the background, where only --stop ends it.
expect_line 0 'goes on in the background; launcher --status' \
  sweep "$work/detached" --set=base.training.epochs=2000 --detach
expect_line 2 'is at work there' sweep "$work/detached" --set=base.training.epochs=2000
detached=$(cut --delimiter=' ' --fields=1 "$work/detached/launcher.lock")
kill -HUP "$detached"
until grep --quiet '"event":"train"' "$work/detached"/runs/*/metrics.jsonl 2>/dev/null ||
  ! kill -0 "$detached" 2>/dev/null; do sleep 0.01; done
"$launcher" --status --output_dir="$work/detached" | grep --quiet "launcher $detached on host .* is at work" ||
  fail '--detach: no launcher is at work'
grep ' stopping: ' "$work/detached/launcher.log" && fail '--detach: SIGHUP stops the sweep'
"$launcher" --stop --output_dir="$work/detached" || fail '--stop'
no_orphans "$work/detached"
"$launcher" --status --output_dir="$work/detached" | grep --quiet 'no launcher is at work' || fail '--stop did not wait'
grep --quiet 'stopped by a signal with 0 of 4 runs done' "$work/detached/launcher.log" ||
  fail "--stop: $(<"$work/detached/launcher.log")"
expect_line 2 'no launcher is at work there' "$launcher" --stop --output_dir="$work/detached"
expect_line 2 'expected one of them at most' "$launcher" --stop --status --output_dir="$work/detached"

# A run whose log cannot be written fails alone.
mapfile -t begun_anew < <(basename --multiple "$work"/killed/runs/* | head --lines=2)
for run in "${begun_anew[@]}"; do
  rm --recursive "$work/killed/runs/$run" "$work/killed/attempts/$run.jsonl" "$work/killed/logs/$run.log"
done
mkdir "$work/killed/logs/${begun_anew[0]}.log"
must_sweep 'a log that cannot be written' 2 "$work/killed"
grep --quiet " failed ${begun_anew[0]}  a mistake: .*/${begun_anew[0]}.log: open: Is a directory" "$work/log" &&
  grep --quiet " done   ${begun_anew[1]} " "$work/log" || fail "a log that cannot be written: $(<"$work/log")"
rmdir "$work/killed/logs/${begun_anew[0]}.log"
must_sweep 'a log that can be written again' 0 "$work/killed" --retry_failed
same_table "$work/killed" 'a log that could not be written'

# A sweep that changes keeps its runs.
sed --in-place 's/values: "1" values: "2"/values: "2" values: "3"/' "$work/sweep.textproto"
must_sweep 'a changed sweep' 0 "$work/whole"
grep --quiet '2 runs kept, 2 new, 2 no longer in the sweep (their folders stay): elastor_seed1-' \
  "$work/log" || fail "a changed sweep: $(<"$work/log")"
[[ $(grep --count ',done,0,' "$work/whole/runs.csv") -eq 4 ]] || fail 'a changed sweep: not all done'

# A run that diverges is told, not tried again, and the others go on.
cat >>"$work/sweep.textproto" <<'SWEEP'
axis { field: "optimizer.learning_rate" values: "0.01" values: "1e38" }
SWEEP
sed --in-place 's/values: "2" values: "3"/values: "2"/' "$work/sweep.textproto"
must_sweep 'a diverging run' 4 "$work/diverging"
[[ $(grep --count '^[0-9:]* failed .*  diverged: trainer: ' "$work/log") -eq 2 ]] ||
  fail "a diverging run: $(<"$work/log")"
[[ $(grep --count ',done,0,' "$work/diverging/runs.csv") -eq 2 ]] || fail 'diverging: the others'
must_sweep 'a diverging run again' 4 "$work/diverging"
grep --quiet ' start ' "$work/log" && fail 'a diverging run was started again'
must_sweep 'a diverging run, retried' 4 "$work/diverging" --retry_failed
[[ $(grep --count ' start \| resume ' "$work/log") -eq 2 ]] || fail '--retry_failed: not two starts'

# Mistakes are one line, and leave nothing.
new=$work/new
sed 's/training.seed/model.blokcs/' "$work/sweep.textproto" >"$work/unknown.textproto"
expect_line 2 "axis 'model.blokcs': model.blokcs=2: TokenModelConfig has no field 'blokcs'" \
  "$launcher" --trainer="$trainer" --sweep="$work/unknown.textproto" --output_dir="$new"
expect_line 2 'cannot run on this machine; the first: ' sweep "$new" --set=resources.threads=4000
expect_line 2 'needs at least' sweep "$new" --set=base.embedding.width=1000000 \
  --set=base.optimizer.sparse=DENSE_ADAM
# Of MPICH, or none. With one core, two ranks are refused before.
mkdir "$work/mpich" && printf '#!/bin/sh\nexit 255\n' >"$work/mpich/mpirun" && chmod +x "$work/mpich/mpirun"
for path in "not Open MPI's:$work/mpich:$PATH" "not found:/nonexistent"; do
  [[ $(/usr/bin/nproc) -gt 1 ]] || break
  expect_line 2 "mpirun: ${path%%:*}; expected Open MPI's first in PATH" env PATH="${path#*:}" "$launcher" --trainer="$trainer" \
    --sweep="$work/sweep.textproto" --set=base.data.path="$work/data" --set=resources.ranks=2 --output_dir="$new"
done
expect_line 2 'data.path: empty' "$launcher" --trainer="$trainer" --output_dir="$new" \
  --sweep="$work/sweep.textproto" --set=base.data.shape.numeric_fields=3
expect_line 2 '--trainer=/nowhere' "$launcher" --trainer=/nowhere --output_dir="$new" \
  --sweep="$work/sweep.textproto"
expect_line 2 'holds something and no sweep' sweep "$work/data"
sed 's/"tiny"/"other"/' "$work/sweep.textproto" >"$work/other.textproto"
expect_line 2 "is of sweep 'tiny', not of 'other'; expected its own or a new directory" \
  "$launcher" --trainer="$trainer" --output_dir="$work/killed" --sweep="$work/other.textproto" \
  --set=base.data.path="$work/data"
expect_line 2 '--sweep: missing' "$launcher" --output_dir="$new"
expect_line 2 'holds no sweep; expected one that was begun' "$launcher" --report --output_dir="$new"
expect_line 2 'holds no sweep; expected one that was begun' "$launcher" --status --output_dir="$new"
sweep "$new" --dry_run >"$work/log" 2>&1 || fail "--dry_run: $(<"$work/log")"
[[ $(grep --count -- "--experiment=$new/experiments/" "$work/log") -eq 4 ]] || fail "--dry_run: $(<"$work/log")"
grep --quiet 'times are not known' "$work/log" || fail "--dry_run: $(<"$work/log")"
# A machine's file tells times before anything has run.
echo 'name: "slow" units_per_host: 2 multiply_adds_per_s: 1e5 memory_bytes_per_s: 1e9' >"$work/slow.textproto"
sweep "$new" --dry_run --set=base.parallel.machine="$work/slow.textproto" >"$work/log" 2>&1 &&
  grep --quiet 'sweep tiny: 4 runs, 0 done; .* core-hours, .* to do' "$work/log" || fail "times of a machine: $(<"$work/log")"
expect_line 2 'launcher: parallel.machine: ' sweep "$new" --dry_run --set=base.parallel.machine="$work/nowhere"
[[ ! -e $new ]] || fail "something was left: $(find "$new")"
exit "$((failures > 0))"
