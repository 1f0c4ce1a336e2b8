#!/usr/bin/env bash
# A trained model gives the metrics of its training run on any number of ranks, and the same
# predictions and effective ranks for a row whatever stands beside it. Arguments: the trainer, prepare,
# spectra_report.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
spectra_report=$PWD/$3
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
  grep '"event":"[a-z_]*eval"' "$1/metrics.jsonl" | tail --lines=1 | sed 's/"scheduled":[a-z]*,//'
}
# expect_mistake RANKS PATTERN FLAGS...: exit code 2 and one line that holds the fixed text PATTERN, and
# no folder.
expect_mistake() {
  local ranks=$1 pattern=$2
  shift 2
  expect_line 2 "$pattern" on_ranks "$ranks" "$trainer" --experiment=tiny.textproto \
    --set=data.path=data --output_dir=mistake "$@"
  [[ ! -e mistake ]] || fail "$*: left a folder"
}

cat >schema.textproto <<'SCHEMA'
name: "tiny"
layout: SYNTHETIC
split { train: 0.8 validation: 0.1 test: 0.1 }
synthetic { rows: 4000 seed: 1 numeric_fields: 2 categorical_fields: 3 ids_per_field: 900 }
SCHEMA
cat >tiny.textproto <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 dropout: 0.1 } }
embedding { width: 3 }
optimizer { learning_rate: 0.01 }
training { batch_size: 256 seed: 3 }
spectrum { disabled: true }
parallel { virtual_shards: 16 }
EXPERIMENT
"$prepare" --schema=schema.textproto --output_dir=data >/dev/null || exit 1

# Trained alone, evaluated on three ranks; trained on three, evaluated alone.
run 1 one
run 3 three --set=parallel.plan=TABLE_WISE
run 3 one_on_three --mode=evaluate --model=one/model
run 1 three_on_one --mode=evaluate --model=three/model --set=parallel.threads=2
for evaluated in one_on_three three_on_one; do
  expect_same "$evaluated: eval" "$(last_eval one)" "$(last_eval "$evaluated")"
  expect_same "$evaluated: digest" "$(digest_of one)" "$(digest_of "$evaluated")"
done
cmp one/model/dense.safetensors three/model/dense.safetensors || fail 'dense weights differ'

# The row alone, and among others on other ranks.
run 3 together --mode=predict --model=three/model --split=test
run 1 alone --mode=predict --model=one/model --split=test --set=training.eval_batch_size=1
cmp together/predictions.csv alone/predictions.csv || fail 'predictions differ'
run 3 trained --predictions --split=test
cmp together/predictions.csv trained/predictions.csv || fail 'predictions of training differ'
expect_same 'eval of training' "$(last_eval together)" "$(last_eval trained)"
expect_same 'lines' 401 "$(wc --lines <together/predictions.csv)"
expect_same 'header' 'index,label,probability' "$(head --lines=1 together/predictions.csv)"
expect_same 'order' "$(seq 0 399)" \
  "$(tail --lines=+2 together/predictions.csv | cut --delimiter=, --fields=1)"
expect_same 'eval of predict' "$(last_eval alone)" "$(last_eval together)"

# The file's logloss is the one measured, to the digits that %.9g leaves.
logloss_of='NR > 1 { sum -= log($2 == 1 ? $3 : 1 - $3) } END { printf "%.6f", sum / (NR - 1) }'
expect_same 'logloss' \
  "$(printf '%.6f' "$(last_eval together | sed 's/.*"logloss":\([^,]*\),.*/\1/')")" \
  "$(awk -F, "$logloss_of" together/predictions.csv)"

# A checkpoint is a model too; and the effective ranks of a model are those that training measured.
state=$(echo one/checkpoints/step-*)
run 3 of_a_checkpoint --mode=evaluate --model="$state"
expect_same 'checkpoint: eval' "$(last_eval one)" "$(last_eval of_a_checkpoint)"
run 1 measured --set=spectrum.disabled=false --set=spectrum.at_start=true
run 3 spectra --mode=spectra --model=measured/model --per_sample --export=csv
spectrum_of() { grep '"event":"spectrum"' "$1/metrics.jsonl"; }
expect_same 'spectra' "$(spectrum_of measured | grep --invert-match '"step":0,')" \
  "$(spectrum_of spectra)"
expect_same 'stages at the start' 4 "$(spectrum_of measured | grep --count '"step":0,')"

# The files of mode spectra are the same bytes on any spread; the rows' ranks have the means told.
run 1 spectra_alone --mode=spectra --model=measured/model --per_sample \
  --set=training.eval_batch_size=100 --set=parallel.threads=2
for file in spectra.csv spectra_histogram.csv spectra_samples.csv spectra_stable.svg \
  spectra_entropy.svg spectra_means.svg; do
  cmp "spectra/$file" "spectra_alone/$file" || fail "$file differs"
done
expect_same 'stages of spectra.csv' 'stage embedding tokens block0.mixing block0.ffn' \
  "$(cut --delimiter=, --fields=3 spectra/spectra.csv | xargs)"
expect_same 'rows of spectra_samples.csv' "$(seq 0 399)" \
  "$(tail --lines=+2 spectra/spectra_samples.csv | cut --delimiter=, --fields=1)"
expect_same 'rows of the histogram' 400 \
  "$(awk -F, '$1 == "tokens" && $2 == "stable" { n += $5 } END { print n }' spectra/spectra_histogram.csv)"
column_of() { # FILE NAME ROW
  awk -F, -v name="$2" -v row="$3" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) c = i }
    NR == row { printf "%.5f", $c }' "$1"
}
# The change from block0.mixing to block0.ffn, from the file of rows and from the file of stages.
change='NR > 1 { sum += $8 - $6; up += $8 > $6 } END { printf "%.5f %.5f", sum / (NR - 1), up / (NR - 1) }'
expect_same 'mean change and share that rises' "$(awk -F, "$change" spectra/spectra_samples.csv)" \
  "$(column_of spectra/spectra.csv stable_change 5) $(column_of spectra/spectra.csv stable_rising 5)"
# The data behind a picture are those of the table.
field_of_stages() { awk -F, -v c="$1" 'NR > 1 { print $c }' spectra/spectra.csv | xargs; }
expect_same 'means drawn' "$(field_of_stages 6)" \
  "$(awk -F, '$1 == "stable rank" { print $4 }' spectra/spectra_means.csv | xargs)"
[[ ! -e spectra_alone/spectra_means.csv ]] || fail 'data of pictures that nobody asked for'
# Ranks of directions are others, on any spread the same.
run 3 directions --mode=spectra --model=measured/model --set=spectrum.unit_tokens=true
run 1 directions_alone --mode=spectra --model=measured/model --set=spectrum.unit_tokens=true
cmp directions/spectra.csv directions_alone/spectra.csv || fail 'ranks of directions differ'
[[ $(column_of directions/spectra.csv stable_mean 3) != "$(column_of spectra/spectra.csv stable_mean 3)" ]] ||
  fail 'unit_tokens changes no rank'
run 1 spectra_of_rows --mode=spectra --model=measured/model
[[ ! -e spectra_of_rows/spectra_samples.csv ]] || fail 'ranks of samples that nobody asked for'
"$spectra_report" measured --output_dir=report >report.log || fail 'spectra_report'
for file in stages.csv stages_stable.svg stages_start_entropy.svg drift_stable_RANK_ELASTOR.svg; do
  [[ -s report/$file ]] || fail "spectra_report: no $file, only $(ls report)"
done
expect_mistake 1 '--model: missing' --mode=spectra
expect_mistake 1 '--per_sample: only --mode=spectra' --mode=evaluate --model=one/model --per_sample

# The neural tangent kernel: every entry has the same bits on any number of ranks and threads and with
# either set of kernels, and is the one that training measured, before its first step and after its last.
run 1 kernel --mode=ntk --model=one/model --rows=300 --kernels --export=json
expect_same 'eigenvalues drawn, the first of each part' \
  "$(grep --count . kernel/ntk.jsonl)" "$(grep --count '"y": 1.0,*$' kernel/ntk_spectrum_drawn.json)"
[[ -s kernel/ntk_density_drawn.json ]] || fail 'no data behind the density'
run 3 kernel_on_three --mode=ntk --model=one/model --rows=300 --kernels
run 4 kernel_on_four --mode=ntk --model=one/model --rows=300 --set=parallel.threads=2
ELASTOR_ISA=${isas[0]} run 1 kernel_v3 --mode=ntk --model=one/model --rows=300
for file in ntk.jsonl ntk_spectrum.csv ntk_spectrum.svg ntk_density.svg; do
  for other in kernel_on_three kernel_on_four kernel_v3; do
    cmp "kernel/$file" "$other/$file" || fail "$other: $file differs"
  done
done
cmp kernel/ntk_whole.npy kernel_on_three/ntk_whole.npy || fail 'ntk_whole.npy differs'
expect_same 'layers' 'numeric tokenizer.output block0.mixing block0.ffn head.output embedding whole' \
  "$(sed 's/.*"layer":"\([^"]*\)".*/\1/' kernel/ntk.jsonl | xargs)"
expect_same 'rows of the whole' 1 \
  "$(grep --count '"layer":"whole","rows":300,"outputs":1,' kernel/ntk.jsonl)"
# What describe tells of its memory is surely taken.
"$trainer" --experiment=tiny.textproto --set=data.path=data --mode=describe --rows=300 >described ||
  fail 'describe: memory of the kernel'
sure=$(sed --quiet '/"ntk_memory"/,/}/s/.*"ntk": \([0-9]*\).*/\1/p' described)
peak=$(sed --quiet 's/.*"peak_memory_bytes": \([0-9]*\).*/\1/p' kernel/summary.json)
# A row's 128 KiB at most of gradients, and three times the kernel.
[[ $sure -gt $((3 * 8 * 300 * 300)) && $sure -lt $peak ]] || fail "the kernel takes $peak, at least $sure"
ntk_of() { grep '"event":"ntk"' "$1/metrics.jsonl"; }
run 3 with_kernel --set=spectrum.disabled=false --set=spectrum.at_start=true \
  --set=spectrum.ntk_rows=300
expect_same 'kernel of training' "$(cat kernel/ntk.jsonl)" "$(ntk_of with_kernel | tail --lines=7)"
expect_same 'digest with kernels' "$(digest_of one)" "$(digest_of with_kernel)"
run 1 kernel_at_start --mode=ntk --rows=300
expect_same 'kernel at the start' "$(cat kernel_at_start/ntk.jsonl)" \
  "$(ntk_of with_kernel | head --lines=7)"
# Of rows with equal features only the first counts.
sed 's/numeric_fields: 2/numeric_fields: 0/; s/fields: 3 ids_per_field: 900/fields: 2 ids_per_field: 6/' \
  schema.textproto >few.textproto
"$prepare" --schema=few.textproto --output_dir=few >/dev/null || exit 1
run 1 distinct --mode=ntk --rows=300 --set=data.path=few
left=$(sed --quiet 's/ rows left out that .*//p' distinct.log)
rows=$(sed --quiet 's/.*"layer":"whole","rows":\([0-9]*\),.*/\1/p' distinct/ntk.jsonl)
[[ $rows -le 36 && $((rows + left)) -eq 400 ]] || fail "of 400 rows $rows measured, '$left' left out"
# Of many rows Lanczos' method finds the largest eigenvalue, to rounding on any number of ranks; with more
# rows it grows.
sed 's/rows: 4000/rows: 45000/' schema.textproto >many.textproto
"$prepare" --schema=many.textproto --output_dir=many >/dev/null || exit 1
largest_of() { sed --quiet 's/.*"layer":"whole".*"lambda_max":\([^,]*\),.*/\1/p' "$1/ntk.jsonl"; }
few_weights=(--set=model.tokens=2 --set=model.token_width=4)
for ranks in 1 3; do
  run $ranks lanczos_$ranks --mode=ntk --rows=4200 --set=data.path=many "${few_weights[@]}"
done
run 1 fewer --mode=ntk --rows=300 --set=data.path=many "${few_weights[@]}"
awk -v one="$(largest_of lanczos_1)" -v three="$(largest_of lanczos_3)" -v fewer="$(largest_of fewer)" '
  BEGIN { exit !(one > fewer && one < 20 * fewer && (one - three) ^ 2 < (1e-9 * one) ^ 2) }' ||
  fail "largest eigenvalues: $(largest_of lanczos_1) $(largest_of lanczos_3) $(largest_of fewer)"
# And what describe tells of many rows is most of what they take, and no more: most of it the kernel's,
# or the gradients of a model with long ones.
told_of() { # ROWS FLAGS...
  "$trainer" --experiment=tiny.textproto --set=data.path=many --mode=describe --rows="$@" |
    sed --quiet '/"ntk_memory"/,/}/s/.*"ntk": \([0-9]*\).*/\1/p'
}
peak_of() { # ROWS FLAGS...
  rm --recursive --force rows
  run 1 rows --mode=ntk --set=data.path=many --rows="$@"
  sed --quiet 's/.*"peak_memory_bytes": \([0-9]*\).*/\1/p' rows/summary.json
}
# grows_as_told ROWS FLAGS...
grows_as_told() {
  local told=$(($(told_of "$@") - $(told_of 2 "${@:2}")))
  local grown=$(($(peak_of "$@") - $(peak_of 2 "${@:2}")))
  [[ $told -le $grown && $((10 * told)) -gt $((7 * grown)) ]] ||
    fail "the kernel of $*: $told bytes told, $grown taken"
}
grows_as_told 1000
grows_as_told 300 --set=model.tokens=8 --set=model.token_width=48
# Describing a large model does not build it.
(ulimit -v 600000 && told_of 300 --set=model.kind=MLP --set=model.hidden=4000,4000 >large) ||
  fail 'describe: memory of the kernel of a large model'
[[ $(<large) -gt $((3 * 8 * 16000000)) ]] || fail "the kernel of a large model takes $(<large)"
grep --quiet '"lambda_min":null,"condition_number":null,"rank":null' lanczos_1/ntk.jsonl ||
  fail 'Lanczos tells what it does not find'
expect_same 'shares of the density' 1.000 \
  "$(awk -F, 'NR > 1 { sum += $2 } END { printf "%.3f", sum }' lanczos_3/ntk_density.csv)"
echo 'model { mlp { hidden: 8 batch_norm: true } } embedding { width: 3 } training { batch_size: 256 }' >norm.textproto
expect_mistake 3 'per-sample gradients: the model has batch norm' --mode=ntk \
  --experiment=norm.textproto
expect_mistake 1 'spectrum.ntk_rows: per-sample gradients: the model has batch norm' \
  --experiment=norm.textproto --set=spectrum.ntk_rows=9
expect_mistake 1 '--rows=1: expected 2 to 100000' --mode=ntk --rows=1
expect_mistake 3 '--rows: only --mode=ntk' --mode=evaluate --model=one/model --rows=8

# A run's pictures and page: from its folder alone, the same bytes again; of several beside each other;
# of one that is not finished.
plot() { "$trainer" --mode=plot "$@" >plot.log 2>&1 || fail "plot $*: $(cat plot.log)"; }
plot measured
for file in report.html loss.svg auc.svg learning_rate.svg stable_rank.svg singular_values.svg \
  distribution_entropy.svg distribution_stable_start.svg; do
  [[ -s measured/report/$file ]] || fail "plot: no $file, only $(ls measured/report)"
done
expect_same 'pictures of the page' "$(find measured/report -name '*.svg' | wc --lines)" \
  "$(grep --count '<svg xmlns' measured/report/report.html)"
expect_same 'stages of a picture' 4 \
  "$(grep --count --extended-regexp '>(embedding|tokens|block0.mixing|block0.ffn)</text>' measured/report/stable_rank.svg)"
cp --recursive measured/report report_before
plot measured
diff --recursive report_before measured/report || fail 'plot: other bytes of the same run'
grep --invert-match '"event":"eval"' measured/metrics.jsonl >kept
mkdir unfinished && cp kept unfinished/metrics.jsonl && printf '{"event":"tr' >>unfinished/metrics.jsonl
sed 's/seed: 3/seed: 4/' measured/experiment.textproto >unfinished/experiment.textproto
plot measured unfinished --output_dir=compared
for text in '<td class="k">training.seed</td><td>3</td><td>4</td>' 'not finished: [0-9]* steps so far' \
  '<h1>measured and unfinished</h1>'; do
  grep --quiet "$text" compared/report.html || fail "plot: the page has no $text"
done
# The data behind the pictures: as many losses as records.
plot measured --output_dir=exported --export=csv
expect_same 'exported losses' "$(grep --count '"event":"train"' measured/metrics.jsonl)" \
  "$(grep --count --extended-regexp '^training(,raw)?,' exported/loss.csv)"
# expect_no_plot PATTERN ARGUMENT...
expect_no_plot() {
  local pattern=$1
  shift
  expect_line 2 "$pattern" "$trainer" --mode=plot --output_dir=mistake "$@"
  [[ ! -e mistake ]] || fail "plot $*: left a folder"
}
expect_no_plot '--mode=plot: no run; expected the folders'
expect_no_plot '--export=xml: expected csv or json' measured --export=xml
expect_no_plot 'nowhere: holds no run (no metrics.jsonl)' nowhere
expect_no_plot 'one_on_three: is of mode evaluate; expected a training run' measured one_on_three
expect_no_plot 'measured/.: is given twice' measured measured/.
# Seven runs that differ in the learning rate are too many curves; two seeds of each of three are
# three curves.
copies=()
for i in 1 2 3 4 5 6 7; do
  mkdir "copy$i"
  cp measured/{experiment.textproto,metrics.jsonl,summary.json} "copy$i"
  sed --in-place "s/ learning_rate: .*/ learning_rate: 0.0$i/" "copy$i/experiment.textproto"
  copies+=("copy$i")
done
expect_no_plot '7 runs; expected at most 6' "${copies[@]}"
for i in 4 5 6; do
  sed --in-place "s/ learning_rate: .*/ learning_rate: 0.0$((i - 3))/; s/ seed: .*/ seed: 99/" \
    "copy$i/experiment.textproto"
done
plot "${copies[@]:0:6}" --output_dir=seeds
grep --quiet --fixed-strings '6 runs in 3 groups; runs of a group differ in their seed alone' seeds/report.html || fail 'plot: 6 runs in 3 groups; runs of a group differ in their seed alone'
grep --quiet --fixed-strings 'learning_rate 0.02 (2 seeds)' seeds/report.html || fail 'plot: learning_rate 0.02 (2 seeds)'
expect_no_plot '--set=training.seed=4: --mode=plot shows runs as they are' measured --set=training.seed=4
expect_no_plot '--experiment: --mode=plot reads what the runs' --experiment=tiny.textproto measured
expect_line 2 '--output_dir: missing; expected a new directory for the report of 2 runs' \
  "$trainer" --mode=plot measured one
expect_line 2 "--output_dir=one: holds '" "$trainer" --mode=plot measured --output_dir=one
expect_line 2 "'measured': expected a flag" "$trainer" --mode=train measured
expect_line 2 '--mode=plot: 3 ranks; expected one' on_ranks 3 "$trainer" --mode=plot measured
printf '%s\n' '{"event":"checkpoint","step":1}' >unfinished/metrics.jsonl
expect_no_plot 'unfinished/metrics.jsonl: has no records yet' unfinished
echo 'damaged' >>unfinished/metrics.jsonl
expect_no_plot 'unfinished/metrics.jsonl:2: expected a record' unfinished

# Other shapes of tokens, with what describing them gives; only those that the mixing takes.
describe() { "$trainer" --experiment=tiny.textproto --set=data.path=data --mode=describe "$@"; }
# shapes FLAGS...: "tokens width parameters multiply-adds", a line a shape.
shapes() {
  describe "$@" | sed --quiet '/"token_shapes"/,/\]/s/.*"\(tokens\|token_width\|dense_parameters\|multiply.*\)": \([0-9]*\).*/\2/p' |
    xargs --max-args=4
}
expect_same 'shapes' '4 8 5 8 8 8' "$(shapes | cut --delimiter=' ' --fields=1,2 | xargs)"
swapping=(--set=model.kind=RANK_MIXER --set=model.token_width=16 --set=model.convention=PUBLIC_CODE)
expect_same 'shapes that swap' '4 16 5 15 8 8' \
  "$(shapes "${swapping[@]}" | cut --delimiter=' ' --fields=1,2 | xargs)"
expect_same 'what a shape costs' "$(shapes "${swapping[@]}" | sed --quiet '/^5 15 /s/^5 15 //p')" \
  "$(describe "${swapping[@]}" --set=model.tokens=5 --set=model.token_width=15 |
    sed --quiet 's/^  "\(dense_parameters\|multiply_adds_per_sample_forward\)": \([0-9]*\).*/\2/p' | xargs)"
expect_mistake 1 'swaps 4 x 4 blocks of D / T columns; expected 8 or 12' --set=model.kind=RANK_MIXER \
  --set=model.token_width=9

# The theorems' table: the same bytes on any number of ranks, at the initial weights and the model's.
run 1 theory --mode=theory --model=one/model --set=spectrum.samples=300
run 3 theory_on_three --mode=theory --model=one/model --set=spectrum.samples=300
cmp theory/theory.csv theory_on_three/theory.csv || fail 'theory.csv differs'
for rows in parameters gaussian 'rank 1' initial trained; do
  grep --quiet "^$rows,.*,3\." theory/theory.csv || fail "theory.csv has no rows '$rows'"
done
expect_same 'samples' '2.1 lower bound,300' \
  "$(grep '^trained,.*2.1 lower' theory/theory.csv | cut --delimiter=, --fields=3,4)"
# Of all rows, the ranks that mode spectra measures at the same probes.
run 1 theory_of_all --mode=theory --model=one/model --set=spectrum.samples=1000000
expect_same 'the theorems agree with the spectrum' \
  "$(run 1 every_row --mode=spectra --model=one/model; spectrum_of every_row |
    sed --quiet 's/.*"block0.mixing".*"stable_rank_mean":\([0-9]*\.[0-9]\{6\}\).*/\1/p')" \
  "$(grep '^trained,block0.mixing,mixing of' theory_of_all/theory.csv |
    awk -F, '{ printf "%.6f", substr($8, 1, 8) }')"
expect_mistake 3 'model: MLP; expected RANK_ELASTOR or RANK_MIXER' --mode=theory --model=one/model \
  --set=model.kind=MLP

# A block that is applied repeatedly, with bilinear probes: the same bits on any number of ranks, with
# and without recomputation, and when it goes on after a stop.
refined=(--set=model.iterations=3 --set=model.head.kind=MULTI_PROBE --set=model.head.probes=6)
run 1 refined "${refined[@]}" --set=spectrum.disabled=false --set=spectrum.training_samples=100
run 3 refined_on_three "${refined[@]}" --set=model.recompute=true --set=training.max_steps=5
run 1 refined_on_three "${refined[@]}" --resume
expect_same 'refined: digest' "$(digest_of refined)" "$(digest_of refined_on_three)"
expect_same 'refined: stages' 'iteration0.block0.ffn iteration1.block0.ffn iteration2.block0.ffn' \
  "$(grep '"event":"spectrum"' refined/metrics.jsonl |
    sed --quiet 's/.*"stage":"\([^"]*ffn\)".*/\1/p' | xargs)"
expect_same 'refined: stages of training rows' 8 \
  "$(grep --count '"event":"training_spectrum".*"samples":100' refined/metrics.jsonl)"

# The head on tokens cut to lower ranks: as it is the metrics of an evaluation, and all but those at
# full rank; the same bytes on any number of ranks.
run 1 projection "${refined[@]}" --mode=projection --model=refined/model
run 3 projection_on_three "${refined[@]}" --mode=projection --model=refined/model
cmp projection/projections.csv projection_on_three/projections.csv || fail 'projections.csv differs'
expect_same 'ranks of projections.csv' 'rank 0 1 2 4' \
  "$(cut --delimiter=, --fields=1 projection/projections.csv | xargs)"
expect_same 'projection: logloss' \
  "$(last_eval refined | sed 's/.*"logloss":\([0-9]*\.[0-9]\{8\}\).*/\1/')" \
  "$(awk -F, '$1 == 0 { printf "%.10s", $5 }' projection/projections.csv)"
awk -F, '$1 == 0 { loss = $5 } $1 == 1 { one = $5 } $1 == 4 { full = $5 }
  END { d = full - loss; exit !(d < 1e-6 && d > -1e-6 && one != loss) }' projection/projections.csv ||
  fail "projections: $(cat projection/projections.csv)"
"$spectra_report" projection measured --output_dir=cut >cut.log || fail 'spectra_report of projections'
for file in projections.csv projections_auc.svg stages.csv; do
  [[ -s cut/$file ]] || fail "spectra_report: no $file, only $(ls cut)"
done

# Rows of training in their stored order and without dropout, of a set whose validation rows are the
# training rows: both splits have the same figures, where all rows are training rows.
cat >twice.textproto <<'SCHEMA'
layout: DELIMITED
delimiter: ","
fields { name: "y" type: LABEL }
fields { name: "x" type: NUMERIC }
fields { name: "c" type: CATEGORICAL }
SCHEMA
awk 'BEGIN { srand(5); for (i = 0; i < 600; ++i) printf "%d,%.3f,%d\n", rand() < .3, rand(), 40 * rand() }' >rows.csv
cp rows.csv again.csv
"$prepare" --schema=twice.textproto --input=rows.csv --validation_input=again.csv --output_dir=twice \
  >/dev/null || exit 1
twice=(--set=data.path=twice --set=data.train_rows=500)
run 1 learned "${twice[@]}" --set=training.epochs=3
for split in train validation; do
  of_split=("${twice[@]}" --model=learned/model --split=$split)
  run 3 predicted_$split "${of_split[@]}" --mode=predict
  run 2 ranks_$split "${of_split[@]}" --mode=spectra --per_sample
  run 3 kernel_$split "${of_split[@]}" --mode=ntk --rows=90
done
cmp predicted_train/predictions.csv <(head --lines=501 predicted_validation/predictions.csv) ||
  fail '--split=train: other predictions'
cmp ranks_train/spectra_samples.csv <(head --lines=501 ranks_validation/spectra_samples.csv) ||
  fail '--split=train: other effective ranks'
cmp kernel_train/ntk_spectrum.csv kernel_validation/ntk_spectrum.csv ||
  fail '--split=train: another kernel'
expect_same '--split=train: labels' "$(head --lines=500 rows.csv | cut --delimiter=, --fields=1)" \
  "$(tail --lines=+2 predicted_train/predictions.csv | cut --delimiter=, --fields=2)"
run 1 evaluated_train "${twice[@]}" --model=learned/model --split=train --mode=evaluate
expect_same '--split=train: eval' "$(last_eval predicted_train)" "$(last_eval evaluated_train)"
expect_same '--split=train: logloss' \
  "$(printf '%.6f' "$(last_eval evaluated_train | sed 's/.*"logloss":\([^,]*\),.*/\1/')")" \
  "$(awk -F, "$logloss_of" predicted_train/predictions.csv)"
run 1 all_kernels "${twice[@]}" --model=learned/model --split=train --mode=ntk
expect_same '--split=train: rows of the kernel' 500 \
  "$(($(sed --quiet 's/.*"layer":"whole","rows":\([0-9]*\),.*/\1/p' all_kernels/ntk.jsonl) +
    $(sed --quiet 's/ rows left out that .*//p' all_kernels.log | grep . || echo 0)))"
"$spectra_report" ranks_train --output_dir=report_train >report.log || fail 'spectra_report of training rows'
expect_mistake 1 '--split=train: expected validation or test' --split=train

# Training rows beside every scheduled evaluation: rows 5, 15, ..., 495 of 500, by the weights of that
# step. Nothing else changes.
beside=("${twice[@]}" --set=training.epochs=3 --set=evaluation.train_rows=50)
run 1 beside "${beside[@]}"
run 3 beside_on_three "${beside[@]}" --set=training.eval_batch_size=7
training_evals() { grep '"event":"training_eval"' "$1/metrics.jsonl"; }
expect_same 'evaluation.train_rows: ranks' "$(training_evals beside)" "$(training_evals beside_on_three)"
expect_same 'evaluation.train_rows: digest' "$(digest_of learned)" "$(digest_of beside)"
expect_same 'evaluation.train_rows: hash' "$(grep numeric_hash learned/summary.json)" \
  "$(grep numeric_hash beside/summary.json)"
expect_same 'evaluation.train_rows: other evaluations' "$(grep '"event":"eval"' learned/metrics.jsonl)" \
  "$(grep '"event":"eval"' beside/metrics.jsonl)"
expect_same 'evaluation.train_rows: metrics.csv' '2 train 4 train 6 train' \
  "$(awk -F, '$1 == "training_eval" { print $2, $4 }' beside/metrics.csv | xargs)"
expect_same 'evaluation.train_rows: logloss' \
  "$(training_evals beside | tail --lines=1 | sed 's/.*"rows":50,.*"logloss":\([0-9]*\.[0-9]\{6\}\).*/\1/')" \
  "$(awk -F, 'NR > 1 && $1 % 10 == 5 { n += 1; sum -= log($2 == 1 ? $3 : 1 - $3) }
    END { printf "%.8s", sum / n }' predicted_train/predictions.csv)"
plot beside
grep --quiet '>training rows<' beside/report/logloss.svg || fail 'plot: no curve of training rows'
expect_mistake 1 'data.train_rows: 601; expected at most the 600 rows' "${twice[@]}" \
  --set=data.train_rows=601 --mode=evaluate --model=learned/model --split=train

# More iterations than in training are another function of the same weights.
run 1 longer "${refined[@]}" --mode=evaluate --model=refined/model --set=evaluation.iterations=5
run 1 as_trained "${refined[@]}" --mode=evaluate --model=refined/model --set=evaluation.iterations=3
expect_same 'evaluation.iterations: 3' "$(last_eval refined)" "$(last_eval as_trained)"
[[ -n $(last_eval longer) && $(last_eval longer) != "$(last_eval refined)" ]] || fail 'evaluation.iterations changes nothing'
expect_mistake 1 'evaluation.iterations: 5: a training run' --set=evaluation.iterations=5
expect_mistake 1 'evaluation.iterations: 5; expected 0, as the model does not apply its blocks repeatedly' --mode=evaluate --model=one/model \
  --set=model.kind=MLP --set=evaluation.iterations=5
expect_mistake 1 'model.iterations: 3; expected 1' "${refined[@]}" --mode=theory --model=refined/model
expect_mistake 1 'which --mode=projection is about' --mode=projection --model=one/model \
  --set=model.kind=MLP

# A machine is measured, and the messages and bytes that are predicted with it are those of a step.
run 3 machine --mode=calibrate
describe=("$trainer" --experiment=tiny.textproto --set=data.path=data --mode=describe --machine=machine/machine.textproto)
"${describe[@]}" --ranks=3 --ranks_per_host=3 >prediction.json || fail 'no prediction'
run 3 step --set=training.max_steps=1
# trained FIELD RUN: its sum over the phases of the steps.  predicted FIELD FILE
trained() {
  awk -F'[:,]' -v field="\"$1\"" '/"work"/ { training = /"training"/ }
    training && $1 ~ field { sum += $2 }
    END { print sum }' "$2/summary.json"
}
predicted() { sed --quiet "s/^ *\"$1\": \([0-9]*\),*/\1/p" "$2"; }
for count in all_messages_sent all_bytes_sent rank0_messages_sent rank0_bytes_sent; do
  expect_same "predicted $count" "$(trained "$count" step)" "$(predicted "$count" prediction.json)"
done
# Likewise of hosts that unite what their ranks send.
mkdir hosts
{ cat machine/machine.textproto && echo 'other_host { latency_s: 1e-5 bytes_per_s: 1e9 }'; } >hosts/machine.textproto
"${describe[@]}" --machine=hosts/machine.textproto --ranks=4 --ranks_per_host=2 --set=parallel.by_host=true \
  >by_host.json || fail 'no prediction by host'
cat >on_hosts <<RANK
#!/usr/bin/env bash
ELASTOR_HOST=host\$((OMPI_COMM_WORLD_RANK / 2)) exec "$trainer" "\$@"
RANK
chmod +x on_hosts
trainer=./on_hosts run 4 by_host --set=training.max_steps=1 --set=parallel.by_host=true
for count in all_messages_sent all_bytes_sent messages_between_hosts bytes_between_hosts; do
  expect_same "predicted $count by host" "$(trained "$count" by_host)" "$(predicted "$count" by_host.json)"
done
grep --quiet '"warnings": \[\]' prediction.json || fail 'a warning about a machine of the same experiment'
"${describe[@]}" --ranks=3 --ranks_per_host=3 --set=optimizer.dense=SGD | grep --quiet 'measured with dense ADAM' ||
  fail 'no warning about another optimizer'
((${#isas[@]} < 2)) || ELASTOR_ISA=${isas[0]} "${describe[@]}" | grep --quiet 'and this process has' ||
  fail 'no warning about another instruction set'
"${describe[@]}" --ranks=4 --ranks_per_host=4 --scaling --output_dir=scaling | grep --quiet '^      4 ' || fail 'no scaling'
grep --quiet 'weak scaling' scaling/scaling.svg || fail 'no picture of scaling'
"${describe[@]}" --ranks=2 --ranks_per_host=2 --advise >advice.json || fail 'no advice'
for setting in '"advice": {' '"tried": \[' '"threads": 2' '"threads": 1' '"plan": "REPLICATED"'; do
  grep --quiet "$setting" advice.json || fail "no $setting in the advice: $(<advice.json)"
done
expect_line 2 'no other_host; 3 ranks need 3 hosts' "${describe[@]}" --ranks=3 --ranks_per_host=1
expect_line 2 '16 cannot be spread over 32 ranks' "${describe[@]}" --ranks=32
expect_line 2 'nowhere: open: No such file' "${describe[@]}" --machine=nowhere
expect_line 2 'has no field named' "${describe[@]}" --machine=tiny.textproto
expect_line 2 '--scaling: is of a prediction' "${describe[@]}" --machine= --scaling
expect_line 2 '--scaling and --advise: expected one of them' "${describe[@]}" --scaling --advise
expect_line 2 '--advise: is of a prediction' "${describe[@]}" --machine= --advise
expect_mistake 1 '--machine: only --mode=describe predicts' --machine=machine/machine.textproto
expect_line 2 "holds 'machine.textproto'" "$trainer" --experiment=tiny.textproto --set=data.path=data --mode=calibrate --output_dir=machine

# Plan PLANNED by that machine: the same bits. The run keeps the machine; one that goes on may have another.
planned=(--set=parallel.plan=PLANNED --set=parallel.machine)
run 3 planned "${planned[@]}=machine/machine.textproto" --set=training.max_steps=9
sed 's/^name: .*/name: "other"/' machine/machine.textproto >other.textproto
run 2 planned "${planned[@]}=other.textproto" --resume
expect_same 'PLANNED: digest' "$(digest_of one)" "$(digest_of planned)"
grep --quiet "^predicted step on machine 'other': [0-9.]* ms" planned/plan.txt || fail 'plan.txt has no prediction'
grep --quiet '^  ROW_WISE: [0-9.]* ms' planned/plan.txt || fail 'plan.txt has no simple plan'
expect_same 'the kept machine' "$(<other.textproto)" "$(<planned/machine.textproto)"
"$trainer" --experiment=tiny.textproto --set=data.path=data --mode=describe --ranks=2 --ranks_per_host=2 "${planned[@]}=other.textproto" |
  grep --quiet '"PLANNED": ' || fail 'PLANNED is not predicted'
expect_mistake 3 'parallel.machine: empty; expected the file' --set=parallel.plan=PLANNED
expect_mistake 3 'parallel.machine: nowhere: open: No such file' "${planned[@]}=nowhere"
grep --invert-match memory_bytes other.textproto >slow.textproto
expect_mistake 3 'slow.textproto: memory_bytes_per_s: 0; expected a positive number' "${planned[@]}=slow.textproto"

# Rows that training never met come from the seed; another seed is another model.
expect_mistake 3 'training.seed: 4; expected 3' --mode=evaluate --model=one/model --set=training.seed=4
expect_mistake 1 'model.rank_elastor.token_width: 12; expected 8, as in one/model/manifest.json' \
  --mode=evaluate --model=one/model --set=model.token_width=12
expect_mistake 1 'nowhere/manifest.json: open: No such file' --mode=evaluate --model=nowhere
expect_mistake 1 '--model: missing' --mode=predict
expect_mistake 1 '--model=one/model: --mode=train reads no model' --model=one/model
printf 'x' >>one/model/embedding-00000-of-00001.safetensors
expect_mistake 1 'embedding-00000-of-00001.safetensors: has' --mode=predict --model=one/model

exit "$((failures > 0))"
