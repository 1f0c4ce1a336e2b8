#!/usr/bin/env bash
# A few runs of the campaign of faults, every kind that needs no root at least once in some hundred seeds, some
# of them supervised; and that it can fail: a trainer whose sums depend on the ranks is a mismatch, one that hangs when it goes on is
# a hang, of which no process is left.
# Arguments: the campaign, the trainer, prepare, the faulty layer, the mutant trainer.
set -uo pipefail

campaign=("$PWD/$1" --prepare="$PWD/$3" --layer="$PWD/$4")
trainer=$PWD/$2
mutant=$PWD/$5
work=$TEST_TMPDIR
source tests/system/spread_run.sh

# expect CODE PATTERN ARGUMENT...: the campaign ends with that exit code and a last line like PATTERN.
expect() {
  local code=$1 pattern=$2 status
  shift 2
  rm -rf "$work/campaign"
  "${campaign[@]}" --work="$work/campaign" "$@" >"$work/log" 2>&1
  status=$?
  [[ $status -eq $code && $(tail --lines=1 "$work/log") =~ $pattern ]] ||
    fail "$*: expected exit code $code and a last line like '$pattern', found exit code $status and:" \
      "$(tail --lines=40 "$work/log")"
}

expect 0 '^runs=2 hangs=0 digest_mismatches=0 silent_differences=0 ' --trainer="$trainer" --runs=2 \
  --faults=kill_all,torn_write,damage_checkpoint,signal --seed="${ELASTOR_CAMPAIGN_SEED:-1}"

# A supervised run is one job, whatever its ranks meet, for it is started again.
expect 0 '^runs=3 hangs=0 digest_mismatches=0 silent_differences=0 ' --trainer="$trainer" --runs=3 \
  --faults=kill_all --supervise_every=1
grep --quiet '^jobs=3 supervised=3 restarted=[1-3] ' "$work/log" || fail "supervised: $(<"$work/log")"

# Mistakes are one line.
campaign_says() {
  expect_line 2 "$1" "${campaign[@]}" --work="$work/campaign" --trainer="$trainer" "${@:2}"
}
campaign_says '--trainer=/nowhere/trainer: No such file or directory' --trainer=/nowhere/trainer
campaign_says "--work=$work: is there already; expected a new folder" --work="$work"

ELASTOR_MISTAKE=chain expect 1 ' digest_mismatches=[1-3] ' --trainer="$mutant" --runs=3 --faults=kill_all --ranks=3
grep --quiet '^FAILED digest .*, expected ' "$work/log" || fail "a mismatch: $(<"$work/log")"

# Hangs as soon as it is resumed.
cat >"$work/hanging" <<HANGING
#!/usr/bin/env bash
[[ " \$* " != *' --resume '* ]] || exec -a "\$0" sleep 612
exec -a "\$0" $trainer "\$@"
HANGING
chmod +x "$work/hanging"
expect 1 ' hangs=1 ' --trainer="$work/hanging" --runs=1 --faults=kill_all --hang_seconds=4
pgrep --full "^$work/hanging 612" && fail 'a hang: a process is left'
exit "$((failures > 0))"
