#!/usr/bin/env bash
# A language model from raw text to bits per byte: what prepare takes of a page, the same numbers on
# any ranks and instruction set and after a restart on others, by either attention and head, more
# iterations than trained, and the lines that refuse what labels of classes have no meaning for.
# Arguments: the trainer, prepare.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
work=$TEST_TMPDIR
source "$(dirname "$0")/spread_run.sh"

cat >"$work/schema.textproto" <<'SCHEMA'
name: "lines"
layout: TEXT
text { length: 8 }
split { train: 0.8 validation: 0.1 test: 0.1 }
rows_per_block: 32
SCHEMA
for i in $(seq 1 60); do
  echo "Line $i of sixty & more: $((i * i % 17)) sheep, $((i % 5)) dogs."
done >"$work/plain.txt"
{
  echo '<!DOCTYPE html><html><head><style>p { color: red }</style></head><body>'
  sed 's/&/\&amp;/; s/^/<p>/; s/of /of\n <b>/; s/ more/ <\/b>more/; s/$/<\/p>/' "$work/plain.txt"
  echo '<script>var x = "hidden";</script></body></html>'
} >"$work/page.html"
for input in plain.txt page.html; do
  "$prepare" --schema="$work/schema.textproto" --input="$work/$input" --output_dir="$work/$input.data" \
    >/dev/null 2>&1 || fail "prepare $input"
done
for split in train validation test; do
  cmp "$work/plain.txt.data/$split.rows" "$work/page.html.data/$split.rows" ||
    fail "the page's $split rows are not the text's"
done
expect_line 2 'is not read in layout TEXT' "$prepare" --schema="$work/schema.textproto" --input=- \
  --output_dir="$work/none"

cat >"$work/tiny.textproto" <<'EXPERIMENT'
model { matrix_thinker { layers: 1 iterations: 2 heads: 2 probes: 3 dropout: 0.1 } }
embedding { width: 8 init_stddev: 0.3 }
optimizer { learning_rate: 0.01 beta2: 0.98 sparse: DENSE_ADAM decoupled_decay: 0.1 clip_norm: 1 }
training {
  batch_size: 37 epochs: 2 log_every_steps: 1 eval_every_steps: 5 monitor { metric: LOGLOSS }
  schedule { decay: COSINE warmup_steps: 3 }
}
spectrum { every_steps: 4 samples: 3 at_start: true }
parallel { virtual_shards: 4 }
EXPERIMENT
expect_line 2 "--predictions: the data's labels are classes; expected 0 or 1" "$trainer" \
  --experiment="$work/tiny.textproto" --set=data.path="$work/plain.txt.data" --output_dir="$work/none" --predictions
[[ ! -e $work/none ]] || fail '--predictions: refused after the first step'

# train RANKS RUN ARGUMENT...
train() {
  local ranks=$1 run=$work/$2
  shift 2
  on_ranks "$ranks" "$trainer" --experiment="$work/tiny.textproto" \
    --set=data.path="$work/plain.txt.data" --output_dir="$run" "$@" >"$work/log" 2>&1 && return
  fail "$ranks ranks, $*"
  cat "$work/log"
}
# same_numbers RUN OTHER WHAT
same_numbers() {
  diff <(numbers_of "$work/$1") <(numbers_of "$work/$2") >"$work/difference" && return
  fail "$3: other numbers than 1 rank (<)"
  head --lines=6 "$work/difference"
}
# spread RUN ARGUMENT...: RUN on one rank, and the same on three ranks and stopped on two.
spread() {
  local run=$1
  shift
  train 1 "$run" "$@"
  train 3 "$run.three" --set=parallel.overlap=true "$@"
  same_numbers "$run" "$run.three" "3 ranks, $*"
  train 2 "$run.stopped" --set=training.max_steps=7 "$@"
  train 3 "$run.stopped" --resume "$@"
  [[ $(digest_of "$work/$run") == "$(digest_of "$work/$run.stopped")" ]] ||
    fail "a restart on other ranks, $*"
}
spread one
ELASTOR_ISA=${isas[0]} train 1 v3 --set=parallel.threads=2
same_numbers one v3 'v3, 2 threads'
spread product --set=model.attention=MATRIX_PRODUCT
spread collapse --set=model.head=VECTOR_COLLAPSE --set=model.recompute=true
train 1 kept --set=model.head=VECTOR_COLLAPSE
same_numbers collapse kept 'activations that are kept'

first=$(grep --max-count=1 '"event":"train"' "$work/one/metrics.jsonl" | sed 's/.*"loss":\([0-9.]*\).*/\1/')
last=$(grep '"event":"train"' "$work/one/metrics.jsonl" | tail --lines=1 | sed 's/.*"loss":\([0-9.]*\).*/\1/')
awk -v first="$first" -v last="$last" 'BEGIN { exit !(last < first - 0.1) }' ||
  fail "the loss does not fall: $first, $last"
# Per position: 3 rows of 8 have 24 matrices.
grep --quiet '"stage":"iteration2".*"samples":24,"max_rank":4' "$work/one/metrics.jsonl" ||
  fail 'no ranks of every position'

# infer MODE RUN ARGUMENT...
infer() {
  local mode=$1 run=$2
  shift 2
  "$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/plain.txt.data" \
    --mode="$mode" --model="$work/one/model" --output_dir="$work/$run" "$@"
}
bits_of() { sed --quiet 's/.*"bits_per_label": \(.*\),/\1/p' "$work/$1/summary.json" | head --lines=1; }
infer evaluate again >/dev/null 2>&1 || fail 'evaluate'
[[ -n $(bits_of one) && $(bits_of again) == "$(bits_of one)" ]] ||
  fail "other bits per byte: $(bits_of one), $(bits_of again)"
infer evaluate deeper --set=evaluation.iterations=5 >/dev/null 2>&1 || fail 'five iterations'
[[ -n $(bits_of deeper) && $(bits_of deeper) != "$(bits_of one)" ]] || fail 'iterations change nothing'

# The head on matrices cut to lower ranks: as they are, and all but that at full rank, the metrics of
# an evaluation; the same bytes on three ranks. Its scoring matrices, one a byte, are measured beside.
infer projection cut >"$work/cut.txt" 2>/dev/null || fail 'projection'
on_ranks 3 "$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/plain.txt.data" \
  --mode=projection --model="$work/one/model" --output_dir="$work/cut_on_three" >/dev/null 2>&1
cmp "$work/cut/projections.csv" "$work/cut_on_three/projections.csv" || fail 'other projections on 3 ranks'
awk -F, -v bits="$(bits_of one)" 'function is(x, y) { return x - y < 1e-6 && y - x < 1e-6 }
  NR > 1 { ranks = ranks " " $1; found[$1] = $7 }
  END { exit !(ranks == " 0 1 2 4" && is(found[0], bits) && is(found[4], bits) && !is(found[1], bits)) }' \
  "$work/cut/projections.csv" || fail "projections: $(<"$work/cut/projections.csv")"
grep --quiet '^scoring matrices of the head: 256, mean stable rank [1-3][.]' "$work/cut.txt" ||
  fail "no scoring matrices: $(<"$work/cut.txt")"
[[ $(grep --count '"event":"scoring".*"matrices":256,"max_rank":4' "$work/one/metrics.jsonl") == \
  "$(grep --count '"event":"spectrum".*"stage":"iteration2"' "$work/one/metrics.jsonl")" ]] ||
  fail 'not one record of the scoring matrices a measurement'
for model in matrix_thinker transformer; do
  train 1 $model --set=model.kind=${model^^} --set=training.max_steps=2
  expect_line 2 'labels are classes; expected 0 or 1' "$trainer" --mode=export \
    --model="$work/$model/model" --output_dir="$work/none"
done
expect_line 2 'model: TRANSFORMER; expected RANK_ELASTOR, RANK_MIXER or MATRIX_THINKER' "$trainer" \
  --experiment="$work/transformer/experiment.textproto" --mode=projection \
  --model="$work/transformer/model" --output_dir="$work/none"

expect_line 2 'labels are classes; expected 0 or 1' infer predict none
# Of 8 positions' 2,048 logits 64 make the kernel.
infer ntk kernel --rows=4 >/dev/null 2>&1 || fail 'ntk'
grep --quiet '"layer":"whole","rows":4,"outputs":64,' "$work/kernel/ntk.jsonl" ||
  fail "the kernel's outputs: $(cat "$work/kernel/ntk.jsonl")"
expect_line 2 'training.monitor.metric: the data'"'"'s labels are classes; expected LOGLOSS' \
  "$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/plain.txt.data" \
  --output_dir="$work/none" --set=training.monitor.metric=AUC
make_tiny_data 200
expect_line 2 'a language model; expected data of layout TEXT' "$trainer" \
  --experiment="$work/tiny.textproto" --set=data.path="$work/data" --output_dir="$work/none"
expect_line 2 'a divisor of d = embedding.width / 2 = 4' "$trainer" \
  --experiment="$work/tiny.textproto" --set=data.path="$work/plain.txt.data" \
  --set=model.matrix_thinker.heads=3 --output_dir="$work/none"

exit "$((failures > 0))"
