#!/usr/bin/env bash
# What goes wrong with checkpoints is one clear line: a field that changed, another model's
# checkpoint, other data, a flipped byte in any file, a manifest that points elsewhere, a full disk
# (after which the last checkpoint is whole). Arguments: the trainer, prepare.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
source "$(dirname "$0")/spread_run.sh"
cd "$TEST_TMPDIR" || exit 1

make_data() { # NAME SEED
  cat >"$1.textproto" <<SCHEMA
name: "tiny"
layout: SYNTHETIC
split { train: 0.8 validation: 0.1 test: 0.1 }
synthetic { rows: 2000 seed: $2 numeric_fields: 2 categorical_fields: 3 ids_per_field: 500 }
SCHEMA
  "$prepare" --schema="$1.textproto" --output_dir="$1" >/dev/null || exit 1
}
make_data data 1
make_data other_data 2
cat >tiny.textproto <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding { width: 4 }
training { batch_size: 64 epochs: 2 }
spectrum { disabled: true }
EXPERIMENT
train=("$trainer" --experiment=tiny.textproto --set=data.path=data)
"${train[@]}" --output_dir=run --set=training.max_steps=20 >log 2>&1 || cat log
checkpoint=run/checkpoints/step-0000000020
digest=$(digest_of run)

verify() { "$trainer" --mode=verify --model="$1"; }

# A field that decides numbers, and data, stay as they were.
resume=(on_ranks 3 "${train[@]}" --output_dir=run --resume)
expect_line 2 "optimizer.learning_rate: 0.002; expected 0.001" "${resume[@]}" \
  --set=optimizer.learning_rate=0.002
expect_line 2 "training.seed: 4; expected 0" "${resume[@]}" --set=training.seed=4
expect_line 2 "data.path: other_data has the fingerprint" "${resume[@]}" --set=data.path=other_data
expect_line 2 "parallel.virtual_shards: 16 cannot be spread over 17 ranks" \
  on_ranks 17 "${train[@]}" --output_dir=run --resume
expect_line 2 "holds a run already" on_ranks 3 "${train[@]}" --output_dir=run
expect_line 2 "only --mode=train can continue" "${resume[@]}" --mode=evaluate --model=run/model

expect_line 2 "training.monitor.metric: GAUC, but the data set has no groups" on_ranks 2 \
  "${train[@]}" --output_dir=no_groups --set=training.monitor.metric=GAUC \
  --set=training.monitor.best_weights=true
expect_line 2 "training.monitor.weighted: true, but the data set has no weights" on_ranks 2 \
  "${train[@]}" --output_dir=no_groups --set=training.monitor.weighted=true

# Another model's checkpoint: in the place of this run's, and given to evaluate.
"${train[@]}" --output_dir=wide --set=model.token_width=16 >log 2>&1 || cat log
mkdir --parents swapped/checkpoints
cp --recursive wide/checkpoints/step-* swapped/checkpoints/
expect_line 2 "model.rank_elastor.token_width: 8; expected 16" \
  on_ranks 3 "${train[@]}" --output_dir=swapped --resume
expect_line 2 "wide/checkpoints" on_ranks 3 "${train[@]}" --output_dir=evaluated --mode=evaluate \
  --model="$(echo wide/checkpoints/step-*)"
rm -rf evaluated

[[ $(verify $checkpoint) == *"$digest"* ]] || fail "verify: expected the digest $digest"
verify run/model >log || fail "verify: $(cat log)"

# One flipped byte, at the front, in the middle and at the end of every file.
flip() { # FILE OFFSET
  local byte
  byte=$(od --address-radix=n --format=u1 --skip-bytes="$2" --read-bytes=1 "$1")
  printf "%b" "\\x$(printf %02x $((byte ^ 1)))" |
    dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
for file in "$checkpoint"/*; do
  size=$(stat --format=%s "$file")
  for offset in 0 $((size / 3)) $((size / 2)) $((size - 1)); do
    flip "$file" "$offset"
    expect_line 2 "$checkpoint/" verify $checkpoint
    expect_line 2 "$checkpoint/" "${train[@]}" --output_dir=run --resume
    flip "$file" "$offset"
  done
done
verify $checkpoint >log || fail "the file is as it was, but verify says: $(cat log)"

# A file cut off, a file gone, a file elsewhere.
embedding=$checkpoint/embedding-00000-of-00001.safetensors
cp $embedding whole
truncate --size=-8 $embedding
expect_line 2 "$embedding" verify $checkpoint
rm $embedding
expect_line 2 "$embedding" "${resume[@]}"
ln --symbolic "$PWD/whole" $embedding
expect_line 2 "$embedding" "${resume[@]}"
rm $embedding
mv whole $embedding
cp $checkpoint/manifest.json manifest
sed --in-place 's|embedding-00000-of-00001.safetensors|../../model/dense.safetensors|' \
  $checkpoint/manifest.json
expect_line 2 "$checkpoint/manifest.json" "${resume[@]}"
cp manifest $checkpoint/manifest.json
expect_line 2 "no_such" verify no_such

# Best weights that are gone are missed at once, not at the end of the run.
monitored=("${train[@]}" --output_dir=monitored --set=training.monitor.best_weights=true)
"${monitored[@]}" --set=training.max_steps=30 >log 2>&1 || cat log
rm -rf monitored/checkpoints/best-0000000025
expect_line 2 "best-0000000025/manifest.json: open: No such file" on_ranks 3 "${monitored[@]}" --resume

# A finished run that left no checkpoints is not begun again.
"${train[@]}" --output_dir=bare --set=training.max_steps=5 --set=checkpoint.disabled=true >log 2>&1 ||
  cat log
expect_line 2 "holds a finished run without checkpoints" "${train[@]}" --output_dir=bare --resume

# No room for files of more than 8 KiB: the machine's fault, and the last checkpoint stays whole. Alone,
# because mpirun needs files of its own.
no_room() {
  ulimit -f 8
  exec "${train[@]}" --output_dir=run --resume --set=training.max_steps=25
}
output=$(no_room 2>&1)
status=$?
lines=$(loud_lines <<<"$output" | wc --lines)
[[ $status -eq 3 && $lines -eq 1 && $output == *"File too large"* ]] ||
  fail "no room: expected exit code 3 and one line, found $status and: $output"
[[ -z $(find run -name '*.partial') ]] || fail "no room: something unfinished stays"
verify $checkpoint >log || fail "no room: the last checkpoint: $(cat log)"
"${resume[@]}" >log 2>&1 || fail "after all that the run does not go on: $(cat log)"
exit "$((failures > 0))"
