#!/usr/bin/env bash
# The trainer linked with a mutant of the leaf tree, on 1 rank and on 3: the digests differ, and
# those of the real one do not. So //tests/system:bits_test can fail.
# Arguments: the trainer, the mutant, prepare.
set -uo pipefail

trainer=$PWD/$1
mutant=$PWD/$2
prepare=$PWD/$3
work=$TEST_TMPDIR
source tests/system/spread_run.sh

cat >"$work/schema.textproto" <<'SCHEMA'
name: "tiny"
layout: SYNTHETIC
split { train: 0.8 validation: 0.1 test: 0.1 }
synthetic { rows: 700 seed: 1 numeric_fields: 2 categorical_fields: 3 ids_per_field: 300 }
SCHEMA
cat >"$work/tiny.textproto" <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding { width: 4 init_stddev: 0.1 }
training { batch_size: 64 }
EXPERIMENT
"$prepare" --schema="$work/schema.textproto" --output_dir="$work/data" >/dev/null || exit 1

# digest PROGRAM RANKS
digest() {
  local run=$work/run.$2.${1##*/}
  on_ranks "$2" "$1" --experiment="$work/tiny.textproto" --set=data.path="$work/data" \
    --output_dir="$run" >"$run.log" 2>&1 || cat "$run.log" >&2
  digest_of "$run"
}

real1=$(digest "$trainer" 1)
real3=$(digest "$trainer" 3)
mutant1=$(digest "$mutant" 1)
mutant3=$(digest "$mutant" 3)
printf 'real: %s on 1 rank, %s on 3\nmutant: %s on 1 rank, %s on 3\n' \
  "$real1" "$real3" "$mutant1" "$mutant3"
[[ -n $real1 && -n $mutant1 && -n $mutant3 ]] || exit 1
[[ $real1 == "$real3" && $mutant1 != "$mutant3" ]]
