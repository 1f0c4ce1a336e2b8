#!/usr/bin/env bash
# Trains RankElastor, RankMixer and MLP on one prepared data set, five seeds each, one epoch in file
# order, and compares their validation AUC by paired bootstrap. From the top of the repository:
#   tools/compare_models.sh DATA OUTPUT_DIR
# Needs python3 with numpy for the last step.
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
data=$1
output=$2
source tools/environment.sh
bin=bazel-bin/trainer/trainer
common=(--set=data.path="$data" --set=data.order=FILE_ORDER --set=training.batch_size=1024
  --set=training.epochs=1 --set=optimizer.sparse=LAZY_ADAM --set=optimizer.learning_rate=1e-3
  --set=optimizer.embedding_l2=0 --set=embedding.width=20 --set=model.dropout=0
  --set=spectrum.disabled=true)
for model in rank_elastor rank_mixer mlp; do
  for seed in 1 2 3 4 5; do
    run=$output/$model-$seed
    flags=(--experiment=configs/criteo/$model.textproto "${common[@]}" --set=training.seed=$seed)
    "$bin" "${flags[@]}" --output_dir="$run" >/dev/null
    "$bin" "${flags[@]}" --mode=predict --split=validation --model="$run/model" \
      --output_dir="$run-predictions" >/dev/null
  done
done
python3 tools/paired_bootstrap.py "$output" rank_elastor rank_mixer mlp
