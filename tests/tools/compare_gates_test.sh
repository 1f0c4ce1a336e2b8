#!/usr/bin/env bash
# compare_gates.sh compares steps at targets set beforehand and corrects their p, on runs of a fake
# trainer. Argument: compare_gates.sh.
set -uo pipefail

script=$PWD/$1
cd "$TEST_TMPDIR" || exit 1
mkdir -p programs/trainer data
touch data/meta.json
# The fake: the logloss is 0.5 - 0.001 * (step - delay) from the delay on. Delays by seed: gated 10 12
# 9 11 13 10, plain 13 18 12 16 15 17; RankMixer's plain is as its gated but for one seed.
cat >programs/trainer/trainer <<'TRAINER'
#!/usr/bin/env bash
for argument in "$@"; do
  case $argument in
    --output_dir=*) output=${argument#*=} ;;
    --set=name=*) arm=${argument#*name=} ;;
    --set=training.seed=*) seed=${argument##*=} ;;
  esac
done
gated=(10 12 9 11 13 10) plain=(13 18 12 16 15 17)
case $arm in
  elastor_plain) delay=${plain[seed - 201]} ;;
  mixer_plain) delay=$((gated[seed - 201] + (seed == 201))) ;;
  *) delay=${gated[seed - 201]} ;;
esac
mkdir -p "$output"
awk -v delay="$delay" 'BEGIN {
  for (step = 1; step <= 40; ++step) {
    loss = step < delay ? 0.6 : 0.5 - 0.001 * (step - delay)
    printf "{\"event\":\"training_eval\",\"step\":%d,\"logloss\":0.1}\n", step
    printf "{\"event\":\"eval\",\"step\":%d,\"logloss\":%.6f}\n", step, loss
  }
}' >"$output/metrics.jsonl"
echo '{}' >"$output/summary.json"
TRAINER
chmod +x programs/trainer/trainer
ELASTOR_PROGRAMS=programs "$script" --data=data --output=out --seeds=6 --first_seed=201 \
  --rates=1e-3,1e-3,2e-3,2e-3 \
  --arms=elastor_gated,elastor_plain,mixer_gated,mixer_plain --targets=0.55,0.4905,0.3 >log 2>&1 ||
  { cat log; exit 1; }

failures=0
# expect TEXT: a line of the result, blanks squeezed.
expect() {
  tr --squeeze-repeats ' ' <log | grep --quiet --fixed-strings -- "$1" && return
  echo "FAILED: expected '$1'"
  failures=1
}
expect 'steps: p corrected for 4 comparisons'
# By numpy, with 2.571 for Student's t. Of 64 swaps only none and all have sums as large in any comparison.
expect 'steps to 0.55 10.8333 +- 1.5450 15.1667 +- 2.4315 -4.3333 +- 2.0639 gated smaller (6 seeds, p 0.0312)'
expect 'steps to 0.4905 20.8333 +- 1.5450 25.1667 +- 2.4315 -4.3333 +- 2.0639 gated smaller (6 seeds, p 0.0312)'
expect 'steps to 0.3 not reached by all runs'
# One difference of 1 has a statistic that every swap reaches.
expect 'steps to 0.55 10.8333 +- 1.5450 11.0000 +- 1.4844 -0.1667 +- 0.4285 not told apart (6 seeds, p 1.0000)'
# Each arm trained with its own rate.
[[ -e out/elastor_plain-1e-3-201 && -e out/mixer_gated-2e-3-201 ]] || { ls out >>log; failures=1; }
ELASTOR_PROGRAMS=programs "$script" --data=data --output=out --rates=1e-3,2e-3 --arms=mixer_small >log2 2>&1
[[ $? -eq 2 && $(<log2) == *'expected one, or 1, one an arm' ]] || { cat log2 >>log; failures=1; }
[[ $failures -eq 0 ]] || cat log
exit $failures
