#!/usr/bin/env bash
# The program scaling_law on folders of real runs and on CSV files: fit, JSON, same bytes, comparison,
# and the mistakes of users. Arguments: scaling_law, the trainer, prepare.
set -uo pipefail

scaling_law=$PWD/$1
trainer=$PWD/$2
prepare=$PWD/$3
source tests/system/spread_run.sh
cd "$TEST_TMPDIR" || exit 1

# expect_text FILE PATTERN: the file has the fixed text.
expect_text() {
  grep --quiet --fixed-strings -- "$2" "$1" || {
    fail "no '$2' in $1:"
    cat "$1"
  }
}

cat >schema.textproto <<'SCHEMA'
name: "tiny"
layout: SYNTHETIC
split { train: 0.8 validation: 0.1 test: 0.1 }
synthetic { rows: 4000 seed: 1 numeric_fields: 2 categorical_fields: 3 ids_per_field: 90 }
SCHEMA
cat >tiny.textproto <<'EXPERIMENT'
model { mlp { hidden: 4 } }
embedding { width: 3 }
optimizer { learning_rate: 0.01 }
training { batch_size: 256 }
spectrum { disabled: true }
parallel { virtual_shards: 16 }
EXPERIMENT
"$prepare" --schema=schema.textproto --output_dir=data >/dev/null || exit 1
for width in 4 8 16 32; do
  for seed in 1 2; do
    "$trainer" --experiment=tiny.textproto --set=data.path=data --set=model.mlp.hidden=$width \
      --set=training.seed=$seed --output_dir="runs/$width-$seed" >/dev/null || fail "run $width-$seed"
  done
done

# Folders, in any order: the same bytes.
"$scaling_law" runs/*-1 runs/*-2 --json=one.json >one.txt || fail "folders: exit code $?"
"$scaling_law" --json=two.json runs/*-2 runs/*-1 >two.txt || fail "other order"
cmp one.json two.json && cmp one.txt two.txt || fail "the order of the folders changes the result"
expect_text one.txt "mlp: logloss = "
expect_text one.txt "8 runs of 4 sizes"
expect_text one.txt "dense_parameters spans a factor of"
expect_text one.txt "verdict: NOT IDENTIFIED"
parameters=$(sed --quiet 's/.*"dense_parameters": \([0-9]*\),/\1/p' runs/32-1/summary.json)
expect_text one.txt "predicted, largest: dense_parameters $parameters:"
for flags in --metric=auc --metric=normalized_entropy --sizes=width --sizes=multiply_adds; do
  "$scaling_law" runs/* $flags >flags.txt || fail "$flags: exit code $?"
done

# The law of data.
for rows in 800 1600; do
  for seed in 1 2; do
    "$trainer" --experiment=tiny.textproto --set=data.path=data --set=model.mlp.hidden=4 \
      --set=training.seed=$seed --set=data.train_rows=$rows --output_dir="rows/$rows-$seed" \
      >/dev/null || fail "rows $rows-$seed"
  done
done
"$scaling_law" rows/* runs/4-* --sizes=train_rows >rows.txt || fail "train_rows: exit code $?"
expect_text rows.txt "train_rows spans a factor of 4"
expect_text rows.txt "predicted, largest: train_rows 3200:"

# Two models, drawn from 0.4 + 0.1 (N / 1e4)^-0.5 and the same plus 0.01, without noise.
{
  echo "model,dense_parameters,multiply_adds,seed,logloss"
  for i in 0 1 2 3 4 5; do
    for seed in 1 2; do
      awk -v i="$i" -v seed="$seed" 'BEGIN {
        n = 10000 * 2 ^ i; loss = 0.4 + 0.1 * (n / 10000) ^ -0.5
        printf "a,%d,%d,%d,%.9f\nb,%d,%d,%d,%.9f\n", n, n, seed, loss, n, 4 * n, seed, loss + 0.01 }'
    done
  done
} >points.csv
"$scaling_law" --points=points.csv >points.txt || fail "points"
expect_text points.txt "a: logloss = 0.4 + 10 dense_parameters^-0.500"
expect_text points.txt "the largest sizes follow the law"
expect_text points.txt "verdict: identified"
expect_text points.txt "a - b, logloss at equal dense_parameters:"
expect_text points.txt "10000: 0.5 - 0.51 = -0.01000 [-0.01000, -0.01000], a is better"
expect_text points.txt "a - b, logloss at equal multiply_adds:"

# Mistakes: code 2 and one line.
mistake() { expect_line 2 "$1" "$scaling_law" "${@:2}"; }
mistake "no run; expected folders of runs, or --points=FILE"
mistake "--points=points.csv and the folder runs/4-1; expected one" --points=points.csv runs/4-1
mistake "runs: has no summary.json; expected the folder of a finished run" runs
mistake "found 2 configurations, different sizes: 2 of dense_parameters; expected 3" \
  runs/4-1 runs/4-2 runs/8-1 runs/8-2
mistake "mlp: found one seed of every size; expected two or more of some" runs/*-1
mistake "seed 1 is runs/4-1's too; expected each seed once" runs/4-1 runs/8-1 runs/4-1
mistake "--sizes=wide: expected one to 3 different ones of dense_parameters, width" --sizes=wide runs/*
mistake "--metric=loss: expected one of logloss, auc, normalized_entropy" --metric=loss runs/*
mistake "different sizes: 4 of width, 1 of depth" --sizes=width,depth runs/*
mistake "--ponts: no such flag" --ponts=points.csv
mistake "missing.csv: open: No such file" --points=missing.csv
"$trainer" --experiment=tiny.textproto --set=data.path=data --mode=evaluate --split=test --set=training.seed=1 --set=model.mlp.hidden=4 \
  --model=runs/4-1/model --output_dir=on_test >/dev/null || fail "evaluate"
mistake "on_test: was evaluated on" runs/4-2 on_test
cp --recursive runs/4-1 broken
sed --in-place 's/"logloss": .*/"logloss": null,/' broken/summary.json
mistake "broken/summary.json: logloss: found none; expected a" broken
# bad LINE MESSAGE: in place of the points' second line.
bad() {
  sed "2s/.*/$1/" points.csv >bad.csv
  mistake "$2" --points=bad.csv
}
bad "a,1,1,1,nan" "bad.csv:2: logloss: found 'nan'; expected a finite number"
bad "a,0,1,1,0.5" "bad.csv:2: dense_parameters: found '0'; expected a positive number"
bad "a,1,1,1" "bad.csv:2: found 4 columns; expected 5"
bad "a,1,1,1.5,0.5" "bad.csv:2: seed: found '1.5'; expected an integer"
bad "a,20000,1,1,0.5" "is bad.csv:2's too; expected each seed once"
sed '1s/logloss/loss/' points.csv >bad.csv
mistake "bad.csv:1: column 'loss'; expected some of" --points=bad.csv
# One seed of every size does with a given noise.
grep --invert-match ',2,0' points.csv >single.csv
"$scaling_law" --points=single.csv --delta=1e-3 >single.txt || fail "--delta"
expect_text single.txt "verdict: identified"
expect_line 3 "stdout: cannot write" bash -c '"$1" --points=points.csv >/dev/full' - "$scaling_law"

exit "$((failures > 0))"
