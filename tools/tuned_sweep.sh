#!/usr/bin/env bash
# Trains and compares the models of a sweep, each tuned with the same budget: every point of its axis
# "model" is tried with every combination of the tuned fields on seed 0, the one with the lowest
# validation logloss is trained with seeds 1 to N, and their predictions of the test split are
# compared. From the top of the repository, once the programs are built:
#
#   tools/tuned_sweep.sh SWEEP DATA OUTPUT_DIR [--seeds=10] [--tune=FIELD=VALUE,VALUE...]...
#       [--set=base.path.to.field=value]... [--against=MODEL]
#
# --tune: default optimizer.learning_rate=2.5e-4,5e-4,1e-3,2e-3,4e-3 and model.dropout=0,0.1.
# --set: for the launcher, in trials and runs.   --against: for comparison.
#
# OUTPUT_DIR gets trials/ and tuned/ (folders of the launcher), trials.csv (every trial, which one was
# chosen and whether that lies at the edge of its grid), tuned.textproto (the sweep with the chosen
# values), comparison.md and comparison.csv. The same command again goes on where it was.
# ELASTOR_PROGRAMS: where the programs are; default: bazel-bin.
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
[[ $# -ge 3 ]] || { echo 'tuned_sweep: expected SWEEP DATA OUTPUT_DIR' >&2; exit 2; }
programs=${ELASTOR_PROGRAMS:-bazel-bin}
sweep=$1 data=$2 output=$3
shift 3
seeds=10
tuned=() sets=() against=()
for argument in "$@"; do
  case $argument in
    --seeds=*) seeds=${argument#*=} ;;
    --tune=*) tuned+=("${argument#*=}") ;;
    --set=*) sets+=("$argument") ;;
    --against=*) against=("$argument") ;;
    *) echo "tuned_sweep: $argument: expected --seeds, --tune, --set or --against" >&2; exit 2 ;;
  esac
done
[[ ${#tuned[@]} -gt 0 ]] ||
  tuned=(optimizer.learning_rate=2.5e-4,5e-4,1e-3,2e-3,4e-3 model.dropout=0,0.1)
mkdir -p "$output"

# axis FIELD VALUE...
axis() {
  local field=$1
  shift
  echo "axis { field: \"$field\"$(printf ' values: "%s"' "$@") }"
}

# train NAME: the sweep OUTPUT_DIR/NAME.textproto into OUTPUT_DIR/NAME.
train() {
  "$programs/launcher/launcher" --trainer="$programs/trainer/trainer" \
    --sweep="$output/$1.textproto" --set=base.data.path="$data" "${sets[@]}" \
    --output_dir="$output/$1"
}

fields=()
{
  cat "$sweep"
  for each in "${tuned[@]}"; do
    IFS=, read -ra values <<<"${each#*=}"
    axis "${each%%=*}" "${values[@]}"
  done
  axis training.seed 0
} >"$output/trials.textproto"
for each in "${tuned[@]}"; do fields+=("${each%%=*}"); done
# A trial that diverges is one that is not chosen.
train trials || [[ $? -eq 4 ]]

# A line a trial: the model, the tuned values, AUC and logloss; the best of each model chosen, the
# first of equal ones. Values in quotes are lists that nothing here is about.
awk -F, -v fields="${fields[*]}" -v grids="${tuned[*]}" '
  NR == 1 {
    for (i = 1; i <= NF; ++i) column[$i] = i
    count = split(fields, field, " ")
    split(grids, grid, " ")
    for (k = 1; k <= count; ++k) {
      values = split(substr(grid[k], length(field[k]) + 2), value, ",")
      first[k] = value[1]
      last[k] = value[values]
      sizes[k] = values
    }
    next
  }
  {
    lines = NR - 1
    model[lines] = $column["model"]
    for (k = 1; k <= count; ++k) tuned[lines, k] = $column[field[k]]
    auc[lines] = $column["auc"]
    logloss[lines] = $column["logloss"]
    if (logloss[lines] == "") next
    if (!(model[lines] in best) || logloss[lines] + 0 < logloss[best[model[lines]]] + 0) {
      best[model[lines]] = lines
    }
  }
  END {
    line = "model"
    for (k = 1; k <= count; ++k) line = line "," field[k]
    print line ",validation_auc,validation_logloss,chosen"
    for (i = 1; i <= lines; ++i) {
      line = model[i]
      chosen = i == best[model[i]] ? "yes" : ""
      for (k = 1; k <= count; ++k) {
        line = line "," tuned[i, k]
        if (chosen && sizes[k] > 2 && (tuned[i, k] == first[k] || tuned[i, k] == last[k])) {
          chosen = "yes (edge)"
        }
      }
      print line "," auc[i] "," logloss[i] "," chosen
    }
  }' <(sed 's/"[^"]*"//g' "$output/trials/runs.csv") >"$output/trials.csv"

# The chosen values beside every label of the axis "model".
awk -F, '
  NR == 1 { for (i = 2; i <= NF - 3; ++i) field[i] = $i; next }
  $NF != "" {
    sets = ""
    for (i = 2; i <= NF - 3; ++i) sets = sets " set: \"" field[i] "=" $i "\""
    printf "s|label: \"%s\"|&%s|\n", $1, sets
  }' "$output/trials.csv" >"$output/tuned.sed"
{
  sed --file="$output/tuned.sed" "$sweep"
  axis training.seed $(seq 1 "$seeds")
  echo 'predictions: "test"'
} >"$output/tuned.textproto"
rm "$output/tuned.sed"
train tuned

mapfile -t runs < <(tail --lines=+2 "$output/tuned/runs.csv" | cut --delimiter=, --fields=1)
"$programs/launcher/comparison/comparison" "${runs[@]/#/$output/tuned/runs/}" "${against[@]}" \
  --markdown="$output/comparison.md" --csv="$output/comparison.csv"
