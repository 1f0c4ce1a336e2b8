#!/usr/bin/env bash
# Three runs of the campaign of faults, one of them supervised, each struck and ended as if nothing had been; and
# deaths of a run that begins.
# Arguments: the campaign, the trainer, prepare, the faulty layer.
set -uo pipefail

work=$TEST_TMPDIR
campaign=("$PWD/$1" --trainer="$PWD/$2" --prepare="$PWD/$3" --layer="$PWD/$4" --work="$work/campaign")
source tests/system/spread_run.sh

"${campaign[@]}" --runs=3 --seed=9 --ranks=2 --supervise_every=3 --hang_seconds=200 \
  --faults=kill_all,torn_write,damage_checkpoint >"$work/log" 2>&1 || fail "exit code $?: $(<"$work/log")"
grep --quiet '^runs=3 hangs=0 digest_mismatches=0 silent_differences=0 mpirun_hangs=0 ' "$work/log" ||
  fail "the end: $(<"$work/log")"
grep --quiet '^jobs=.* supervised=[1-9].* restarted=[1-9].* wrong_ends=0$' "$work/log" ||
  fail "supervised: $(<"$work/log")"
grep --quiet '^torn_write ' "$work/log" || fail "no torn write: $(<"$work/log")"

# A run that is asked to go on where nothing has begun dies at one of its first calls on files: asked again, it
# begins. The last boundary is behind all that a run begins with.
prepare=$PWD/$3
make_tiny_data 1000
echo 'model { mlp { hidden: 4 } } embedding { width: 4 } training { batch_size: 64 max_steps: 1 }' >"$work/tiny.textproto"
begins=("$PWD/$2" --experiment="$work/tiny.textproto" --set=data.path="$work/data" --output_dir="$work/begun" --resume)
for boundary in {1..16}; do
  rm --recursive --force "$work/begun" "$work/mark"
  {
    env LD_PRELOAD="$PWD/$4" ELASTOR_FAULT=torn ELASTOR_FAULT_RANK=0 ELASTOR_FAULT_BOUNDARY="$boundary" \
      ELASTOR_FAULT_UNDER="$work/begun" ELASTOR_FAULT_MARK="$work/mark" "${begins[@]}" >"$work/log" 2>&1
  } 2>/dev/null # the shell's own line about the death
  [[ $? -eq 137 ]] || fail "boundary $boundary: no death: $(<"$work/log")"
  "${begins[@]}" >"$work/log" 2>&1 || fail "boundary $boundary: $(cat "$work/mark" "$work/log")"
done
exit "$((failures > 0))"
