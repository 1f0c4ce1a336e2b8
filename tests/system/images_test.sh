#!/usr/bin/env bash
# Images from files of MNIST's format to accuracy: plain and packed inputs, the same numbers on any ranks
# and instruction set and after a restart on others, their kernel, and the lines that refuse what does
# not fit.
# Arguments: the trainer, prepare, conditioning.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
conditioning=$PWD/$3
work=$TEST_TMPDIR
source "$(dirname "$0")/spread_run.sh"

# bytes NUMBER...: those bytes.
bytes() {
  local text
  printf -v text '\\%03o' "$@"
  printf '%b' "${text//\\/\\0}"
}
# write_images NAME COUNT FIRST: 4 x 6 pixels of which two columns, by the label, are bright.
write_images() {
  local i p pixels=() labels=()
  for ((i = $3; i < $3 + $2; ++i)); do
    labels+=($((i % 3)))
    for ((p = 0; p < 24; ++p)); do
      pixels+=($(((p % 6 / 2 == i % 3 ? 150 : 20) + (i * 37 + p * 11) % 97)))
    done
  done
  bytes 0 0 8 3 0 0 0 "$2" 0 0 0 4 0 0 0 6 "${pixels[@]}" >"$work/$1.images"
  bytes 0 0 8 1 0 0 0 "$2" "${labels[@]}" >"$work/$1.labels"
}
write_images train 200 0
write_images test 40 1000
gzip --keep "$work/train.images" "$work/train.labels"
cat >"$work/schema.textproto" <<'SCHEMA'
name: "columns"
layout: IDX
split { train: 0.9 validation: 0.1 }
rows_per_block: 32
SCHEMA
# make DATA INPUT TEST
make() {
  "$prepare" --schema="$work/schema.textproto" --input="$2" --test_input="$3" \
    --output_dir="$work/$1" >"$work/log" 2>&1
}
test_files=$work/test.images,$work/test.labels
make data "$work/train.images,$work/train.labels" "$test_files" || fail "prepare: $(<"$work/log")"
make packed "$work/train.images.gz,$work/train.labels.gz" "$test_files" || fail "packed: $(<"$work/log")"
for split in train validation test; do
  cmp "$work/data/$split.rows" "$work/packed/$split.rows" || fail "packed $split rows are others"
done
grep --quiet 'train_rows=180' "$work/log" || fail "rows: $(<"$work/log")"

cat >"$work/tiny.textproto" <<'EXPERIMENT'
model { vit { patch: 2 width: 8 layers: 1 heads: 2 hidden: 12 gated: true dropout: 0.1 } }
embedding { width: 1 }
optimizer { learning_rate: 0.01 decoupled_decay: 0.1 }
training {
  batch_size: 37 epochs: 8 log_every_steps: 1 eval_every_steps: 10 monitor { metric: LOGLOSS }
}
spectrum { every_steps: 10 samples: 5 }
parallel { virtual_shards: 4 }
EXPERIMENT
# train RANKS RUN ARGUMENT...
train() {
  local ranks=$1 run=$work/$2
  shift 2
  on_ranks "$ranks" "$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/data" \
    --output_dir="$run" "$@" >"$work/log" 2>&1 && return
  fail "$ranks ranks, $*"
  cat "$work/log"
}
# same_numbers RUN WHAT
same_numbers() {
  diff <(numbers_of "$work/one") <(numbers_of "$work/$1") >"$work/difference" && return
  fail "$2: other numbers than 1 rank (<)"
  head --lines=6 "$work/difference"
}
train 1 one
train 3 three --set=parallel.overlap=true
same_numbers three '3 ranks'
ELASTOR_ISA=${isas[0]} train 1 v3 --set=parallel.threads=2
same_numbers v3 'v3, 2 threads'
train 2 stopped --set=training.max_steps=13
on_ranks 3 "$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/data" \
  --output_dir="$work/stopped" --resume >"$work/log" 2>&1 || fail "resume: $(<"$work/log")"
[[ $(digest_of "$work/one") == "$(digest_of "$work/stopped")" ]] || fail 'a restart on other ranks'
accuracy=$(sed --quiet 's/.*"accuracy": \([0-9.]*\).*/\1/p' "$work/one/summary.json" | head --lines=1)
awk -v found="$accuracy" 'BEGIN { exit !(found > 0.8) }' || fail "accuracy $accuracy of bright columns"

# infer MODE RUN ARGUMENT...
infer() {
  local mode=$1 run=$2
  shift 2
  "$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/data" --mode="$mode" \
    --model="$work/one/model" --output_dir="$work/$run" "$@"
}
infer evaluate again --split=test >"$work/log" 2>&1 || fail "evaluate: $(<"$work/log")"
infer ntk kernel --split=test --rows=20 >"$work/log" 2>&1 || fail "ntk: $(<"$work/log")"
grep --quiet '"layer":"layer0.mlp","rows":20' "$work/kernel/ntk.jsonl" || fail 'no kernel of the MLP'
train 1 mlp --set=model.kind=MLP --set=model.hidden=9
train 1 mixer --set=model.kind=MLP_MIXER --set=model.patch=2 --set=model.token_hidden=7

# refuse PATTERN INPUT [TEST]
refuse() {
  expect_line 2 "$1" "$prepare" --schema="$work/schema.textproto" --input="$2" \
    --test_input="${3:-$test_files}" --output_dir="$work/none"
}
images=$work/train.images labels=$work/train.labels
refuse 'found the magic number 0x00000801 (labels); expected 0x00000803 (images)' "$labels,$images"
refuse 'has no other file beside it' "$images"
cp "$work/test.labels" "$work/few"
refuse 'found 40 labels; expected 200' "$images,$work/few"
printf '\x00\x00\x08\x01\xff\xff\xff\xff' >"$work/countless"  # which no memory is taken for
refuse 'found 4294967295 labels; expected 200' "$images,$work/countless"
head --bytes=100 "$images" >"$work/cut"
refuse 'found 84 bytes behind its header; expected 4800, of 200 x 4 x 6' "$work/cut,$labels"
head --bytes=10 "$images" >"$work/cut"
refuse 'found 10 bytes; expected 16' "$work/cut,$labels"
head --bytes=500 "$images.gz" >"$work/cut.gz"
refuse 'damaged gzip data at byte 500' "$work/cut.gz,$labels"
{ cat "$labels" && bytes 1; } >"$work/long"
refuse 'found more bytes behind its header; expected 200, of 200' "$images,$work/long"
{ bytes 0 0 8 3 0 0 0 40 0 0 0 6 0 0 0 4 && tail --bytes=960 "$work/test.images"; } >"$work/turned"
refuse 'found images of 6 x 4; expected 4 x 6' "$images,$labels" "$work/turned,$work/test.labels"
# Large images: blocks are bounded in bytes, and so are images in memory.
{ bytes 0 0 8 3 0 0 0 12 0 0 8 0 0 0 8 0 && head --bytes=$((12 << 22)) /dev/zero; } >"$work/large.images"
{ bytes 0 0 8 1 0 0 0 12 0 1 2 3 4 5 6 7 8 9 10 11; } >"$work/large.labels"
large=$work/large.images,$work/large.labels
# make_large DATA ROWS_PER_BLOCK ARGUMENT...: '' leaves rows_per_block out.
make_large() {
  sed "s/^rows_per_block: .*/${2:+rows_per_block: $2}/" "$work/schema.textproto" >"$work/large.textproto"
  "$prepare" --schema="$work/large.textproto" --input="$large" --output_dir="$work/$1" "${@:3}"
}
make_large large '' >"$work/log" 2>&1 || fail "large images: $(<"$work/log")"
grep --quiet '"rows_per_block": 4,' "$work/large/meta.json" || fail 'blocks of large images'
make_large by_schema 7 >"$work/log" 2>&1 || fail "large images by the schema: $(<"$work/log")"
grep --quiet '"rows_per_block": 7,' "$work/by_schema/meta.json" || fail "the schema's rows_per_block"
expect_line 2 'rows_per_block: 65 images of 2048 x 2048 pixels are 272629760 bytes; expected at most 268435456, which 64 images have, or none' \
  make_large none 65
expect_line 2 'found 12 x 2048 x 2048 bytes of images, which lie in memory; expected at most the 42949672 that --memory_gib leaves' \
  make_large none '' --memory_gib=0.04
rm --recursive "$work/large" "$work/by_schema" "$work"/large.*

# Images whose losses have no meaning: those that are 0 as the trainer reads them, all black here, and
# those of one class.
sed 's/^split .*/split { train: 0.5 validation: 0.5 }/' "$work/schema.textproto" >"$work/half.textproto"
# expect_image_losses PATTERN: of the 600 images of many.images and many.labels, half to validate on.
expect_image_losses() {
  "$prepare" --schema="$work/half.textproto" --input="$work/many.images,$work/many.labels" \
    --output_dir="$work/many" >"$work/log" 2>&1 || fail "many images: $(<"$work/log")"
  expect_line 2 "$1" "$conditioning" --studies=image_losses --images="$work/many" "$work/none"
  rm --recursive --force "$work/many"
}
header=(0 0 8 3 0 0 2 88 0 0 0 4 0 0 0 6)
{ bytes "${header[@]}" && head --bytes=14400 /dev/zero; } >"$work/many.images"
{ bytes 0 0 8 1 0 0 2 88 && tail --bytes=600 "$work/train.images"; } >"$work/many.labels"
expect_image_losses "all pixels of the validation row 0 are the training split's mean; expected images that differ from it"
{ bytes "${header[@]}" && for _ in 1 2 3; do tail --bytes=4800 "$work/train.images"; done; } \
  >"$work/many.images"
{ bytes 0 0 8 1 0 0 2 88 && head --bytes=300 /dev/zero && head --bytes=300 /dev/zero | tr '\0' '\1'; } \
  >"$work/many.labels"
expect_image_losses 'the first 300 rows to validate on are of one class; expected several'
expect_line 2 '--studies: image_losses without --images; expected prepared images' \
  "$conditioning" --studies=claims,image_losses "$work/none"
mkdir "$work/locked"
exec 9<"$work/locked"
flock 9
expect_line 2 "$work/locked: another process is writing there" "$conditioning" --studies=claims "$work/locked"
exec 9<&-

expect_line 2 'model.vit.patch: found 4; expected a divisor of both sides of an image, 4 and 6 pixels' infer evaluate none --set=model.patch=4
expect_line 2 'labels are classes; expected 0 or 1' infer predict none
expect_line 2 'embedding.width: found 2; expected 1' "$trainer" --experiment="$work/tiny.textproto" \
  --set=data.path="$work/data" --set=embedding.width=2 --output_dir="$work/none"
expect_line 2 'model: one of images; expected data of layout IDX' "$trainer" \
  --experiment="$work/tiny.textproto" --set=data.shape.numeric_fields=3 --mode=describe

exit "$((failures > 0))"
