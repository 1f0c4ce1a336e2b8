#!/usr/bin/env bash
# Three runs of the campaign of faults, one of them supervised, each struck and ended as if nothing had been.
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
exit "$((failures > 0))"
