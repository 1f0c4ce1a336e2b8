#!/usr/bin/env bash
# A long training run that is watched: resident memory, descriptors and threads of every rank, and the time of
# a step, all of which must stay as they are. It evaluates, measures spectra and writes checkpoints as it goes.
#
#   tools/soak.sh OUTPUT MINUTES [RANKS [TRAINER_ARGUMENT ...]]
#
# OUTPUT is a new folder; RANKS are 2 when left out. Without arguments of the trainer it is the quickstart's
# model and data, for ever. Prints of each figure the mean of the first and of the last quarter of the
# time and the least-squares slope in an hour, from OUTPUT/samples.tsv; ends with the trainer's exit code.
# ELASTOR_PROGRAMS: where the programs are; default: bazel-bin.
set -euo pipefail
if [[ $# -lt 2 || " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
output=$1 minutes=$2 ranks=${3:-2}
shift $(($# < 3 ? $# : 3))
cd "$(dirname "$0")/.."
source tools/environment.sh
programs=${ELASTOR_PROGRAMS:-bazel-bin}
mkdir -p "$output"
arguments=("$@")
if [[ $# -eq 0 ]]; then
  "$programs/trainer/prepare/prepare" --schema=configs/quickstart_schema.textproto --output_dir="$output/data" >&2
  arguments=(--experiment=configs/quickstart.textproto --set=data.path="$output/data"
    --set=training.epochs=1000000 --set=training.eval_every_steps=500 --set=spectrum.every_steps=1000
    --set=checkpoint.every_steps=200 --tensorboard)
fi
mpirun -q --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np "$ranks" "$programs/trainer/trainer" \
  "${arguments[@]}" --output_dir="$output/run" >"$output/log" 2>&1 &
job=$!
trap 'kill -KILL $job 2>/dev/null || true' EXIT

end=$((SECONDS + 60 * minutes))
until [[ -s $output/run/metrics.jsonl ]]; do
  kill -0 $job || { cat "$output/log" >&2; exit 1; }
  sleep 0.2
done
mapfile -t processes < <(pgrep --full --parent $job -- "--output_dir=$output/run")
printf 'seconds\trank\tanonymous_kb\tfile_kb\tdescriptors\tthreads\tsamples_per_s\n' >"$output/samples.tsv"
while [[ $SECONDS -lt $end ]] && kill -0 $job 2>/dev/null; do
  rate=$(tail --lines=50 "$output/run/metrics.jsonl" | sed --quiet 's/.*"samples_per_s":\([0-9.]*\).*/\1/p' | tail --lines=1)
  for rank in "${!processes[@]}"; do
    process=/proc/${processes[rank]}
    status=$(<"$process/status") || break
    figure() { sed --quiet "s/^$1:[[:space:]]*\([0-9]*\).*/\1/p" <<<"$status"; }
    printf '%d\t%d\t%d\t%d\t%d\t%d\t%s\n' $SECONDS "$rank" "$(figure RssAnon)" "$(figure RssFile)" \
      "$(ls "$process/fd" | wc --lines)" "$(figure Threads)" "$rate" >>"$output/samples.tsv"
  done
  sleep 5
done
kill -USR1 $job 2>/dev/null || true
code=0
wait $job || code=$?
trap - EXIT

awk -F'\t' '
  NR == 1 { for (i = 3; i <= NF; ++i) name[i] = $i; columns = NF; next }
  { ++n; time[n] = $1; for (i = 3; i <= NF; ++i) value[n, i] = $i }
  END {
    printf "%d samples in %d s\n%-14s %14s %14s %14s\n", n, time[n] - time[1], "", "first quarter", "last quarter", "slope an hour"
    for (i = 3; i <= columns; ++i) {
      s = t = st = tt = a = b = quarter = 0
      for (k = 1; k <= n; ++k) {
        x = (time[k] - time[1]) / 3600; y = value[k, i]
        t += x; s += y; st += x * y; tt += x * x
        if (k <= n / 4) { a += y; ++quarter }
        if (k > n - int(n / 4)) b += y
      }
      printf "%-14s %14.1f %14.1f %14.1f\n", name[i], a / quarter, b / quarter, (n * st - s * t) / (n * tt - t * t)
    }
  }' "$output/samples.tsv"
printf 'the trainer ended with %d (75: stopped as told)\n' $code
[[ $code -eq 75 || $code -eq 0 ]]
