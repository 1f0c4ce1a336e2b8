#!/usr/bin/env bash
# Day after day: the second day is encoded with the first day's vocabularies and trained from the
# first day's last state, optimizer included. Weights of rows, groups and slices are in play. Also
# warm starts of a model that has only a part of another's tensors.
# Arguments: the trainer, prepare.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
source "$(dirname "$0")/spread_run.sh"
cd "$TEST_TMPDIR" || exit 1

# make_day SEED NEW_ITEMS: rows whose clicks follow user, item and price.
make_day() {
  awk -v seed="$1" -v fresh="$2" 'BEGIN {
    srand(seed)
    print "click,user,item,price,importance,at"
    for (i = 0; i < 3000; ++i) {
      user = int(rand() * 40); item = int(rand() * 25) + fresh; price = rand() * 20
      logit = (user % 5 - 2) * 0.8 + (item % 7 - 3) * 0.5 + (price - 10) * 0.1
      click = rand() < 1 / (1 + exp(-logit)) ? 1 : 0
      printf "%d,u%d,i%d,%.2f,%.1f,%d\n", click, user, item, price, 1 + (i % 3) * 0.5, 1400000000 + i
    }
  }'
}
make_day 1 0 >day0.csv
make_day 2 5 >day1.csv
cat >schema.textproto <<'SCHEMA'
name: "days"
layout: DELIMITED
delimiter: ","
header: true
split { train: 0.8 validation: 0.2 }
fields { name: "click" type: LABEL }
fields { name: "user" type: CATEGORICAL }
fields { name: "item" type: CATEGORICAL }
fields { name: "price" type: NUMERIC transform: STANDARDIZE }
fields { name: "importance" type: WEIGHT }
fields { name: "who" type: GROUP column: "user" }
fields { name: "at" type: TIME time_format: UNIX_SECONDS }
SCHEMA
cat >days.textproto <<'EXPERIMENT'
data { order: FILE_ORDER }
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding { width: 4 init_stddev: 0.1 }
optimizer { learning_rate: 0.01 }
training { batch_size: 100 seed: 3 log_every_steps: 1 }
spectrum { disabled: true }
evaluation { slice_by: "item" }
EXPERIMENT
"$prepare" --schema=schema.textproto --input=day0.csv --output_dir=day0 >log 2>&1 || cat log
"$prepare" --schema=schema.textproto --input=day1.csv --output_dir=day1 --vocabulary_from=day0 \
  >log 2>&1 || cat log
# Rows without any weight teach nothing and measure nothing: that is known before the first step.
for rows in '2400 train' '600 validation'; do
  awk -F, -v OFS=, -v rows="$rows" 'NR > 1 && (rows ~ "train") == (NR <= 2401) { $5 = 0 } 1' \
    day0.csv >weightless.csv
  rm -rf weightless weightless_run
  "$prepare" --schema=schema.textproto --input=weightless.csv --output_dir=weightless >log 2>&1
  grep --quiet "the weight of all $rows rows is 0" log || fail "not told: $(cat log)"
  expect_line 2 "weightless: the weight of all $rows rows is 0" \
    "$trainer" --experiment=days.textproto --set=data.path=weightless --output_dir=weightless_run
done

tables_of() { grep --only-matching '"ids":[ 0-9]*' "$1/meta.json"; }
[[ -n $(tables_of day0) && $(tables_of day0) == "$(tables_of day1)" ]] ||
  fail "tables of the days differ: $(tables_of day0) and $(tables_of day1)"

# run RANKS OUTPUT_DIR FLAGS...
run() {
  local ranks=$1 directory=$2
  shift 2
  on_ranks "$ranks" "$trainer" --experiment=days.textproto --output_dir="$directory" "$@" \
    >"$directory.log" 2>&1 || {
    fail "$ranks ranks: $*"
    cat "$directory.log"
  }
}
run 1 run0 --set=data.path=day0
grep --quiet '"gauc":0\.' run0/metrics.jsonl || fail "no gAUC over users"
grep --quiet '"field":"item"' run0/metrics.jsonl || fail "no slices by item"

# Plateaus and best weights follow the weighted gAUC, on any number of ranks. One user's rows have no group. The items
# of the validation rows are written in another way, which a training tells as prepare does.
sed 's/,u7,/,,/; 2402,$s/,i/,I/' day0.csv >some.csv
"$prepare" --schema=schema.textproto --input=some.csv --output_dir=some >told.log 2>&1 || cat told.log
steered='--set=training.monitor.metric=GAUC --set=training.monitor.weighted=true'
steered+=' --set=training.monitor.best_weights=true --set=training.eval_every_steps=4'
run 1 steered --set=data.path=some $steered
run 3 steered_on_3 --set=data.path=some $steered
expect_same_numbers() {
  diff <(numbers_of "$1") <(numbers_of "$2") >difference || fail "$2 has other numbers: $(head --lines=4 difference)"
}
expect_same_numbers steered steered_on_3
ungrouped=$(tail --lines=600 some.csv | grep --count ',,')
for log in steered.log steered_on_3.log; do
  [[ $(grep --count "validation: $ungrouped of 600 rows have no group; gAUC leaves them out" $log) -eq 1 ]] ||
    fail "rows without a group are not told once: $(cat $log)"
done
told='field item: all values of the validation rows are unknown to the vocabulary'
for line in "^prepare: .*$told" "^warning: some: $told"; do
  [[ $(cat told.log steered.log | grep --count "$line") -eq 1 ]] || fail "not told once: $line in $(cat told.log steered.log)"
done
best=$(grep '"scheduled":true' steered/metrics.jsonl |
  sed --quiet 's/.*"ungrouped_rows":'"$ungrouped"'.*"weighted_gauc":\([0-9.e-]*\).*/\1/p' | sort --general-numeric-sort | tail --lines=1)
grep --quiet "\"monitor\": *\"weighted_gauc\"" steered/summary.json || fail 'the summary names another metric'
[[ -n $best && $(sed --quiet 's/.*"best_metric": *\([0-9.e-]*\).*/\1/p' steered/summary.json) == "$best" ]] ||
  fail "the best weighted gAUC is '$best'; the summary has $(grep best_metric steered/summary.json)"

state=run0/checkpoints/step-0000000024
warm="--set=training.warm_start.path=$state --set=training.warm_start.optimizer_state=true"
run 1 run1 --set=data.path=day1 --set=evaluation.at_start=true $warm
run 3 run1_on_3 --set=data.path=day1 --set=evaluation.at_start=true $warm
diff <(numbers_of run1) <(numbers_of run1_on_3) >difference || {
  fail "the second day on 3 ranks has other numbers"
  head --lines=6 difference
}

# Items that are new on the second day get ids behind the first day's, and rows of their own.
"$prepare" --schema=schema.textproto --input=day1.csv --output_dir=grown --vocabulary_from=day0 --grow \
  >log 2>&1 || cat log
[[ $(tables_of day0) == '"ids":41
"ids":26' || $(tables_of day0) == '"ids": 41
"ids": 26' ]] || fail "tables of the first day: $(tables_of day0)"
grep --quiet '"ids": *31' grown/meta.json || fail "no grown table: $(tables_of grown)"
run 1 run_grown --set=data.path=grown --set=evaluation.at_start=true $warm
run 3 run_grown_on_3 --set=data.path=grown --set=evaluation.at_start=true $warm
diff <(numbers_of run_grown) <(numbers_of run_grown_on_3) >difference || {
  fail "grown tables on 3 ranks have other numbers"
  head --lines=6 difference
}
expect_other_digest 'rows of new items' run_grown run1

# Before it learns anything of the day, the run is the model of the day before.
run 1 evaluated --set=data.path=day1 --mode=evaluate --model=run0/model
auc_of() { sed --quiet 's/.*"event":"eval".*"auc":\([^,]*\),"logloss.*/\1/p' "$1/metrics.jsonl" | head --lines=1; }
[[ -n $(auc_of run1) && $(auc_of run1) == "$(auc_of evaluated)" ]] ||
  fail "at the start: AUC '$(auc_of run1)', the model's is '$(auc_of evaluated)'"
# What was learned counts: a cold start does worse on the first steps, and ends elsewhere.
run 1 cold --set=data.path=day1
loss_at() { sed --quiet "s/.*\"event\":\"train\",\"step\":$2,.*\"loss\":\([^,]*\),.*/\1/p" "$1/metrics.jsonl"; }
awk -v warm="$(loss_at run1 1)" -v cold="$(loss_at cold 1)" 'BEGIN { exit !(warm < cold) }' ||
  fail "first loss: $(loss_at run1 1) after a warm start, $(loss_at cold 1) after a cold one"
# With the slots and the earlier steps, not with weights alone.
run 1 weights_only --set=data.path=day1 --set=training.warm_start.path=run0/model
[[ -n $(loss_at run1 1) && $(loss_at weights_only 1) == "$(loss_at run1 1)" ]] ||
  fail "weights alone: another first loss"
[[ -n $(loss_at run1 5) && -n $(loss_at weights_only 5) &&
  $(loss_at weights_only 5) != "$(loss_at run1 5)" ]] || fail "the optimizer's state has no effect"

# On the same rows in the same order, a second run from the first one's state is a second epoch, to the bit:
# weights, slots and the steps that Adam's bias correction counts.
run 1 twice --set=data.path=day0 --set=training.epochs=2
run 1 again --set=data.path=day0 $warm
losses_of() { sed --quiet 's/.*"event":"train".*"loss":\([^,]*\),.*/\1/p' "$1/metrics.jsonl"; }
[[ $(losses_of again | wc --lines) -eq 24 ]] || fail "expected 24 losses: $(losses_of again)"
diff <(losses_of twice | tail --lines=24) <(losses_of again) >difference || {
  fail "a second run from the first one's state is not a second epoch"
  head --lines=6 difference
}

# expect_mistake PATTERN FLAGS...: exit code 2 and one line that holds the fixed text PATTERN.
expect_mistake() {
  local pattern=$1
  shift
  expect_line 2 "$pattern" on_ranks 2 "$trainer" --experiment=days.textproto --set=data.path=day1 \
    --output_dir=mistake "$@"
  rm -rf mistake
}
expect_mistake "run0/model" --set=training.warm_start.path=run0/model \
  --set=training.warm_start.optimizer_state=true
expect_mistake "block0" --set=training.warm_start.path=run0/model --set=model.feed_forward.expansion=2
expect_mistake "no_such" --set=training.warm_start.path=no_such
expect_line 2 "categorical field item: ids 31; run0/model/manifest.json was trained on 26" on_ranks 2 \
  "$trainer" --experiment=days.textproto --set=data.path=grown --output_dir=mistake --mode=evaluate \
  --model=run0/model
expect_mistake "evaluation.slice_by" --set=evaluation.slice_by=nothing
run 2 partial --set=data.path=day1 --set=training.warm_start.path=run0/model \
  --set=model.feed_forward.expansion=2 --set=training.warm_start.partial=true
grep --quiet 'tensors and tables taken' partial.log || fail "nothing is said about what was taken"
exit "$((failures > 0))"
