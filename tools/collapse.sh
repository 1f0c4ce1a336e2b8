#!/usr/bin/env bash
# Figures 1, 2, 5 and 6 of the RankElastor paper on prepared Criteo or Avazu rows: trains RankElastor and
# RankMixer, one epoch in file order, and measures the effective ranks of every validation row before the
# first step and after the last. From the top of the repository:
#   tools/collapse.sh criteo|avazu DATA OUTPUT_DIR [SEEDS [SHAPES]]
# SEEDS: how many, from 1 on (10).
# SHAPES: what both models are equal in. weights (the default): budgets of parameters, at the T and D of each
#     model's configuration. tokens: T 13, D 26 on Criteo, T 12, D 24 on Avazu, and RankMixer's P-FFN of width
#     D as in the paper. both: these T and D, and a P-FFN of width 11 D for as many weights.
# The table is printed, pictures and CSV are in OUTPUT_DIR/report and the ranks of every row in
# OUTPUT_DIR/MODEL-SEED-spectra. What was done before is not done again. ELASTOR_PROGRAMS: where the programs
# are; default: bazel-bin.
set -euo pipefail
if [[ $# -lt 3 || " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
name=$1 data=$2 output=$3 seeds=${4:-10} shapes=${5:-weights}
source tools/environment.sh
programs=${ELASTOR_PROGRAMS:-bazel-bin}
trainer=$programs/trainer/trainer
report=$programs/launcher/spectra_report/spectra_report
common=(--set=data.path="$data" --set=data.order=FILE_ORDER --set=training.epochs=1
  --set=optimizer.sparse=LAZY_ADAM --set=optimizer.embedding_l2=0 --set=checkpoint.disabled=true
  --set=spectrum.samples=1000000000 --set=spectrum.every_steps=1000000 --set=spectrum.at_start=true)
# The paper's text for both models. RankMixer's T divides D, and its expansion makes up for the parameters
# that RankElastor has in its mixing.
mixer=(--set=model.rank_mixer.convention=PAPER --set=model.dropout=0
  --set=model.rank_mixer.tokenizer.kind=GROUPED --set=model.rank_mixer.tokenizer.hidden=0)
case $name in
  criteo) batch=1024 tokens=13 width=26 ;;
  avazu) batch=256 tokens=12 width=24 ;;
esac
case $name:$shapes in
  criteo:weights) expansion=7 ;; # T = D = 26
  avazu:weights) expansion=2 ;;  # T = 24, D = 48
  *:tokens) expansion=1 ;;
  *:both) expansion=11 ;;
  *) echo "collapse: $name $shapes: expected criteo or avazu, and weights, tokens or both" >&2; exit 2 ;;
esac
common+=(--set=training.batch_size="$batch")
[[ $shapes == weights ]] || common+=(--set=model.tokens="$tokens" --set=model.token_width="$width")
mixer+=(--set=model.rank_mixer.feed_forward.expansion="$expansion")
runs=()
for seed in $(seq "$seeds"); do
  for model in rank_elastor rank_mixer; do
    run=$output/$model-$seed
    runs+=("$run")
    [[ -e $run/summary.json ]] && continue
    flags=(--experiment=configs/"$name"/$model.textproto "${common[@]}" --set=training.seed="$seed")
    [[ $model == rank_mixer ]] && flags+=("${mixer[@]}")
    rm -rf "$run"
    "$trainer" "${flags[@]}" --output_dir="$run" >/dev/null
  done
done
for run in "${runs[@]}"; do
  [[ -e $run-spectra/summary.json ]] && continue
  rm -rf "$run-spectra"
  "$trainer" --experiment="$run/experiment.textproto" --mode=spectra --per_sample --model="$run/model" \
    --output_dir="$run-spectra" >/dev/null
done
"$report" "${runs[@]}" --output_dir="$output/report"
