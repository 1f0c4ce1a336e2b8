#!/usr/bin/env bash
# How long a supervised run stands still when a rank is killed: from the signal to the first step behind the
# checkpoint. By hand:
#
#   TEST_TMPDIR=$(mktemp -d) tests/system/restart_times.sh bazel-bin/trainer/trainer \
#       bazel-bin/trainer/prepare/prepare [KILLS [RANKS]]
#
# Arguments: the trainer, prepare; 20 kills, 4 ranks.
set -uo pipefail

trainer=$(realpath "$1")
prepare=$(realpath "$2")
kills=${3:-20}
ranks=${4:-4}
work=$TEST_TMPDIR
here=$(cd "$(dirname "$0")" && pwd)
source "$here/spread_run.sh"
# Ranks start as a user's.
unset OMPI_MCA_pml OMPI_MCA_btl
source "$here/../../tools/environment.sh"

cat >"$work/long.textproto" <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding { width: 4 }
training { batch_size: 64 epochs: 1000000 log_every_steps: 1 eval_every_steps: 1000000 }
checkpoint { every_steps: 100 }
spectrum { disabled: true }
EXPERIMENT
make_tiny_data 100000
run=$work/run
"$trainer" --experiment="$work/long.textproto" --set=data.path="$work/data" --output_dir="$run" --supervise \
  --ranks="$ranks" >"$work/log" 2>&1 &
supervisor=$!
# last EVENT: its last step in metrics.jsonl.
last() { sed --quiet "s/^{\"event\":\"$1\",\"step\":\([0-9]*\),.*/\1/p" "$run/metrics.jsonl" 2>/dev/null | tail --lines=1; }
now() { date +%s%N; }

times=()
for ((kill = 1; kill <= kills; ++kill)); do
  first=$(last checkpoint)
  until [[ $(last checkpoint) -gt ${first:-0} ]]; do sleep 0.05; done
  mapfile -t processes < <(pgrep --full "^[^ ]*trainer .*--output_dir=$run .*--nosupervise")
  start=$(now)
  kill -KILL "${processes[$((kill % ranks))]}" || fail 'no such rank'
  until [[ $(grep --count '^supervise: .* try ' "$work/log") -eq $kill ]] || ! kill -0 $supervisor; do sleep 0.01; done
  from=$(sed --quiet 's/^supervise: .*from step \([0-9]*\),.*/\1/p' "$work/log" | tail --lines=1)
  file=$(stat --format=%i "$run/metrics.jsonl")
  told=$(now)
  until [[ $(stat --format=%i "$run/metrics.jsonl") -ne $file && $(last train) -gt $from ]] || ! kill -0 $supervisor; do sleep 0.01; done
  times+=("$((($(now) - start) / 1000000))")
  printf 'kill %d: noticed after %d ms, trains after %d ms\n' $kill $(((told - start) / 1000000)) "${times[-1]}"
done
kill -TERM $supervisor
wait $supervisor
mapfile -t sorted < <(printf '%s\n' "${times[@]}" | sort --numeric-sort)
printf 'kills=%d median_ms=%d worst_ms=%d\n' $kills "${sorted[$((kills / 2))]}" "${sorted[-1]}"
exit "$((failures > 0))"
