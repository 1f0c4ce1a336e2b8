#!/usr/bin/env bash
# Disturbs every program and mode that fills an output folder, but for training: kills it, lets its disk be full, starts
# it twice at once. Then the same command must work, and its files must be those of an undisturbed run.
#
#   tests/faults/folders.sh PROGRAMS OUTPUT [TRIES [MODE ...]]
#
# PROGRAMS: bazel-bin, or a folder like it, with trainer, prepare, launcher, conditioning and spectra_report built.
# OUTPUT: a new folder. TRIES: of every kind and mode, 150 when left out. MODE: all when left out. Needs root, for small disks.
# Prints a line for each failure, and one for each mode. Exit code 1 when anything failed.
set -uo pipefail
if [[ $# -lt 2 || " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
programs=$(realpath "$1")
mkdir --parents "$2" && cd "$2" || exit 2
tries=${3:-150}
modes=("${@:4}")
trainer=$programs/trainer/trainer
prepare=$programs/trainer/prepare/prepare
RANDOM=1
failures=0
readonly most_seconds=120 # of a command, which takes seconds

fail() {
  printf 'FAILED: %s\n' "$*"
  failures=$((failures + 1))
}

cat >schema.textproto <<'SCHEMA'
layout: DELIMITED delimiter: "," header: true
split { train: 0.8 validation: 0.1 test: 0.1 }
fields { name: "click" type: LABEL }
fields { name: "a" type: CATEGORICAL }
fields { name: "b" type: NUMERIC transform: STANDARDIZE }
SCHEMA
cat >experiment.textproto <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding { width: 4 }
training { batch_size: 64 max_steps: 6 }
checkpoint { every_steps: 4 delta_every_steps: 1 }
data { path: "data" }
EXPERIMENT
cat >sweep.textproto <<'SWEEP'
name: "s"
base_file: "experiment.textproto"
axis { name: "seed" field: "training.seed" values: "1" values: "2" }
resources { ranks: 1 }
SWEEP
awk 'BEGIN { srand(1); print "click,a,b"; for (i = 0; i < 3000; ++i) print int(rand() < 0.3) ",v" int(40 * rand()) "," rand() }' >in.csv
"$prepare" --schema=schema.textproto --input=in.csv --output_dir=data >log 2>&1 &&
  "$trainer" --experiment=experiment.textproto --output_dir=run >log 2>&1 || { cat log && exit 2; }
checkpoint=$(find run/checkpoints -name 'step-*' | sort | tail --lines=1)

use=("$trainer" --experiment=experiment.textproto --model=run/model)
# The command of a mode, which fills @.
declare -A commands=(
  [prepare]="$prepare --schema=schema.textproto --input=in.csv --output_dir=@"
  [export]="$trainer --mode=export --model=run/model --output_dir=@"
  [compact]="$trainer --mode=compact --model=$checkpoint --output_dir=@"
  [plot]="$trainer --mode=plot --output_dir=@ run"
  [score]="$trainer --mode=predict --model=run/model --input=in.csv --output_dir=@"
  [sweep]="$programs/launcher/launcher --trainer=$trainer --sweep=sweep.textproto --output_dir=@ --retry_failed"
  [spectra_report]="$programs/launcher/spectra_report/spectra_report --output_dir=@ run"
  [conditioning]="$programs/launcher/conditioning/conditioning --large=false --seeds=1 --studies=condition_numbers @"
)
for mode in evaluate predict spectra theory projection ntk; do
  commands[$mode]="${use[*]} --mode=$mode --output_dir=@"
done
commands[ntk]+=" --rows=64"

# The names and bytes of a folder's files, but for times, memory and the folder's own name. Of a sweep the digests of
# its runs: their records say that they were resumed.
files_of() {
  if [[ -d $1/runs ]]; then
    grep state_digest "$1"/runs/*/summary.json | cut --delimiter=: --fields=2- | md5sum
    return
  fi
  (cd "$1" && find . -type f ! -name '*.log' | sort | while read -r file; do
    echo "$file"
    case $file in
    *samples_per_s.svg | *report*) ;;
    *) sed --regexp-extended --expression="s#$1##g" \
      --expression='s/"[a-z_]*(seconds|_s|memory|bytes|calls|messages)[a-z_]*": ?[^,}]*//g' "$file" ;;
    esac
  done) | md5sum
}

command_of() { sed "s#@#$2#g" <<<"${commands[$1]}"; }
# must MODE FOLDER WHAT: the command ends well, or refuses a folder that is whole; the folder is as it should be.
must() {
  local code=0
  # shellcheck disable=SC2046 # words
  timeout $most_seconds $(command_of "$1" "$2") >log 2>&1 || code=$?
  if [[ $(files_of "$2") != "$right" ]]; then
    cp --recursive "$2" "wrong.$1.$failures"
    fail "$1, $3: exit code $code: $(tail --lines=1 log); wrong files: wrong.$1.$failures"
  elif [[ $code -ne 0 && $code -ne 2 ]]; then
    fail "$1, $3: exit code $code: $(tail --lines=1 log)"
  fi
}
clear() { rm --recursive --force "$1" "$1".*; }

kill_once() { # MODE
  local folder=out.$1
  clear "$folder"
  # shellcheck disable=SC2046 # words
  setsid $(command_of "$1" "$folder") >/dev/null 2>&1 &
  local job=$!
  sleep "$(awk -v r=$RANDOM -v t="$taken" 'BEGIN { print t * r / 32768 }')"
  kill -KILL -- -$job 2>/dev/null && killed=$((killed + 1))
  wait $job 2>/dev/null
  must "$1" "$folder" 'after a kill'
}
full_once() { # MODE
  local folder=small.$1/out code
  mkdir --parents "small.$1"
  mount -t tmpfs -o size=$(((1 + RANDOM % pages) * 4))k none "small.$1" || return
  # shellcheck disable=SC2046 # words
  timeout $most_seconds $(command_of "$1" "$folder") >log 2>&1
  code=$?
  [[ $code -eq 0 || $code -eq 3 ]] || fail "$1, a full disk: exit code $code: $(tail --lines=1 log)"
  [[ $code -eq 0 ]] || full=$((full + 1))
  mount -o remount,size=64m "small.$1"
  [[ $code -eq 0 ]] || must "$1" "$folder" 'behind a full disk'
  umount "small.$1"
}
twice_once() { # MODE
  local folder=out.$1 first second ends
  clear "$folder"
  # shellcheck disable=SC2046 # words
  timeout $most_seconds $(command_of "$1" "$folder") >log.first 2>&1 &
  first=$!
  sleep "$(awk -v r=$RANDOM -v t="$taken" 'BEGIN { print t * r / 32768 / 2 }')"
  # shellcheck disable=SC2046 # words
  timeout $most_seconds $(command_of "$1" "$folder") >log.second 2>&1 &
  second=$!
  wait $first
  ends=$?
  wait $second
  ends+=$?
  case $ends in
  00) ;;
  02 | 20) refused=$((refused + 1)) ;;
  *) fail "$1, twice at once: exit codes $ends: $(tail --lines=1 --quiet log.first log.second)" ;;
  esac
  [[ $(files_of "$folder") == "$right" ]] || fail "$1, twice at once: other files"
}

[[ ${#modes[@]} -gt 0 ]] || mapfile -t modes < <(printf '%s\n' "${!commands[@]}" | sort)
for mode in "${modes[@]}"; do
  before=$failures killed=0 full=0 refused=0
  clear "out.$mode"
  start=${EPOCHREALTIME/[.,]/}
  # shellcheck disable=SC2046 # words
  $(command_of "$mode" "out.$mode") >log 2>&1 || fail "$mode: $(tail --lines=1 log)"
  taken=$(awk -v us=$((${EPOCHREALTIME/[.,]/} - start)) 'BEGIN { print us / 1e6 }')
  pages=$(($(du --summarize --block-size=4096 "out.$mode" | cut --fields=1) + 1))
  right=$(files_of "out.$mode")
  for ((try = 0; try < tries; ++try)); do
    kill_once "$mode"
    full_once "$mode"
    twice_once "$mode"
  done
  echo "$mode: $tries tries of each kind; $killed killed at work, $full met a full disk, $refused refused beside another;" \
    "$((failures - before)) failures"
  clear "out.$mode"
done
exit $((failures > 0))
