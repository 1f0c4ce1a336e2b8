#!/usr/bin/env bash
# The trainer, linked with the mutant of the law of sums over leaves, on 1 rank and on 3: without a
# mistake the digests are the same, with one they differ. So //tests/system:bits_test can fail.
# Arguments: the trainer, prepare.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
work=$TEST_TMPDIR
source tests/system/spread_run.sh

cat >"$work/tiny.textproto" <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding { width: 4 init_stddev: 0.1 }
training { batch_size: 64 }
EXPERIMENT
make_tiny_data 700

# digest MISTAKE RANKS
digest() {
  local run=$work/run.$1.$2
  ELASTOR_MISTAKE=$1 on_ranks "$2" "$trainer" --experiment="$work/tiny.textproto" \
    --set=data.path="$work/data" --output_dir="$run" >"$run.log" 2>&1 || cat "$run.log" >&2
  digest_of "$run"
}

for mistake in none chain shifted greedy; do
  one=$(digest "$mistake" 1)
  three=$(digest "$mistake" 3)
  printf '%s: %s on 1 rank, %s on 3\n' "$mistake" "$one" "$three"
  is_digest "$one" && is_digest "$three" || fail "$mistake: a run without a digest"
  case $mistake in
    none) [[ $one == "$three" ]] || fail "the digests differ without a mistake" ;;
    *) [[ $one != "$three" ]] || fail "the digests do not show the mistake $mistake" ;;
  esac
done
exit "$((failures > 0))"
