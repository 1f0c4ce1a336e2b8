#!/usr/bin/env bash
# What the protection of a step costs that a run can do without: the watchdog, and the noting of touched rows
# that deltas need. Samples/s of runs in turn without and with it.
#
#   tools/protection_cost.sh OUTPUT [PAIRS [RANKS [TRAINER_ARGUMENT ...]]]
#
# OUTPUT is a new folder; 30 pairs on 2 ranks when left out. Without arguments of the trainer it is the quickstart's
# model and data. Prints each pair's ratio of samples/s, with to without, and of all the median, its 95 % interval (by
# the order of the pairs alone) and the extremes.
# ELASTOR_PROGRAMS: where the programs are; default: bazel-bin. ELASTOR_STEPS: of a run; default: 1000.
set -euo pipefail
if [[ $# -lt 1 || " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
output=$1 pairs=${2:-30} ranks=${3:-2}
shift $(($# < 3 ? $# : 3))
cd "$(dirname "$0")/.."
source tools/environment.sh
programs=${ELASTOR_PROGRAMS:-bazel-bin}
mkdir -p "$output"
arguments=("$@")
if [[ $# -eq 0 ]]; then
  "$programs/trainer/prepare/prepare" --schema=configs/quickstart_schema.textproto --output_dir="$output/data" >&2
  arguments=(--experiment=configs/quickstart.textproto --set=data.path="$output/data")
fi
arguments+=(--set=training.epochs=1000000 --set=training.eval_every_steps=1000000 --set=spectrum.disabled=true)
without=(--set=parallel.watchdog_seconds=0)
with=(--set=parallel.watchdog_seconds=60 --set=checkpoint.delta_every_steps=1000000)

# rate SETTING...: samples/s of a run.
rate() {
  rm --recursive --force "$output/run"
  mpirun --mca orte_execute_quiet 1 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np "$ranks" "$programs/trainer/trainer" \
    "${arguments[@]}" --set=training.max_steps="${ELASTOR_STEPS:-1000}" "$@" --output_dir="$output/run" >"$output/log" 2>&1 ||
    { cat "$output/log" >&2; exit 1; }
  sed --quiet 's/^ *"samples_per_s": \([0-9.e+]*\),*$/\1/p' "$output/run/summary.json"
}
for ((pair = 1; pair <= pairs; ++pair)); do
  # Neither is always the first of a pair.
  if ((pair % 2)); then
    plain=$(rate "${without[@]}")
    guarded=$(rate "${with[@]}")
  else
    guarded=$(rate "${with[@]}")
    plain=$(rate "${without[@]}")
  fi
  awk -v with="$guarded" -v without="$plain" 'BEGIN { printf "%.4f\n", with / without }' | tee --append "$output/ratios"
done
# The k-th smallest and the k-th largest hold the median with 95 %: k is where the binomial law has 2.5 % below.
sort --numeric-sort "$output/ratios" | awk '
  { ratio[NR] = $1 }
  END {
    chance = below = exp(-NR * log(2))
    for (k = 0; k < NR / 2 && below <= 0.025; ++k) { chance *= (NR - k) / (k + 1); below += chance }
    median = (ratio[int((NR + 1) / 2)] + ratio[int(NR / 2) + 1]) / 2
    printf "pairs=%d samples/s with to without: median %.4f", NR, median
    if (k > 0) printf ", 95 %% interval %.4f to %.4f", ratio[k], ratio[NR + 1 - k]
    printf ", extremes %.4f and %.4f\n", ratio[1], ratio[NR]
  }'
