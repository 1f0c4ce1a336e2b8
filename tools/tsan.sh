#!/usr/bin/env bash
# Builds what has threads with gcc's ThreadSanitizer and runs it: the tests of the thread pool, of ranks as threads
# and their collectives, of the thread that communicates, of training steps on them, of checkpoints, and of what
# reads ahead, evaluates, measures spectra and prepares; then the programs with several threads of every kind:
# prepare, a training run that overlaps, writes checkpoints and deltas and measures spectra, the same on two ranks
# with the watchdog, and raw rows scored. Prints a line each; every report is an error.
#
#   tools/tsan.sh [OUTPUT]
#
# OUTPUT: a new folder for data, runs and logs, below the system's for temporary files when left out. The emulation
# of the device, whose threads are fibers of one, is outside.
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
output=${1:-$(mktemp --directory)}
mkdir -p "$output"
output=$(realpath "$output")
cd "$(dirname "$0")/.."
tools/install_packages.sh
source tools/environment.sh
# Label, and a filter of its tests.
tests=(
  "//tests/collective:communicator_test *"
  "//tests/collective:collective_test *DenseReducer*:CommunicationWorker*"
  "//tests/core/base:base_test ThreadPool*"
  "//tests/embedding:sharded_embedding_test *"
  "//tests/trainer/checkpoint:checkpoint_test CheckpointTest*:*CheckpointOptimizerTest*:DeltaTest*"
  "//tests/trainer/data:data_test BatchSourceTest*:*PrefetcherTest*"
  "//tests/trainer/evaluate:evaluate_test EvaluationTest*:ModelHashTest*:NtkTest*:ScoringRanksTest*:SliceOfRankTest*"
  "//tests/trainer/prepare:prepare_test EngineTest*"
  "//tests/trainer/step:train_step_test *"
)
options=(--config=tsan --color=no --curses=no)
bazel build "${options[@]}" "${tests[@]% *}" //trainer //trainer/prepare
binaries=$(bazel info "${options[@]}" bazel-bin 2>/dev/null)
# What libraries do that were not compiled for the sanitizer tells it nothing.
export TSAN_OPTIONS="exitcode=66 ignore_noninstrumented_modules=1"

failed=0
# checked NAME COMMAND...: without random addresses, which leave the sanitizer too little room.
checked() {
  local name=$1 code=0
  shift
  setarch --addr-no-randomize "$@" >"$output/$name.log" 2>&1 || code=$?
  printf '%-24s exit code %d, %d reports\n' "$name" $code \
    "$(grep --count 'WARNING: ThreadSanitizer' "$output/$name.log")"
  [[ $code -eq 0 ]] || failed=1
}
export TEST_TMPDIR=$output/tests
mkdir -p "$TEST_TMPDIR"
for test in "${tests[@]}"; do
  path=${test% *}
  path=${path#//}
  checked "${path##*:}" "$binaries/${path/://}" --gtest_filter="${test##* }"
done

cat >"$output/schema.textproto" <<'SCHEMA'
name: "tiny" layout: DELIMITED split { train: 0.8 validation: 0.1 test: 0.1 } rows_per_block: 64
fields { name: "click" type: LABEL }
fields { name: "age" type: NUMERIC }
fields { name: "item" type: CATEGORICAL }
fields { name: "place" type: CATEGORICAL }
SCHEMA
awk 'BEGIN {
  srand(1)
  for (i = 0; i < 4000; ++i) printf "%d\t%d\ti%d\tp%d\n", rand() < 0.3, 100 * rand(), 900 * rand(), 9 * rand()
}' >"$output/rows.tsv"
cat >"$output/tiny.textproto" <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 dropout: 0.1 } }
embedding { width: 4 }
training { batch_size: 64 eval_every_steps: 20 log_every_steps: 1 }
spectrum { every_steps: 20 samples: 64 }
checkpoint { every_steps: 20 delta_every_steps: 3 }
data { reader_threads: 3 }
parallel { threads: 3 overlap: true virtual_shards: 16 watchdog_seconds: 2 }
EXPERIMENT
programs=$binaries/trainer
checked prepare "$programs/prepare/prepare" --schema="$output/schema.textproto" --input="$output/rows.tsv" \
  --output_dir="$output/data" --threads=3
train=("$programs/trainer" --experiment="$output/tiny.textproto" --set=data.path="$output/data")
checked train "${train[@]}" --output_dir="$output/one"
checked train_on_two_ranks mpirun --mca orte_execute_quiet 1 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np 2 \
  "${train[@]}" --output_dir="$output/two"
checked predict "$programs/trainer" --mode=predict --model="$output/one/model" --input="$output/rows.tsv" \
  --output_dir="$output/predictions" --set=parallel.threads=3
exit $failed
