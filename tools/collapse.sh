#!/usr/bin/env bash
# Figures 1, 2, 5 and 6 of the RankElastor paper on prepared Criteo or Avazu rows: trains RankElastor and
# RankMixer with equal budgets of parameters, one epoch in file order, and measures the effective ranks of
# every validation row before the first step and after the last. From the top of the repository:
#   tools/collapse.sh criteo|avazu DATA OUTPUT_DIR [SEEDS]
# SEEDS: how many, from 1 on (10). The table is printed, pictures and CSV are in OUTPUT_DIR/report and
# OUTPUT_DIR/MODEL-1-spectra. What was done before is not done again. ELASTOR_PROGRAMS: where the programs
# are; default: bazel-bin.
set -euo pipefail
if [[ $# -lt 3 || " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
name=$1 data=$2 output=$3 seeds=${4:-10}
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
  criteo)
    common+=(--set=training.batch_size=1024)
    mixer+=(--set=model.rank_mixer.feed_forward.expansion=7) # T = D = 26
    ;;
  avazu)
    common+=(--set=training.batch_size=256)
    mixer+=(--set=model.rank_mixer.feed_forward.expansion=2) # T = 24, D = 48
    ;;
esac
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
for model in rank_elastor rank_mixer; do
  [[ -e $output/$model-1-spectra/summary.json ]] && continue
  rm -rf "$output/$model-1-spectra"
  "$trainer" --experiment="$output/$model-1/experiment.textproto" --mode=spectra \
    --model="$output/$model-1/model" --output_dir="$output/$model-1-spectra" >/dev/null
done
"$report" "${runs[@]}" --output_dir="$output/report"
