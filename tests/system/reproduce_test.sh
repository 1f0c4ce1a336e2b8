#!/usr/bin/env bash
# tools/reproduce.sh on a few planted rows: tuning, runs with predictions, their comparison, the same
# again, what is missing; and the mistakes of who compares. The programs lie as in bazel-bin.
set -uo pipefail

work=$TEST_TMPDIR
export ELASTOR_PROGRAMS=$work/programs
for program in trainer/trainer trainer/prepare/prepare launcher/launcher launcher/comparison/comparison; do
  mkdir --parents "$ELASTOR_PROGRAMS/${program%/*}"
  ln --symbolic "$PWD/${program%/*}/unstamped/${program##*/}" "$ELASTOR_PROGRAMS/$program"
done
prepare=$ELASTOR_PROGRAMS/trainer/prepare/prepare
source tests/system/spread_run.sh
compare() { "$ELASTOR_PROGRAMS/launcher/comparison/comparison" "$@"; }
# expect_text FILE PATTERN
expect_text() {
  grep --quiet -- "$2" "$1" || fail "no '$2' in $1: $(<"$1")"
}

mkdir --parents "$work/data"
sed 's/rows: 400000/rows: 4000/' configs/planted/coordinate_mixing_schema.textproto >"$work/schema.textproto"
"$prepare" --schema="$work/schema.textproto" --output_dir="$work/data/planted" >/dev/null || exit 1

# reproduce NAME...
reproduce() {
  tools/reproduce.sh "$@" --data="$work/data" --output="$work/out" -- \
    --set=axis.training.seed=1,2 --set=base.training.epochs=1 >"$work/log" 2>&1
}
reproduce planted || fail "planted: exit code $?: $(tail --lines=3 "$work/log")"
out=$work/out/planted_mixing
expect_text "$out/comparison.md" '^400 rows of the test split, '
[[ $(grep --count '^| Rank.* is better \|^| Rank.* none ' "$out/comparison.md") -ge 8 ]] ||
  fail "pairs: $(<"$out/comparison.md")"
[[ $(wc --lines <"$out/comparison.csv") -eq 31 ]] || fail "comparison.csv: $(<"$out/comparison.csv")"
expect_text "$work/log" 'planted_mixing: 15 tuning runs are left out'
[[ $(grep --count ',tune,' "$out/runs.csv") -eq 15 && $(grep --count ',final,' "$out/runs.csv") -eq 10 ]] ||
  fail "runs.csv: $(<"$out/runs.csv")"
# The best trial of a model, and what its runs were trained with.
column() { head --lines=1 "$out/runs.csv" | tr , '\n' | grep --line-number --line-regexp "$1" | cut --delimiter=: --fields=1; }
rate_column=$(column optimizer.learning_rate)
rate=$(grep '^tune_RankMixer_learning' "$out/runs.csv" |
  sort --field-separator=, --key="$(column logloss),$(column logloss)g" | head --lines=1 |
  cut --delimiter=, --fields="$rate_column")
runs=("$out"/runs/RankMixer_seed*)
[[ ${#runs[@]} -eq 2 ]] || fail "runs of RankMixer: ${runs[*]}"
expect_text "${runs[0]}/experiment.textproto" "learning_rate: $(printf '%g' "$rate")\$"

# Again: nothing is trained, and the tables are the same.
cp "$out/comparison.csv" "$work/before.csv"
reproduce planted || fail "planted again: exit code $?"
grep --quiet ' start ' "$work/log" && fail 'planted again: something was trained'
cmp "$work/before.csv" "$out/comparison.csv" || fail 'planted again: other figures'

reproduce table3
[[ $? -eq 2 ]] || fail "without data: expected exit code 2"
expect_text "$work/log" "data/criteo is missing; make it: .*--schema=configs/criteo/schema.textproto"
expect_line 2 'expected all, planted' tools/reproduce.sh tabel3

# The order of the folders changes no figure.
all=("$out"/runs/[!t]*)
compare "${all[@]}" --csv="$work/all.csv" >/dev/null || fail 'comparison'
diff <(sort "$work/before.csv" | grep ',"RankMixer",,') \
  <(compare "${runs[1]}" "${runs[0]}" --csv="$work/two.csv" >/dev/null; grep ',"RankMixer",,' "$work/two.csv" | sort) ||
  fail 'two runs alone: other figures'
compare "${all[@]}" --against=RankMixer >"$work/against.md" || fail '--against'
[[ $(grep --count '^| RankMixer - ' "$work/against.md") -eq 8 ]] || fail "--against: $(<"$work/against.md")"

expect_line 2 'no run; expected folders' compare
expect_line 2 'is a second run of RankMixer with seed 1' compare "${runs[0]}" "${runs[0]}"
expect_line 2 '--against=x: expected one of RankMixer' compare "${runs[0]}" --against=x
expect_line 2 '--resamples=5: expected 0, or 100' compare "${runs[0]}" --resamples=5
expect_line 2 'was only tuned by; expected final runs' compare "$out"/runs/tune_RankMixer_learning_rate1e-3*
# A run of the same name with another learning rate, of the validation split, and with the
# predictions of another run.
other() { # FOLDER FLAG...
  "$ELASTOR_PROGRAMS/trainer/trainer" --experiment="${runs[0]}/experiment.textproto" --predictions \
    --output_dir="$work/$1" "${@:2}" >/dev/null 2>&1 || fail "$*"
}
other rate --split=test --set=optimizer.learning_rate=3e-3 --set=training.seed=7
expect_line 2 'optimizer.learning_rate: 0.003; expected ' compare "${runs[0]}" "$work/rate"
other validation --set=training.seed=7
expect_line 2 'predicted 400 rows of the validation split; expected the 400 rows of the test split' \
  compare "${runs[0]}" "$work/validation"
cp "${runs[0]}/predictions.csv" "$work/rate/predictions.csv"
expect_line 2 "; expected the summary's " compare "$work/rate"
sed --in-place '3s/.*/1,0,nan/' "$work/rate/predictions.csv"
expect_line 2 'predictions.csv:3: expected 1, a label of 0 or 1 and a probability' compare "$work/rate"
expect_line 2 '--predictions: only --mode=train' "$ELASTOR_PROGRAMS/trainer/trainer" --predictions \
  --experiment="${runs[0]}/experiment.textproto" --mode=evaluate --model="$work/rate/model" \
  --output_dir="$work/new"

exit "$((failures > 0))"
