#!/usr/bin/env bash
# Runs that an earlier build wrote go on. stored_runs/ holds one of each model, stopped at step 13 of
# 20, with the experiment in the first format and manifests of version 1; data/ is the set they were
# trained on, of version 2. The digests and metrics below are those that the earlier build reached
# without a stop, and measured. Arguments: the trainer, prepare.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
source "$(dirname "$0")/spread_run.sh"
# The files themselves: checkpoints that are symbolic links are refused.
cp --recursive --dereference --no-preserve=mode "$(dirname "$0")/stored_runs" "$TEST_TMPDIR/old"
cd "$TEST_TMPDIR" || exit 1
"$prepare" --schema=old/schema.textproto --output_dir=data >/dev/null || exit 1

# warns TEXT: the last command said so.
warns() {
  grep '^W' log | grep --quiet --fixed-strings -- "$1" || fail "expected a warning with '$1', found: $(cat log)"
}

# Its numerics name the compiler too, which changes no bit.
grep --quiet '"numerics": "x86-64-v3 gcc-12.2.0 panels16 cpu"' old/mlp/model/manifest.json || fail 'other stored numerics'
same_numerics() { grep 'under the numerics' log && fail "$1: a warning of other numerics"; }

# goes_on MODEL DIGEST AUC LOGLOSS
goes_on() {
  local old=old/$1 digest=$2 metrics="\"auc\":$3,\"logloss\":$4"
  local state=$old/checkpoints/step-0000000013
  use() { on_ranks "$1" "$trainer" --experiment="$old/experiment.textproto" "${@:2}"; }
  must() {
    use "$@" >log 2>&1 && return
    fail "$*"
    cat log
  }

  must 2 --output_dir="$1.evaluated" --mode=evaluate --model="$old/model"
  warns "$old/model/manifest.json: of an earlier version"
  same_numerics "$1 evaluated"
  grep --quiet --fixed-strings "$metrics" "$1.evaluated/metrics.jsonl" ||
    fail "$1: expected $metrics, found $(cat "$1.evaluated/metrics.jsonl")"
  must 1 --output_dir="$1.warm" --set=training.warm_start.path="$state"
  expect_line 2 "$state/manifest.json: version 1 does not tell how the data were encoded" \
    "$trainer" --mode=compact --model="$state" --output_dir="$1.compacted"

  # What must not change is told as ever.
  expect_line 2 "training.seed: 4; expected" \
    use 1 --output_dir="$1.seed" --mode=evaluate --model="$old/model" --set=training.seed=4
  mkdir "$1"
  mv "$old/checkpoints" "$1/"
  expect_line 2 "model.$1.dropout: 0.5; expected" \
    use 1 --output_dir="$1" --resume --set=model.dropout=0.5

  must 3 --output_dir="$1" --resume --set=training.max_steps=16
  warns "$1/checkpoints/step-0000000013/manifest.json: of an earlier version"
  same_numerics "$1 resumed"
  # On the data set as it was, too.
  must 2 --output_dir="$1" --resume --set=training.max_steps=0 --set=data.path=old/data
  warns "old/data: version 2 of the format"
  [[ $(digest_of "$1") == "$digest" ]] ||
    fail "$1: expected the digest $digest, found $(digest_of "$1")"
  # From now on the run is in today's format.
  grep --quiet "^  $1 {" "$1/experiment.textproto" || fail "$1: $(cat "$1/experiment.textproto")"
  must 1 --output_dir="$1" --resume --set=training.max_steps=0
  [[ $(digest_of "$1") == "$digest" ]] || fail "$1: other bits in today's format"
}

goes_on rank_elastor 98e8a01d7b6e98e953d1946194818c78 0.5342261904761905 0.6105458788573742
goes_on rank_mixer eb7bd6c077fe3b4216ac5b25b12bd994 0.6004464285714286 0.5962071440182626
goes_on mlp 396ea59ff0f3fed769e799adae494b88 0.5342261904761905 0.6098701436072588
exit "$((failures > 0))"
