#!/usr/bin/env bash
# Builds what has threads with gcc's ThreadSanitizer and runs it: the tests of the thread pool, of the thread
# that communicates, of ranks as threads, of training steps on them, of checkpoints and of what reads batches;
# then the trainer itself with several threads of every kind, and raw rows scored by several threads. Prints
# a line each; every report is an error. The emulation of the device, whose threads are fibers, is outside.
#
#   tools/tsan.sh [OUTPUT]
#
# OUTPUT: a new folder for data, run and logs, below the system's for temporary files when left out.
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
tests=(
  //tests/collective:{communicator,dense_reduce,worker}_test
  //tests/core/base:{exhausted,thread_pool}_test
  //tests/embedding:sharded_embedding_test
  //tests/trainer/checkpoint:checkpoint_test
  //tests/trainer/data:{batch_source,prefetch}_test
  //tests/trainer/step:train_step_test
)
options=(--config=tsan --color=no --curses=no)
bazel build "${options[@]}" "${tests[@]}" //trainer //trainer/prepare
binaries=$(bazel info "${options[@]}" bazel-bin 2>/dev/null)
export TSAN_OPTIONS="exitcode=66 suppressions=$PWD/tools/tsan_suppressions.txt"

failed=0
# checked NAME COMMAND...: without random addresses, which leave the sanitizer too little room.
checked() {
  local name=$1 code=0
  shift
  setarch --addr-no-randomize "$@" >"$output/$name.log" 2>&1 || code=$?
  printf '%-28s exit code %d, %d reports\n' "$name" $code \
    "$(grep --count '^WARNING: ThreadSanitizer' "$output/$name.log")"
  [[ $code -eq 0 ]] || failed=1
}
export TEST_TMPDIR=$output/tests
mkdir -p "$TEST_TMPDIR"
for test in "${tests[@]}"; do
  path=${test#//}
  checked "${path##*:}" "$binaries/${path/://}"
done
cat >"$output/schema.textproto" <<'SCHEMA'
name: "tiny" layout: DELIMITED split { train: 0.8 validation: 0.1 test: 0.1 }
fields { name: "click" type: LABEL }
fields { name: "age" type: NUMERIC }
fields { name: "item" type: CATEGORICAL }
SCHEMA
awk 'BEGIN { srand(1); for (i = 0; i < 4000; ++i) printf "%d\t%d\ti%d\n", rand() < 0.3, 100 * rand(), 50 * rand() }' \
  >"$output/rows.tsv"
cut --fields=2,3 "$output/rows.tsv" >"$output/unlabelled.tsv"
programs=$binaries/trainer
checked prepare "$programs/prepare/prepare" --schema="$output/schema.textproto" --input="$output/rows.tsv" \
  --output_dir="$output/data" --threads=3
printf 'model { mlp { hidden: 8 } } embedding { width: 4 } training { batch_size: 64 eval_every_steps: 20 }\n' \
  >"$output/tiny.textproto"
checked train "$programs/trainer" --experiment="$output/tiny.textproto" --set=data.path="$output/data" \
  --output_dir="$output/run" --set=parallel.threads=3 --set=parallel.overlap=true \
  --set=data.reader_threads=3 --set=checkpoint.every_steps=5
checked predict "$programs/trainer" --mode=predict --model="$output/run/model" --input="$output/rows.tsv" \
  --output_dir="$output/predictions" --set=parallel.threads=3
exit $failed
