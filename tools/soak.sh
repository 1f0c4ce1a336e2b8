#!/usr/bin/env bash
# A long training run that is watched: private memory, address space, descriptors and threads of every rank, and
# the time of a row, all of which must stay as they are. It evaluates, measures spectra and writes checkpoints,
# deltas among them, as it goes.
#
#   tools/soak.sh OUTPUT MINUTES [RANKS [TRAINER_ARGUMENT ...]]
#   tools/soak.sh --judge SAMPLES
#
# OUTPUT is a new folder; RANKS are 2 when left out. Without arguments of the trainer it is the quickstart's
# model and data, for ever. Every five seconds the figures go to OUTPUT/samples.tsv (seconds, rank, figure,
# value), which --judge takes too. The verdict leaves out the first quarter of the time, cuts the rest into 20
# blocks and fits a line to the blocks' means. A figure is flat when the whole 95 % interval of its slope is within
# the limit of an hour, which is printed beside it; it grows or falls when the whole interval is outside; else
# nobody can tell, for the run was too short or the machine too restless. Exit codes: 0, all are flat; 1, one is
# not or is missing, the samples are too few or one is no number, or the run did not last. ELASTOR_PROGRAMS: where
# the programs are; default: bazel-bin.
set -euo pipefail
if [[ $# -lt 2 || " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi

judge() {
  awk -F'\t' '
    BEGIN {
      blocks = 20; quantile = 2.101  # Student, 95 %, 18 degrees of freedom
      percent["private_kb"] = percent["address_kb"] = 1
      percent["us_per_row"] = 5
      absolute["descriptors"] = absolute["threads"] = 0.5
    }
    NR == 1 { next }
    $4 !~ /^[0-9]+([.][0-9]+)?$/ {
      printf "line %d: value \"%s\" of %s; expected a number\n", NR, $4, $3
      refused = 1; exit
    }
    {
      series = $3 "\t" $2
      if ($2 != "all" && $2 >= ranks) ranks = $2 + 1
      n = ++count[series]; time[series, n] = $1; value[series, n] = $4
      if (begin == "" || $1 < begin) begin = $1
      if ($1 > end) end = $1
    }
    END {
      if (refused) exit 1
      if (NR < 2) { print "no samples"; exit 1 }
      for (rank = 0; rank < ranks || rank == 0; ++rank) {
        names[++number] = "private_kb\t" rank; names[++number] = "address_kb\t" rank
        names[++number] = "threads\t" rank; names[++number] = "descriptors\t" rank
      }
      names[++number] = "us_per_row\tall"
      from = begin + (end - begin) / 4
      printf "%d s\n%-12s %5s %14s %22s %8s\n", end - begin, "figure", "rank", "mean", "slope an hour", "limit"
      for (i = 1; i <= number; ++i) {
        series = names[i]; split(series, name, "\t")
        for (b = 0; b < blocks; ++b) sum[b] = held[b] = 0
        for (k = 1; k <= count[series]; ++k) {
          if (time[series, k] < from || end == from) continue
          b = int(blocks * (time[series, k] - from) / (end - from))
          if (b == blocks) --b
          sum[b] += value[series, k]; ++held[b]
        }
        fewest = held[0]
        for (b = 1; b < blocks; ++b) if (held[b] < fewest) fewest = held[b]
        if (fewest < 3) {
          printf "%-12s %5s: %d samples in the emptiest of %d blocks; expected 3\n", name[1], name[2], fewest, blocks
          failed = 1; continue
        }
        mean = slope = squares = error = 0; hours = (end - from) / blocks / 3600
        for (b = 0; b < blocks; ++b) mean += sum[b] / held[b] / blocks
        for (b = 0; b < blocks; ++b) {
          x = (b - (blocks - 1) / 2) * hours
          slope += x * sum[b] / held[b]; squares += x * x
        }
        slope /= squares
        for (b = 0; b < blocks; ++b) {
          off = sum[b] / held[b] - mean - slope * (b - (blocks - 1) / 2) * hours
          error += off * off
        }
        half = quantile * sqrt(error / (blocks - 2) / squares)
        limit = name[1] in percent ? percent[name[1]] / 100 * mean : absolute[name[1]]
        size = slope < 0 ? -slope : slope
        verdict = size + half <= limit ? "flat" : size - half <= limit ? "nobody can tell" : slope > 0 ? "grows" : "falls"
        if (verdict != "flat") failed = 1
        printf "%-12s %5s %14.2f %+11.2f +- %7.2f %8.2f  %s\n", name[1], name[2], mean, slope, half, limit, verdict
      }
      exit failed
    }' "$1"
}

if [[ $1 == --judge ]]; then
  judge "$2"
  exit
fi
output=$1 minutes=$2 ranks=${3:-2}
shift $(($# < 3 ? $# : 3))
mkdir -p "$output"
output=$(realpath "$output")
cd "$(dirname "$0")/.."
source tools/environment.sh
programs=${ELASTOR_PROGRAMS:-bazel-bin}
arguments=("$@")
if [[ $# -eq 0 ]]; then
  "$programs/trainer/prepare/prepare" --schema=configs/quickstart_schema.textproto --output_dir="$output/data" >&2
  arguments=(--experiment=configs/quickstart.textproto --set=data.path="$output/data"
    --set=training.epochs=1000000 --set=training.eval_every_steps=500 --set=spectrum.every_steps=1000
    --set=checkpoint.every_steps=200 --set=checkpoint.delta_every_steps=50 --tensorboard)
fi
metrics=$output/run/metrics.jsonl
mpirun --mca orte_execute_quiet 1 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np "$ranks" "$programs/trainer/trainer" \
  "${arguments[@]}" --output_dir="$output/run" >"$output/log" 2>&1 &
job=$!
trap 'kill -KILL $job 2>/dev/null || true' EXIT

until grep --quiet '"event":"train"' "$metrics" 2>/dev/null; do
  kill -0 $job || { cat "$output/log" >&2; exit 1; }
  sleep 0.2
done
mapfile -t processes < <(pgrep --full --parent $job -- "--output_dir=$output/run")
if [[ ${#processes[@]} -ne $ranks ]]; then
  echo "$0: found ${#processes[@]} ranks; expected $ranks" >&2
  exit 1
fi

printf 'seconds\trank\tfigure\tvalue\n' >"$output/samples.tsv"
start=$SECONDS end=$((SECONDS + 60 * minutes)) read=$(stat --format=%s "$metrics")
note() { printf '%d\t%s\t%s\t%s\n' $((SECONDS - start)) "$@" >>"$output/samples.tsv"; }
while [[ $SECONDS -lt $end ]]; do
  sleep 5
  for rank in "${!processes[@]}"; do
    process=/proc/${processes[rank]}
    # A rank that is gone ends the watch: the run did not last.
    status=$(cat "$process/status" 2>/dev/null) || break 2
    figure() { sed --quiet "s/^$1:[[:space:]]*\([0-9]*\).*/\1/p" <<<"$status"; }
    note "$rank" private_kb "$(figure RssAnon)"
    note "$rank" address_kb "$(figure VmSize)"
    note "$rank" threads "$(figure Threads)"
    note "$rank" descriptors "$(ls "$process/fd" | wc --lines)"
  done
  size=$(stat --format=%s "$metrics")
  time=$(dd if="$metrics" iflag=skip_bytes,count_bytes skip="$read" count=$((size - read)) bs=64K status=none |
    sed --quiet 's/.*"samples_per_s":\([0-9.]*\)[,}].*/\1/p' |
    awk '{ sum += 1e6 / $1 } END { if (NR > 0) printf "%.4f", sum / NR }')
  read=$size
  if [[ -n $time ]]; then note all us_per_row "$time"; fi
done
lasted=$((SECONDS >= end))
kill -USR1 $job 2>/dev/null || true
code=0
wait $job || code=$?
trap - EXIT

flat=0
judge "$output/samples.tsv" || flat=$?
for event in train eval spectrum checkpoint; do
  printf '%s records: %d\n' $event "$(grep --count "\"event\":\"$event\"" "$metrics")"
done
printf 'the trainer ended with %d; expected 75, stopped as told\n' $code
[[ $flat -eq 0 && $lasted -eq 1 && $code -eq 75 ]]
