#!/usr/bin/env bash
# A run's files for TensorBoard have what metrics.jsonl has, also where the run was killed and went on,
# and change no bit of it. Arguments: the trainer, prepare. TensorBoard's own reader is asked where
# ELASTOR_PYTHON (or python3) has it.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
work=$TEST_TMPDIR
source "$(dirname "$0")/spread_run.sh"
make_tiny_data 6000

cat >"$work/tiny.textproto" <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding { width: 4 init_stddev: 0.1 }
optimizer { learning_rate: 0.02 }
training { batch_size: 72 epochs: 3 log_every_steps: 10 eval_every_steps: 50 }
spectrum { at_start: true every_steps: 60 samples: 32 }
parallel { virtual_shards: 4 }
checkpoint { every_steps: 40 }
EXPERIMENT

# train RANKS RUN ARGUMENT...
train() {
  local ranks=$1 run=$2
  shift 2
  on_ranks "$ranks" "$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/data" \
    --output_dir="$run" "$@" >"$work/log" 2>&1 || fail "train $run $*: $(<"$work/log")"
}

# event_files RUN
event_files() { find "$1" -name 'events.out.tfevents.*' | wc --lines; }

train 1 "$work/plain"
[[ $(event_files "$work/plain") -eq 0 ]] || fail 'a file for TensorBoard that nobody wanted'
train 2 "$work/shown" --tensorboard
# Where lines of checkpoints stand among the others is a matter of time.
diff <(numbers_of "$work/plain" | grep --invert-match '"checkpoint"') \
  <(numbers_of "$work/shown" | grep --invert-match '"checkpoint"') || fail '--tensorboard changed the run'
[[ $(event_files "$work/shown") -eq 1 ]] || fail 'expected one file of two ranks'

# Killed at step 110, it goes on at 80: what TensorBoard saw of 90 to 110 is gone.
train 1 "$work/resumed" --tensorboard --set=training.max_steps=110
rm --recursive "$work/resumed/checkpoints/step-0000000110" "$work/resumed/summary.json"
train 1 "$work/resumed" --tensorboard --resume
[[ $(event_files "$work/resumed") -eq 2 ]] || fail 'expected a file of each process'
[[ $(digest_of "$work/resumed") == "$(digest_of "$work/plain")" ]] || fail 'resumed: another digest'

expect_line 2 '--tensorboard: --mode=describe writes no records' \
  "$trainer" --experiment="$work/tiny.textproto" --mode=describe --tensorboard

for run in shown resumed; do
  "${ELASTOR_PYTHON:-python3}" "$(dirname "$0")/tensorboard_oracle.py" "$work/$run"
  case $? in
    0) ;;
    77 | 127) echo "skipped: TensorBoard itself, of $run" ;;
    *) fail "TensorBoard shows something else of $run than metrics.jsonl" ;;
  esac
done
exit "$((failures > 0))"
