#!/usr/bin/env bash
# training.precision: BFLOAT16 on the CPU: the same bits on any number of ranks and threads, near
# FLOAT32's numbers but not the same, named by the numerics fingerprint; refused where a rank's CPU
# lacks it. Without AVX512-BF16 only the refusals run.
# Arguments: the trainer, prepare.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
work=$TEST_TMPDIR
source "$(dirname "$0")/spread_run.sh"

cat >"$work/tiny.textproto" <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 dropout: 0.1 } }
embedding { width: 4 init_stddev: 0.1 }
optimizer { learning_rate: 0.01 clip_norm: 0.05 }
training { batch_size: 69 epochs: 1 precision: BFLOAT16 log_every_steps: 1 }
parallel { virtual_shards: 16 }
EXPERIMENT
make_tiny_data 700
run=("$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/data")

expect_line 2 'training.precision: TF32 is a choice on GPUs' \
  "${run[@]}" --output_dir="$work/none" --set=training.precision=TF32
needs='training.precision: BFLOAT16 on the CPU needs AVX512-BF16 (AMD Zen 4, Intel Cooper Lake or newer), which rank'
expect_line 2 "$needs 0's host lacks" env ELASTOR_ISA="${isas[0]}" "${run[@]}" --output_dir="$work/none"
if ! grep --quiet --word-regexp avx512_bf16 /proc/cpuinfo; then
  expect_line 2 "$needs 0's host lacks" "${run[@]}" --output_dir="$work/none"
  echo 'skipped: runs in bfloat16; this CPU lacks AVX512-BF16'
  exit "$((failures > 0))"
fi
cat >"$work/second_without" <<'RANK'
#!/usr/bin/env bash
if [[ $OMPI_COMM_WORLD_RANK -eq 1 ]]; then export ELASTOR_ISA=v3; fi
exec "$@"
RANK
chmod +x "$work/second_without"
expect_line 2 "$needs 1's host lacks" \
  on_ranks 2 "$work/second_without" "${run[@]}" --output_dir="$work/none"
if [[ -e $work/none ]]; then fail 'a refused run left a folder'; fi

# train RANKS RUN ARGUMENT...
train() {
  local ranks=$1 output=$work/$2
  shift 2
  on_ranks "$ranks" "${run[@]}" --output_dir="$output" "$@" >"$work/log" 2>&1 || {
    fail "$ranks ranks, $*"
    cat "$work/log"
  }
}
train 1 one --set=parallel.threads=1
for layout in '1 2' '3 1' '4 2'; do
  read -r ranks threads <<<"$layout"
  train "$ranks" "$ranks-$threads" --set=parallel.threads="$threads" --set=parallel.overlap=true
  diff <(numbers_of "$work/one") <(numbers_of "$work/$ranks-$threads") >"$work/difference" ||
    fail "$ranks ranks of $threads threads: other numbers than one thread's: $(head --lines=4 "$work/difference")"
done
grep --quiet '"numerics": ".* cpu vdpbf16ps"' "$work/one/summary.json" || fail 'numerics do not name the products'

train 1 float --set=training.precision=FLOAT32
expect_other_digest 'FLOAT32 and BFLOAT16' "$work/float" "$work/one"
logloss() { sed --quiet 's/.*"logloss": \([0-9.]*\),*/\1/p' "$work/$1/summary.json"; }
awk -v a="$(logloss one)" -v b="$(logloss float)" 'BEGIN { exit !(a > 0 && (a - b)^2 < 2.5e-5) }' ||
  fail "logloss $(logloss one) in BFLOAT16, $(logloss float) in FLOAT32"

# It goes on in its own precision only; its model serves in another one, with a warning.
train 1 stopped --set=training.max_steps=4
expect_line 2 'training.precision: FLOAT32; expected BFLOAT16' \
  "${run[@]}" --output_dir="$work/stopped" --resume --set=training.precision=FLOAT32
train 3 stopped --resume
[[ $(digest_of "$work/stopped") == "$(digest_of "$work/one")" ]] || fail 'a run that was stopped: other digest'
train 1 evaluated --mode=evaluate --model="$work/one/model" --set=training.precision=FLOAT32
grep --quiet 'trained under the numerics' "$work/log" || fail 'no word of other numerics'
exit "$((failures > 0))"
