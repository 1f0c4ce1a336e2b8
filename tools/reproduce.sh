#!/usr/bin/env bash
# The tables and figures of the three papers, as far as the data are there. docs/results/reproduce.md says
# what each is, what the paper has and what came out. From the top of the repository:
#
#   tools/reproduce.sh [NAME...] [--data=runs/data] [--output=runs/reproduce] [-- FLAG...]
#
# NAME: all (the default; not bytes), or some of
#   planted   full mixing against block transpose on rows that tell them apart; needs no data
#   table2    all models on Criteo and Avazu
#   table3    full mixing and the gated P-FFN, each taken away
#   options   one choice of RankElastor changed at a time: block mixing, gates, expansion, norms, ...
#   figures   figures 1, 2, 5 and 6: effective ranks stage by stage, ten seeds
#   equal_tokens    the same at equal T and D, with the paper's RankMixer and with one of as many weights
#   figure4   seconds an epoch, samples a second, memory, weights and multiply-adds of all models
#   theory    the paper's theorems on random, initial and trained representations (--mode=theory)
#   frappe    the published recipes on Frappe, five seeds
#   heads     the note on output heads: head swap over iterations and blocks, projections, probes
#   matrix_thinker  its language model's three runs, matched
#   bytes     the note author's byte model on two texts, by name only: some 7 hours of one core
#   conditioning    condition numbers of gated networks: figures 2, 4, 5 and 6 and the claims
#   gates     kernels of trained CTR models, gated against plain, and figure 7 on CTR data
#   images    figures 3 and 7 to 12: ViT and MLP-Mixer on images, a transformer on text
#   gaps      figures 7 to 12 without kernels: generalisation gaps on CTR data (Adam, AdamW, SGD), images
#             (AdamW, SGD) and text
#   scaling   figures 7 and 8: width, depth and both, on planted rows and on Criteo, with fitted laws
# --data: has the prepared sets criteo, avazu, frappe, anarchism, shakespeare, fashion_mnist and text (of 16
#     pages of anarchism) as folders. What is missing is named with the command that makes it, and left out; the
#     exit code is then 2.
# FLAG: for the launcher: --set=axis.training.seed=1,2,3, --set=base.training.batch_size=4096
#
# The same command again goes on where it was. ELASTOR_PROGRAMS: where the programs are; default:
# bazel-bin, built first.
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
all=(planted table2 table3 options figures equal_tokens figure4 theory frappe heads matrix_thinker
  conditioning gates images gaps scaling)
names=() flags=()
data=runs/data output=runs/reproduce
while [[ $# -gt 0 ]]; do
  case $1 in
    --data=*) data=${1#*=} ;;
    --output=*) output=${1#*=} ;;
    --) shift; flags=("$@"); break ;;
    all) names+=("${all[@]}") ;;
    bytes) names+=(bytes) ;;
    *)
      [[ " ${all[*]} " == *" $1 "* ]] ||
        { echo "reproduce: $1: expected all, ${all[*]}, bytes, --data or --output" >&2; exit 2; }
      names+=("$1")
      ;;
  esac
  shift
done
[[ ${#names[@]} -gt 0 ]] || names=("${all[@]}")
if [[ -z ${ELASTOR_PROGRAMS:-} ]]; then
  source tools/environment.sh
  bazel build //launcher:launcher //launcher/comparison //launcher/conditioning //launcher/scaling_law \
    //launcher/spectra_report //trainer:trainer //trainer/prepare:prepare
fi
export ELASTOR_PROGRAMS=${ELASTOR_PROGRAMS:-bazel-bin}
mkdir -p "$output"
missing=0

# has SET INPUT [SCHEMA]: whether it is prepared.
has() {
  [[ -e $data/$1/meta.json ]] && return
  echo "reproduce: $data/$1 is missing; make it: $ELASTOR_PROGRAMS/trainer/prepare/prepare" \
    "--schema=configs/${3:-$1/schema}.textproto $2 --output_dir=$data/$1" >&2
  missing=2
  return 1
}
has_criteo() { has criteo --input=train.txt; }
has_avazu() { has avazu --input=train.csv; }
has_frappe() {
  has frappe '--input=train.libsvm --validation_input=valid.libsvm --test_input=test.libsvm'
}
has_images() {
  has fashion_mnist '--input=IMAGES,LABELS --test_input=IMAGES,LABELS' images/fashion_mnist_schema
}
# has_text SET [SCHEMA]
has_text() { has "$1" --input=PAGE,PAGE,... "matrix_thinker/${2:-anarchism}_schema"; }

# launch SWEEP SET OUTPUT FLAG...
launch() {
  local sweep=$1 set=$2 folder=$3
  shift 3
  "$ELASTOR_PROGRAMS/launcher/launcher" --trainer="$ELASTOR_PROGRAMS/trainer/trainer" \
    --sweep="$sweep" --set=base.data.path="$set" --output_dir="$folder" "$@"
}

# compared SWEEP SET FLAG...: tunes, trains and compares, the latter with the flags.
compared() {
  local sweep=$1 set=$2 folder=$output/$1
  shift 2
  echo "== $sweep"
  launch "configs/sweeps/$sweep.textproto" "$set" "$folder" "${flags[@]}"
  "$ELASTOR_PROGRAMS/launcher/comparison/comparison" "$folder" "$@" \
    --markdown="$folder/comparison.md" --csv="$folder/comparison.csv"
}

make_planted() {
  [[ -e $data/planted/meta.json ]] ||
    "$ELASTOR_PROGRAMS/trainer/prepare/prepare" --output_dir="$data/planted" \
      --schema=configs/planted/coordinate_mixing_schema.textproto
}

planted() {
  make_planted
  compared planted_mixing "$data/planted"
}

table2() {
  if has_criteo; then compared table2_criteo "$data/criteo"; fi
  if has_avazu; then compared table2_avazu "$data/avazu"; fi
}

table3() {
  if has_criteo; then compared table3_criteo "$data/criteo"; fi
  if has_avazu; then compared table3_avazu "$data/avazu"; fi
}

options() {
  if has_criteo; then compared options_criteo "$data/criteo" --against=RankElastor; fi
  if has_avazu; then compared options_avazu "$data/avazu" --against=RankElastor; fi
}

figures() {
  if has_criteo; then tools/collapse.sh criteo "$data/criteo" "$output/figures_criteo"; fi
  if has_avazu; then tools/collapse.sh avazu "$data/avazu" "$output/figures_avazu"; fi
}

equal_tokens() {
  local shapes
  for shapes in tokens both; do
    if has_criteo; then
      tools/collapse.sh criteo "$data/criteo" "$output/figures_criteo_$shapes" 10 $shapes
    fi
    if has_avazu; then
      tools/collapse.sh avazu "$data/avazu" "$output/figures_avazu_$shapes" 10 $shapes
    fi
  done
}

# One run a model, one after the other, and its costs from the launcher's table.
figure4() {
  has_criteo || return 0
  local cores
  cores=$(taskset --cpu-list --pid $$ | sed 's/.*[:,-] *//')
  sed '/^tuning {/,/^}/d; /"training.seed"/d; /^predictions/d' configs/sweeps/table2_criteo.textproto \
    >"$output/figure4.textproto"
  (
    taskset --cpu-list --pid "$cores" "$BASHPID" >/dev/null
    launch "$output/figure4.textproto" "$data/criteo" "$output/figure4"
  )
  awk -F, '
    NR == 1 {
      for (i = 1; i <= NF; ++i) column[$i] = i
      print "| model | dense parameters | multiply-adds | samples/s | seconds an epoch | peak memory |"
      print "|---|---|---|---|---|---|"
      next
    }
    {
      printf "| %s | %d | %d | %d | %.2f | %.0f MiB |\n", $column["model"], $column["dense_parameters"],
        $column["multiply_adds"], $column["samples_per_s"],
        $column["samples"] / $column["samples_per_s"], $column["peak_memory_bytes"] / 1048576
    }' <(sed 's/"[^"]*"//g' "$output/figure4/runs.csv") | tee "$output/figure4.md"
}

# As docs/results/reproduce_theory.md has it; what is there is not done again.
theory() {
  has_criteo || return 0
  local model kind run
  for model in RANK_MIXER RANK_ELASTOR; do
    kind=GATED
    [[ $model == RANK_MIXER ]] && kind=TWO_LAYER
    run=$output/theory_$model
    [[ -e $run/summary.json ]] ||
      "$ELASTOR_PROGRAMS/trainer/trainer" --flagfile=configs/scale.flags --set=data.path="$data/criteo" \
        --set=model.kind=$model --set=model.tokens=13 --set=model.feed_forward.kind=$kind --output_dir="$run"
    [[ -e $run.table/summary.json ]] ||
      "$ELASTOR_PROGRAMS/trainer/trainer" --mode=theory --experiment="$run/experiment.textproto" \
        --model="$run/model" --output_dir="$run.table"
  done
}

# Published recipes are not tuned again.
frappe() {
  has_frappe || return 0
  local config model runs=()
  for config in configs/frappe/*.textproto; do
    model=$(basename "$config" .textproto)
    [[ $model == *schema ]] && continue
    {
      echo "base_file: \"$config\""
      echo "set: \"name=$model\" set: \"spectrum.disabled=true\" predictions: \"test\""
      echo 'axis { field: "training.seed" values: "1" values: "2" values: "3" values: "4" values: "5" }'
    } >"$output/frappe_$model.textproto"
    launch "$output/frappe_$model.textproto" "$data/frappe" "$output/frappe_$model"
    runs+=("$output/frappe_$model"/runs/*)
  done
  "$ELASTOR_PROGRAMS/launcher/comparison/comparison" "${runs[@]}" --markdown="$output/frappe.md" \
    --csv="$output/frappe.csv"
}

# ranked SWEEP SET: trains, and puts the effective ranks of all runs together.
ranked() {
  local folder=$output/$1
  echo "== $1"
  launch "configs/sweeps/$1.textproto" "$2" "$folder" "${flags[@]}"
  "$ELASTOR_PROGRAMS/launcher/spectra_report/spectra_report" "$folder"/runs/* \
    --output_dir="$folder/ranks" >"$folder/ranks.txt"
}

heads() {
  has_criteo || return 0
  local run cut
  ranked heads_iterations "$data/criteo"
  ranked heads_blocks "$data/criteo"
  ranked heads_probes "$data/criteo"
  for run in "$output"/heads_iterations/runs/*; do
    cut=$output/heads_projections/$(basename "$run")
    [[ -e $cut/summary.json ]] ||
      "$ELASTOR_PROGRAMS/trainer/trainer" --mode=projection --split=test --model="$run/model" \
        --experiment="$run/experiment.textproto" --output_dir="$cut" >/dev/null
  done
  "$ELASTOR_PROGRAMS/launcher/spectra_report/spectra_report" "$output"/heads_projections/* \
    --output_dir="$output/heads_projections.report"
}

matrix_thinker() {
  if has_text anarchism; then ranked matrix_thinker "$data/anarchism"; fi
}

bytes() {
  local set
  echo 'name: "bytes" base_file: "configs/matrix_thinker/author.textproto"' >"$output/bytes.textproto"
  for set in anarchism shakespeare; do
    if has_text $set $set; then
      launch "$output/bytes.textproto" "$data/$set" "$output/bytes_$set" "${flags[@]}"
    fi
  done
}

conditioning() {
  local images=()
  if has_images; then images=(--images="$data/fashion_mnist"); fi
  "$ELASTOR_PROGRAMS/launcher/conditioning/conditioning" --seeds=5 "${images[@]}" \
    "$output/conditioning"
}

gates() {
  has_criteo || return 0
  tools/compare_gates.sh --data="$data/criteo" --output="$output/gates"
  launch configs/sweeps/gated_ctr.textproto "$data/criteo" "$output/gated_ctr" "${flags[@]}"
}

images() {
  local sweep
  if has_images; then
    for sweep in images_vit images_mixer; do
      launch configs/sweeps/$sweep.textproto "$data/fashion_mnist" "$output/$sweep" "${flags[@]}"
    done
  fi
  if has_text text; then
    launch configs/sweeps/gated_transformer.textproto "$data/text" "$output/gated_transformer" \
      "${flags[@]}"
  fi
}

# gap SWEEP SET FOLDER FLAG...: a sweep of arms without kernels.
gap() {
  launch "configs/sweeps/$1.textproto" "$data/$2" "$output/gaps_$3" \
    --set=base.spectrum.disabled=true "${@:4}" "${flags[@]}"
}

gaps() {
  local sweep sgd=(--set=base.optimizer.dense=SGD --set=base.optimizer.learning_rate=0.1)
  if has_criteo; then
    gap gated_ctr criteo criteo
    gap gated_ctr criteo criteo_adamw --set=base.optimizer.decoupled_decay=0.1
    gap gated_ctr criteo criteo_sgd "${sgd[@]}" --set=base.optimizer.sparse=SPARSE_SGD
  fi
  if has_avazu; then
    gap gated_ctr avazu avazu --set=base.training.batch_size=256 --set=base.training.eval_every_steps=18 \
      --set=gap_test.from_step=36
  fi
  if has_images; then
    for sweep in images_vit images_mixer; do
      gap $sweep fashion_mnist $sweep
      gap $sweep fashion_mnist ${sweep}_sgd "${sgd[@]}" --set=base.optimizer.decoupled_decay=0
    done
  fi
  if has_text text; then gap gated_transformer text text; fi
}

# laws SET: of width, depth and both, for each model, compared with each other.
laws() {
  local metric shape points=$output/scaling_$1
  for metric in logloss auc; do
    for shape in width depth joint; do
      sed 's/"[^"]*"//g' "$output/scaling_$1_$shape/runs.csv" | awk -F, -v metric=$metric '
        NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i }
        $column["stage"] == "final" && $column["state"] == "done" {
          print $column["name"] "," $column["training.seed"] "," $column["dense_parameters"] "," $column[metric]
        }'
    done | { echo "model,seed,dense_parameters,$metric"; cat; } >"$points.$metric.csv"
    "$ELASTOR_PROGRAMS/launcher/scaling_law/scaling_law" --points="$points.$metric.csv" --metric=$metric \
      --comparisons=3 --replicates=10000 --json="$points.$metric.json" | tee "$points.$metric.txt"
  done
}

scaling() {
  local shape wide=() criteo=(--set=base.model.tokens=13 --set=base.model.token_width=13
    --set=base.embedding.width=16 --set=base.training.batch_size=1024 --set=base.training.epochs=1)
  make_planted
  for shape in width depth joint; do
    launch configs/sweeps/scaling_$shape.textproto "$data/planted" "$output/scaling_planted_$shape" "${flags[@]}"
  done
  laws planted
  has_criteo || return 0
  for shape in width depth joint; do
    # Full mixing has a larger part of the weights here.
    [[ $shape != width ]] || wide=(--set=axis.model.feed_forward.expansion=1,2,6,16,36,110)
    launch configs/sweeps/scaling_$shape.textproto "$data/criteo" "$output/scaling_criteo_$shape" \
      "${criteo[@]}" "${wide[@]}" "${flags[@]}"
    wide=()
  done
  laws criteo
}

for name in "${names[@]}"; do "$name"; done
exit "$missing"
