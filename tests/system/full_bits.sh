#!/usr/bin/env bash
# The law of the bits on a real data set: one epoch of configs/scale.flags (215 steps over 109,711
# rows) with dropout, clipping and L2, for many spreads. Prints a table; exit code 1 when a number
# differs from that of the first spread. From the top of the repository:
#
#   tests/system/full_bits.sh DATA OUTPUT_DIR [RANKS:THREADS:PLAN:ALGORITHM ...]
#
# ALGORITHM: the all-reduce that Open MPI is forced to take (4 ring, 5 segmented ring), or "any".
# Without spreads: all of them, half an hour and more on two cores. TRAINER: another program than
# bazel-bin/trainer/trainer.
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
source "$(dirname "$0")/spread_run.sh"

trainer=${TRAINER:-bazel-bin/trainer/trainer}
data=$1
output=$2
shift 2
spreads=("$@")
if [[ ${#spreads[@]} -eq 0 ]]; then
  for algorithm in any 4 5; do
    for plan in ROW_WISE TABLE_WISE REPLICATED; do
      for threads in 1 2; do
        for ranks in 1 2 3 4 5 8 16; do
          # Alone there is no all-reduce.
          [[ $ranks -eq 1 && $algorithm != any ]] ||
            spreads+=("$ranks:$threads:$plan:$algorithm")
        done
      done
    done
  done
fi
settings=(
  --set=training.epochs=1 --set=training.batch_size=512 --set=training.log_every_steps=1
  --set=model.dropout=0.1 --set=optimizer.clip_norm=0.5
  --set=optimizer.dense_l2=1e-5 --set=optimizer.embedding_l2=1e-5
)

mkdir -p "$output"
different=0
first=
row='%5s %7s %-10s %9s %5s %8s %-32s  %-20s %s\n'
# shellcheck disable=SC2059
printf "$row" ranks threads plan algorithm steps seconds state_digest last_loss numbers
for spread in "${spreads[@]}"; do
  IFS=: read -r ranks threads plan algorithm <<<"$spread"
  run=$output/${spread//:/-}
  rm -rf "$run"
  start=$SECONDS
  (
    if [[ $algorithm != any ]]; then force_allreduce "$algorithm"; fi
    on_ranks "$ranks" "$trainer" --flagfile=configs/scale.flags --set=data.path="$data" \
      "${settings[@]}" --set=parallel.threads="$threads" --set=parallel.plan="$plan" \
      --output_dir="$run" >"$run.log" 2>&1
  ) || { cat "$run.log"; exit 1; }
  first=${first:-$run}
  verdict=same
  if ! cmp --silent <(numbers_of "$first") <(numbers_of "$run"); then
    verdict=DIFFERENT
    different=1
  fi
  steps=$(grep --count '"event":"train"' "$run/metrics.jsonl")
  loss=$(sed --quiet 's/.*"loss":\([^,]*\),.*/\1/p' "$run/metrics.jsonl" | tail --lines=1)
  # shellcheck disable=SC2059
  printf "$row" "$ranks" "$threads" "$plan" "$algorithm" "$steps" $((SECONDS - start)) \
    "$(digest_of "$run")" "$loss" "$verdict"
done
exit "$different"
