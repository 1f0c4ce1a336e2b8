#!/usr/bin/env bash
# Fuzzes the readers of files and texts (tests/fuzz) with clang's libFuzzer, AddressSanitizer and
# UndefinedBehaviorSanitizer, one target after another, and prints a line each: executions, executions a
# second of the processor, inputs kept, finds. What ends a target is left in OUTPUT/TARGET/finds; once mended it
# belongs into tests/fuzz/corpus/TARGET, where //tests/fuzz:corpus_test tries it for ever.
#
#   tools/fuzz.sh OUTPUT [RUNS [TARGET ...]]
#
# RUNS of those that open files: a tenth. Without RUNS 1,000,000, without TARGET all. Inputs that an earlier call
# kept in OUTPUT are gone on from, with another seed. Needs clang-14 and its runtime, which it installs.
set -euo pipefail
if [[ $# -eq 0 || " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
mkdir -p "$1"
output=$(realpath "$1")
runs=${2:-1000000}
shift $(($# < 2 ? $# : 2))
cd "$(dirname "$0")/.."
tools/install_packages.sh clang-14 libclang-rt-14-dev
source tools/environment.sh
bazel build --config=fuzz --color=no --curses=no //tests/fuzz
fuzz=$(bazel info --config=fuzz bazel-bin 2>/dev/null)/tests/fuzz/fuzz
targets=("$@")
[[ $# -gt 0 ]] || targets=($(ls tests/fuzz/corpus))
opening_files=" $(grep --no-filename --only-matching --perl-regexp '"\K\w+(?=", true,)' tests/fuzz/*_targets.cc | xargs) "
# The program's own operator new (core/base/exhausted.h) calls malloc. Callers' stacks, and freed memory that is
# kept back, are what most of the time would go into.
export ASAN_OPTIONS=alloc_dealloc_mismatch=0:malloc_context_size=2:quarantine_size_mb=16
TIMEFORMAT='%U %S'

failed=0
printf '%-13s %12s %9s %7s %6s\n' target executions per_cpu_s kept finds
for target in "${targets[@]}"; do
  own=$output/$target
  mkdir -p "$own/inputs" "$own/finds"
  number=$runs
  [[ $opening_files != *" $target "* ]] || number=$((runs / 10))
  # A quarter longer than what is known; the fuzzer's books of rare features cost more than most targets.
  longest=$(stat --format=%s tests/fuzz/corpus/"$target"/* | sort --numeric-sort | tail --lines=1)
  seed=$(($(ls "$own/inputs" | wc --lines) + 1))
  { time ELASTOR_FUZZ_TARGET=$target "$fuzz" -runs="$number" -seed=$seed -entropic=0 \
    -max_len=$((longest < 820 ? 1024 : longest * 5 / 4)) -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$own/finds/" "$own/inputs" "tests/fuzz/corpus/$target" \
    >"$own/log" 2>&1 || failed=1; } 2>"$own/time"
  executed=$(sed --quiet 's/^stat::number_of_executed_units: *//p' "$own/log")
  printf '%-13s %12s %9.0f %7s %6s\n' "$target" "$executed" \
    "$(awk -v executed="${executed:-0}" '{ print executed / ($1 + $2 + 0.001) }' "$own/time")" \
    "$(ls "$own/inputs" | wc --lines)" "$(ls "$own/finds" | wc --lines)"
done
exit $failed
