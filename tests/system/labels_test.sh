#!/usr/bin/env bash
# Several labels, of which a row may lack some: the same bits on any ranks and after a restart,
# predictions, chosen labels, and what a mistake is told. Arguments: the trainer, prepare.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
source "$(dirname "$0")/spread_run.sh"
cd "$TEST_TMPDIR" || exit 1

# run RANKS OUTPUT_DIR FLAGS...
run() {
  local ranks=$1 directory=$2
  shift 2
  on_ranks "$ranks" "$trainer" --experiment=tiny.textproto --set=data.path=data \
    --output_dir="$directory" "$@" >"$directory.log" 2>&1 || {
    fail "$ranks ranks: $*"
    cat "$directory.log"
  }
}
# expect_same WHAT EXPECTED FOUND
expect_same() {
  if [[ -z $2 || $2 != "$3" ]]; then fail "$1: expected '$2', found '$3'"; fi
}
last_eval() {
  grep '"event":"eval"' "$1/metrics.jsonl" | tail --lines=1 | sed 's/"scheduled":[a-z]*,//'
}
# expect_mistake PATTERN FLAGS...
expect_mistake() {
  expect_line 2 "$1" "$trainer" --experiment=tiny.textproto --set=data.path=data \
    --output_dir=mistake "${@:2}"
  [[ ! -e mistake ]] || fail "$*: left a folder"
}

schema() {
  cat <<SCHEMA
name: "tiny"
layout: SYNTHETIC
split { train: 0.8 validation: 0.1 test: 0.1 }
synthetic { rows: 4000 seed: 1 categorical_fields: 4 ids_per_field: 90 $1 }
SCHEMA
}
schema 'labels: 2 label_correlation: 0.5 after_first: true' >two.textproto
schema '' >one.textproto
cat >tiny.textproto <<'EXPERIMENT'
model { mmoe { experts: 3 expert_hidden: [12, 8] tower_hidden: 6 dropout: 0.1 } }
task { weights: [1, 0.5] }
embedding { width: 3 }
optimizer { learning_rate: 0.01 }
training { batch_size: 256 epochs: 2 seed: 3 monitor { label: "L2" best_weights: true } }
parallel { virtual_shards: 16 }
EXPERIMENT
"$prepare" --schema=two.textproto --output_dir=data >/dev/null || exit 1
"$prepare" --schema=one.textproto --output_dir=data_of_one >/dev/null || exit 1

run 1 one
run 3 three --set=parallel.overlap=true
expect_same 'eval' "$(last_eval one)" "$(last_eval three)"
expect_same 'digest' "$(digest_of one)" "$(digest_of three)"
run 3 parts --set=training.max_steps=17
run 2 parts --resume
expect_same 'digest after a restart' "$(digest_of one)" "$(digest_of parts)"
for line in 'validation L1 AUC: .* (best possible: ' 'validation L2 logloss: ' 'best validation L2 auc: '; do
  grep --quiet "^$line" one.log || fail "no line '$line' in $(cat one.log)"
done
grep --quiet '"label": "L2"' one/summary.json || fail 'the summary names no label'

# The second label is there where the first is 1; its logloss is that of the file.
run 2 predicted --mode=predict --model=three/model --split=test
expect_same 'header' 'index,L1,L1.probability,L2,L2.probability' \
  "$(head --lines=1 predicted/predictions.csv)"
expect_same 'known labels' 0 \
  "$(awk -F, 'NR > 1 && ($2 == 1) != ($4 != "") { n++ } END { print n + 0 }' predicted/predictions.csv)"
logloss_of='NR > 1 && $4 != "" { n++; sum -= log($4 == 1 ? $5 : 1 - $5) } END { printf "%.6f", sum / n }'
expect_same 'logloss' \
  "$(printf '%.6f' "$(last_eval predicted | sed 's/"labels".*//; s/.*"logloss":\([^,]*\),.*/\1/')")" \
  "$(awk -F, "$logloss_of" predicted/predictions.csv)"

# One of the two.
alone=(--set=task.labels=L2 --set=task.weights=1)
run 2 alone "${alone[@]}"
run 1 alone_predicted --mode=predict --model=alone/model --logits "${alone[@]}"
expect_same 'header' 'index,L2,L2.probability,L2.logit' "$(head --lines=1 alone_predicted/predictions.csv)"
apart='NR > 1 { d = $3 - 1 / (1 + exp(-$4)); if (d < 0) d = -d; if (!(d < 1e-7)) n++ } END { print NR - 1, n + 0 }'
expect_same 'probabilities of the logits' '400 0' "$(awk -F, "$apart" alone_predicted/predictions.csv)"
"$trainer" --experiment=tiny.textproto --mode=describe --set=data.path=data >described || fail describe
grep --quiet '"outputs": 2' described || fail "described: $(cat described)"

expect_mistake 'task.labels: L9; expected of L1, L2' --set=task.labels=L9
expect_mistake 'task.weights: 2 numbers; expected one for each of 1 label' --set=task.labels=L2
expect_mistake 'training.monitor.label: L9; expected a label that is learned' \
  --set=training.monitor.label=L9
expect_mistake 'task.labels: all; expected L2, as in alone/model/manifest.json' --mode=evaluate \
  --model=alone/model
expect_mistake 'labels: are one without a name; three/model/manifest.json was trained on L1, L2' \
  --mode=evaluate --model=three/model --set=data.path=data_of_one --set=task.weights=1 \
  --set=training.monitor.label=

exit "$((failures > 0))"
