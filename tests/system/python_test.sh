#!/usr/bin/env bash
# tools/python reads what the programs write: encoded rows, vectors, records and predictions equal theirs, and mistakes
# get one line each (python_reader.py). Arguments: the trainer, prepare.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
top=$PWD
checks=$(cd "$(dirname "$0")" && pwd)/python_reader.py
export PYTHONPATH=$PWD/tools/python PYTHONDONTWRITEBYTECODE=1
source "$(dirname "$0")/spread_run.sh"
cd "$TEST_TMPDIR" || exit 1

version=$(sed --quiet 's/^version = "\(.*\)"/\1/p' "$top/tools/python/pyproject.toml")
[[ $version == "$(<"$top/VERSION")" ]] || fail "pyproject.toml has version $version, expected that of VERSION"

# step WHAT COMMAND...
step() {
  "${@:2}" >log 2>&1 || fail "$1: $(cat log)"
}

step 'rows' python3 "$checks" make
for layout in csv libsvm; do
  step "prepare $layout" "$prepare" --schema=$layout.textproto --input=train.$layout \
    --validation_input=validation.$layout --test_input=test.$layout --output_dir=$layout.data
done

# Of two ranks. It stops at step 20, and the resumed run goes on from there.
train() {
  on_ranks 2 "$trainer" --experiment=csv.experiment --set=data.path=csv.data --output_dir=csv "$@"
}
step 'train' train --set=training.max_steps=20
cp --recursive csv/metrics.jsonl unfinished.jsonl
step 'resume' train --resume
step 'train libsvm' "$trainer" --experiment=csv.experiment --set=data.path=libsvm.data --output_dir=libsvm \
  --set=model.batch_norm=false --set=evaluation.slice_by=
for layout in csv libsvm; do
  step "export $layout" "$trainer" --mode=export --model=$layout/model --output_dir=$layout.onnx
  step "predict $layout" "$trainer" --mode=predict --model=$layout/model --input=test.$layout \
    --output_dir=$layout.scored --logits
done
for encoder in 'mean { }' 'din { hidden: 4 }'; do
  name=${encoder%% *}
  sed "s/batch_norm: true/& sequences { fields: 'seen' max_length: 2 $encoder }/" csv.experiment >$name.experiment
  step "train $name" "$trainer" --experiment=$name.experiment --set=data.path=csv.data --output_dir=$name \
    --set=training.max_steps=2
  step "export $name" "$trainer" --mode=export --model=$name/model --output_dir=$name.onnx
done
# With deltas, as few of its rows change between two checkpoints. Rows of keys leave their tables.
sed "s/init_stddev: 0.1/& tables { fields: ['C1', 'C2', 'C3'] capacity: 500 on_full: EVICT eviction { policy: LRU } }/" \
  csv.experiment >stream.experiment
for data in planted stream; do
  experiment=csv && [[ $data == stream ]] && experiment=stream
  step "$data data" "$prepare" --schema=$data.textproto --output_dir=$data.data
  step "$data run" "$trainer" --experiment=$experiment.experiment --set=data.path=$data.data --output_dir=$data \
    --set=evaluation.slice_by= --set=checkpoint.delta_every_steps=2 --set=checkpoint.keep=9 --set=training.epochs=1
  delta=$(grep --files-with-matches '^  "base"' $data/checkpoints/step-*/manifest.json | tail --lines=1 | xargs dirname)
  step "compact $data" "$trainer" --mode=compact --model="$delta" --output_dir="whole.$data/${delta##*/}"
done
grep --quiet '"C1/deleted"' "$delta/manifest.json" || fail "no row left: $delta"
step 'export of planted data' "$trainer" --mode=export --model=planted/model --output_dir=planted.onnx

ELASTOR_TOP=$top python3 "$checks" check || fail 'python_reader.py'
exit "$((failures > 0))"
