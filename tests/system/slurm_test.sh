#!/usr/bin/env bash
# A sweep through a private Slurm of two nodes on this machine: what is submitted once is run once,
# whatever ends launchers, jobs and nodes, and ends with the table of the same sweep without Slurm.
# Arguments: the trainer, prepare, the launcher. Without root, Slurm or namespaces it says so and ends.
# Kills of the launcher at random moments: none, or ELASTOR_LAUNCHER_KILLS.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
launcher=$PWD/$3
source "$(dirname "$0")/spread_run.sh"
source "$(dirname "$0")/private_slurm.sh"
skip_without_slurm
work=$(mktemp --directory /tmp/slurm_test.XXXXXX) # Sockets need short paths.
trap 'stop_slurm; rm --recursive --force "$work"' EXIT
trap exit TERM INT
make_tiny_data 6000
start_slurm "$work/cluster" || {
  fail "no cluster: $(tail --lines=20 "$work"/cluster/*.log)"
  exit 1
}

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
resources { minutes: 10 }
SWEEP
sed '/^axis/,$d' "$work/sweep.textproto" >"$work/one.textproto"
echo 'resources { minutes: 10 }' >>"$work/one.textproto"

# sweep OUTPUT ARGUMENT...: the sweep of $sweep through Slurm.
sweep=$work/sweep.textproto
sweep() {
  local output=$1
  shift
  timeout $hang_seconds nsenter --net="/run/netns/${prefix}0" -- "$launcher" --scheduler=slurm --trainer="$trainer" \
    --sweep="$sweep" --set=base.data.path="$work/data" --output_dir="$output" "$@"
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

# without_slurm OUTPUT ARGUMENT...: the same sweep, one run after the other.
without_slurm() {
  local output=$1
  shift
  taskset --cpu-list "$(taskset --cpu-list --pid $$ | sed 's/.*: *\([0-9]*\).*/\1/')" "$launcher" \
    --trainer="$trainer" --sweep="$sweep" --set=base.data.path="$work/data" --output_dir="$output" "$@" \
    >"$output.log" 2>&1 || fail "without Slurm: $(<"$output.log")"
}

# same_table OUTPUT WHAT REFERENCE: all columns but wall_s, samples_per_s, peak_memory_bytes and attempts.
same_table() {
  diff <(sed 's/\(,[^,]*\)\{4\}$//' "$3/runs.csv") \
    <(sed 's/\(,[^,]*\)\{4\}$//' "$1/runs.csv") || fail "$2: another table than without Slurm (<)"
}

# starts OUTPUT: how many attempts its runs have had.
starts() { cat "$1"/attempts/* 2>/dev/null | grep --count '"event":"start"'; }

# wait_for WHAT COMMAND...: until it succeeds.
wait_for() {
  wait_until "${@:2}" || {
    fail "waited in vain: $1"
    on 0 squeue --array --states=all
    return 1
  }
}
trains() { grep --quiet '"event":"train"' "$1"/runs/*/metrics.jsonl; }
has_started() { [[ $(starts "$1") -ge $2 ]]; }
has_report() { [[ -e $1/report/report.html ]]; } # the last that a sweep writes
no_jobs() { [[ -z $(on 0 squeue --noheader) ]]; }
jobs_of() { sed --quiet 's/.* in Slurm as jobs //p' "$1.log"; }
id_of() { cat "$1"/slurm/array-"$2".job; }

without_slurm "$work/whole"

# Arrays of three elements at most; there is no accounting.
on 0 sacct >/dev/null 2>&1 && fail 'the cluster has accounting'
must_sweep 'arrays' 0 "$work/arrays"
same_table "$work/arrays" 'arrays' "$work/whole"
[[ $(grep --count ' array ' "$work/log") -eq 2 && $(starts "$work/arrays") -eq 4 ]] || fail "arrays: $(<"$work/log")"
must_sweep 'a finished sweep' 0 "$work/arrays"
[[ $(grep --count ' array ' "$work/log") -eq 0 ]] || fail "a finished sweep: $(<"$work/log")"

# Killed between the submission and the note of it, then started twice: no run is started twice.
cat >"$work/sbatch" <<SBATCH
#!/bin/bash
id=\$($(command -v sbatch) "\$@") || exit
[[ -e $work/killed.once ]] || { touch $work/killed.once && kill -KILL \$PPID && sleep 1; }
echo "\$id"
SBATCH
chmod +x "$work/sbatch"
PATH=$work:$PATH sweep "$work/killed" >"$work/log" 2>&1
status=$?
[[ $status -eq 137 ]] || fail "kill -9 of the launcher: found $status: $(<"$work/log")"
[[ -e $work/killed/slurm/array-1.jsonl && ! -e $work/killed/slurm/array-1.job ]] || fail 'kill -9: too late'
sweep "$work/killed" --detach >"$work/log" 2>&1 || fail "after kill -9: $(<"$work/log")"
must_sweep 'after kill -9' 0 "$work/killed"
same_table "$work/killed" 'kill -9' "$work/whole"
[[ $(starts "$work/killed") -eq 4 ]] || fail "kill -9: $(starts "$work/killed") starts of 4 runs"

# Killed at random moments, by hand.
kills=${ELASTOR_LAUNCHER_KILLS:-0}
slow=(--set=base.training.epochs=60 --set=slurm.throttle=1)
for ((kill = 1; kill <= kills; kill++)); do
  sweep "$work/random" "${slow[@]}" >>"$work/random.log" 2>&1 &
  sleep "$((RANDOM % 3)).$((RANDOM % 10))"
  pgrep --full -- "^$launcher .*--output_dir=$work/random " | xargs --no-run-if-empty kill -KILL
  wait $!
  echo "kill $kill: $(starts "$work/random") starts, $(find "$work/random/runs" -name summary.json 2>/dev/null | wc --lines) runs done"
done
if [[ $kills -gt 0 ]]; then
  must_sweep 'random kills' 0 "$work/random" "${slow[@]}"
  without_slurm "$work/slow" "${slow[@]}"
  same_table "$work/random" 'random kills' "$work/slow"
  [[ $(starts "$work/random") -eq 4 ]] || fail "random kills: $(starts "$work/random") starts of 4 runs"
fi

# One run of two ranks on two nodes, preempted by another job in mid-run.
sweep=$work/one.textproto
long=(--set=base.training.epochs=200 --set=base.training.max_steps=8000)
without_slurm "$work/long_whole" "${long[@]}"
two_nodes=(--set=resources.ranks=2 --set=resources.nodes=2 "${long[@]}")
sweep "$work/long" "${two_nodes[@]}" >"$work/long.log" 2>&1 &
follower=$!
wait_for 'two nodes' trains "$work/long"
for host in 1 2; do
  ps -o args= --pid "$(ip netns pids "$prefix$host" | paste --serial --delimiters=,)" |
    grep --quiet "^$trainer .*--output_dir=$work/long/runs/" || fail "no rank on host $host"
done
on 0 sbatch --partition=high --nodes=2 --exclusive --output=/dev/null --wrap='sleep 1' >/dev/null
wait_for 'preemption' grep --quiet '"exit_code":75' "$work"/long/attempts/*

# Meanwhile others use what is left of the cluster. An element that waits is cancelled, nobody watches: the
# others end, the launcher's own job writes the table. The user's next command starts the cancelled one again.
sweep=$work/sweep.textproto
sweep "$work/cancelled" --detach --set=slurm.throttle=1 >"$work/log" 2>&1 || fail "--detach: $(<"$work/log")"
on 0 scancel "$(id_of "$work/cancelled" 1)_2"
wait_for 'the report of a detached sweep' has_report "$work/cancelled"
[[ $(grep --count ',done,0,' "$work/cancelled/runs.csv") -eq 3 && $(grep --count ',failed,-1,' "$work/cancelled/runs.csv") -eq 1 ]] ||
  fail "cancelled: $(<"$work/cancelled/runs.csv")"
"$launcher" --status --output_dir="$work/whole" >"$work/log" || fail '--status without Slurm'
must_sweep 'after scancel' 0 "$work/cancelled"
same_table "$work/cancelled" 'scancel' "$work/whole"
[[ $(starts "$work/cancelled") -eq 4 ]] || fail "scancel: $(starts "$work/cancelled") starts of 4 runs"

# The launcher that follows is not needed; while Slurm has runs nobody else starts them.
sweep "$work/stay" --set=base.training.epochs=2000 >"$work/stay.log" 2>&1 &
wait_for 'a long sweep' trains "$work/stay"
launch() { nsenter --net="/run/netns/${prefix}0" -- "$launcher" "$@"; }
launch --status --output_dir="$work/stay" | grep --quiet " running .* running on $prefix" || fail '--status: no run is running'
expect_line 2 'Slurm has 4 runs of it' launch --trainer="$trainer" --sweep="$sweep" \
  --set=base.data.path="$work/data" --output_dir="$work/stay" --set=base.training.epochs=2000
kill -TERM "$(pgrep --full -- "^$launcher .*--output_dir=$work/stay ")"
wait $!
status=$?
[[ $status -eq 75 ]] && grep --quiet 'the jobs go on without this launcher' "$work/stay.log" ||
  fail "SIGTERM: found $status: $(<"$work/stay.log")"
[[ $(on 0 squeue --noheader --array --name="$(jobs_of "$work/stay")" | wc --lines) -eq 5 ]] || fail 'SIGTERM: jobs have ended'
launch --stop --output_dir="$work/stay" >"$work/log" || fail "--stop: $(<"$work/log")"

# Mistakes are one line.
new=$work/new
expect_line 2 'squeue: not found; expected Slurm' env PATH=/nowhere "$launcher" --stop --output_dir="$work/stay"
expect_line 2 'scontrol: not found; expected Slurm' env PATH=/nowhere "$launcher" --trainer="$trainer" \
  --scheduler=slurm --sweep="$sweep" --set=base.data.path="$work/data" --output_dir="$new"
expect_line 2 'nvalid partition' sweep "$new" --set=slurm.options=--partition=nowhere
expect_line 2 'resources.minutes: 0; expected' sweep "$new" --set=resources.minutes=0
expect_line 2 '3 ranks cannot be dealt evenly to 2 nodes' sweep "$new" --set=resources.ranks=3 --set=resources.nodes=2
expect_line 2 'Slurm has no field' sweep "$new" --set=slurm.option=x
expect_line 2 'needs 2 nodes; expected' launch --trainer="$trainer" --sweep="$sweep" \
  --set=base.data.path="$work/data" --output_dir="$new" --set=resources.ranks=2 --set=resources.nodes=2
sweep "$new" --dry_run --set=resources.threads=4000 >"$work/log" 2>&1 || fail "--dry_run: $(<"$work/log")"
grep --quiet '4 runs to submit, job arrays: 2' "$work/log" || fail "--dry_run: $(<"$work/log")"

# The run of two nodes.
wait "$follower" || fail "two nodes: $(<"$work/long.log")"
[[ $(digest_of "$work"/long/runs/*) == "$(digest_of "$work"/long_whole/runs/*)" ]] || fail 'two nodes: another digest'
[[ $(starts "$work/long") -eq 2 ]] || fail "two nodes: $(cat "$work"/long/attempts/*)"
grep --quiet "_0 restart 1 on $prefix\[1-2\]" "$work"/long/attempts/* || fail "two nodes: $(cat "$work"/long/attempts/*)"

# A node is cut off in mid-run, and what it ran lives on, frozen so that it cannot end by itself. It gives
# way to the attempt on another node.
sweep=$work/one.textproto
lost=(--set=base.training.epochs=60)
without_slurm "$work/lost_whole" "${lost[@]}"
sweep "$work/lost" "${lost[@]}" >"$work/lost.log" 2>&1 &
follower=$!
wait_for 'a run to lose' trains "$work/lost"
for host in 1 2; do
  old=$(ip netns pids "$prefix$host" | xargs --no-run-if-empty ps -o pid=,comm= --pid | sed --quiet 's/ trainer$//p')
  [[ -n $old ]] && break
done
kill -STOP $old && cut_link "$host"
# Slurm would find out by itself, half a minute later.
on 0 scontrol update nodename="$prefix$host" state=down reason=cut || fail 'a lost node: scontrol'
wait "$follower" || fail "a lost node: $(<"$work/lost.log")"
[[ $(digest_of "$work"/lost/runs/*) == "$(digest_of "$work"/lost_whole/runs/*)" ]] || fail 'a lost node: another digest'
grep --quiet 'superseded by a later attempt' "$work"/lost/slurm/array-1.log || fail "a lost node: $(cat "$work"/lost/slurm/array-1.log)"
kill -0 $old 2>/dev/null && fail 'a lost node: its rank lives on'

# One run by the script, with a site's settings: after a signal Slurm queues it again, and it goes on.
mend_link "$host"
wait_for 'both nodes' all_idle
mkdir --parents "$work/programs/trainer"
ln --symbolic "$trainer" "$work/programs/trainer/trainer"
one_run=(--experiment="$(echo "$work"/long_whole/runs/*/experiment.textproto)" --set=training.max_steps=2000)
"$trainer" "${one_run[@]}" --output_dir="$work/one_run" >"$work/log" 2>&1 || fail "one run: $(<"$work/log")"
script=$PWD/configs/slurm/train.sbatch
# submit NAME VARIABLE=VALUE...: prints its job's id; its log is $work/NAME.log.
submit() {
  (cd "$work" && on 0 env "${@:2}" sbatch --parsable --nodes=2 --ntasks-per-node=1 --output="$work/$1.log" \
    "$script" "${one_run[@]}" --output_dir="$work/$1")
}
has_left() { [[ -z $(on 0 squeue --noheader --job="$1" 2>/dev/null) ]]; }
for starter in 'srun --mpi=pmix --kill-on-bad-exit=1' 'mpirun --mca orte_execute_quiet 1 --bind-to none'; do
  name=by_${starter%% *}
  job=$(submit "$name" ELASTOR_PROGRAMS="$work/programs" ELASTOR_STARTER="$starter" ELASTOR_CONTAINER='env SITE=1' \
    ELASTOR_SETUP='module() { echo "module $*"; }; module load "site/1.0"')
  wait_for "$name" grep --quiet '"event":"train"' "$work/$name/metrics.jsonl"
  on 0 scancel --signal=USR1 --batch "$job"
  wait_for "the end of $name" test -e "$work/$name/summary.json"
  wait_for "no job of $name" has_left "$job"
  [[ $(digest_of "$work/$name") == "$(digest_of "$work/one_run")" ]] || fail "$name: another digest: $(<"$work/$name.log")"
  [[ $(grep --count '^module load site/1.0' "$work/$name.log") -eq 2 ]] || fail "$name: not queued again: $(<"$work/$name.log")"
done
submit no_programs ELASTOR_PROGRAMS=nowhere >/dev/null
job=$(submit no_module ELASTOR_PROGRAMS="$work/programs" ELASTOR_STARTER=no_mpirun)
wait_for 'no programs' grep --quiet 'nowhere/trainer: no such program; set ELASTOR_PROGRAMS' "$work/no_programs.log"
wait_for 'no module' grep --quiet 'no_mpirun: not found; set ELASTOR_SETUP' "$work/no_module.log"

# A supervised run in an allocation: a node is cut off, and the run goes on on the other one.
wait_for 'no job of no_module' has_left "$job"
supervised=$work/supervised
script=$PWD/configs/slurm/supervised.sbatch
(cd "$work" && ELASTOR_PROGRAMS=$work/programs on 0 sbatch --ntasks-per-node=1 --output="$supervised.log" "$script" \
  --experiment="$(echo "$work"/long_whole/runs/*/experiment.textproto)" --output_dir="$supervised" \
  --set=checkpoint.every_steps=100 --set=parallel.threads=1) >"$work/log" 2>&1 || fail "supervised: $(<"$work/log")"
wait_for 'a supervised run' grep --quiet '"event":"checkpoint"' "$supervised/metrics.jsonl"
cut_link 2
wait_for 'a supervised run on one node' grep --quiet "again on 1 rank of ${prefix}1:1 from step [1-9]" "$supervised.log"
wait_for 'the end of a supervised run' test -e "$supervised/summary.json"
[[ $(digest_of "$supervised") == "$(digest_of "$work"/long_whole/runs/*)" ]] ||
  fail "supervised: another digest, or none: $(<"$supervised.log")"
exit "$((failures > 0))"
