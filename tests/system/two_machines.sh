#!/usr/bin/env bash
# Compares a build for x86-64 with one for aarch64 that QEMU runs: prepared sets byte for byte, runs record by record
# with the digest of their state after every step, runs that change the machine, and a job with ranks on both. Prints a
# line for each; exit code 1 when one differs. From the top of the repository:
#
#   tests/system/two_machines.sh BIN ARM_BIN OUTPUT_DIR [COMPARISON ...]
#
# BIN, ARM_BIN: the bazel-bin of each build. EMULATOR: the command before programs of ARM_BIN. COMPARISON: prepare,
# quickstart, scale, stream, restart, mixed, or the name of an experiment of configs/criteo; without: all. mixed needs
# programs of one commit: sources that differ from it are refused. ROWS: a file in the layout of Criteo's train.txt;
# without it rows are made up. OUTPUT_DIR is a new folder.
# `tools/cross_aarch64.sh compare` builds both and calls this.
set -uo pipefail
if [[ $# -lt 3 || " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit $(($# == 0 ? 2 : 0))
fi
source "$(dirname "$0")/spread_run.sh"

declare -A bin=([x86]=$1 [arm]=$2)
work=$3
shift 3
comparisons=("$@")
read -ra emulator <<<"${EMULATOR:-}"
if [[ ${#comparisons[@]} -eq 0 ]]; then
  comparisons=(prepare quickstart scale stream restart mixed)
  for experiment in configs/criteo/*.textproto; do
    [[ $experiment == *schema.textproto ]] || comparisons+=("$(basename "$experiment" .textproto)")
  done
fi
mkdir "$work" || exit 2

# program MACHINE PATH: sets `command` to what runs it.
program() {
  command=("${bin[$1]}/$2")
  [[ $1 != arm ]] || command=("${emulator[@]}" "${command[@]}")
}
# on MACHINE PATH ARGUMENT...: runs a program.
on() {
  program "$1" "$2"
  "${command[@]}" "${@:3}" >"$work/log" 2>&1 || fail "$1: $2 ${*:3}: $(tail --lines=3 "$work/log")"
}

# prepare_both NAME SCHEMA ARGUMENT...: makes $work/NAME.data, and on aarch64 $work/NAME.arm.data.
prepare_both() {
  [[ ! -e $work/$1.data ]] || return 0
  on x86 trainer/prepare/prepare --threads=1 --schema="$2" "${@:3}" --output_dir="$work/$1.data"
  on arm trainer/prepare/prepare --threads=2 --schema="$2" "${@:3}" --output_dir="$work/$1.arm.data"
  if diff --recursive --brief "$work/$1.data" "$work/$1.arm.data"; then
    echo "equal: data $1, $(find "$work/$1.data" -type f | wc --lines) files"
  else
    fail "data $1: other bytes on aarch64"
  fi
  rm -rf "$work/$1.arm.data"
}

# Criteo's rows: $work/rows.tsv, and its set.
make_criteo() {
  [[ ! -e $work/rows.tsv ]] || return 0
  if [[ -n ${ROWS:-} ]]; then
    zcat --force "$ROWS" | head --lines=4500 >"$work/rows.tsv"
  else
    awk 'BEGIN {
      srand(1)
      for (row = 0; row < 4500; ++row) {
        line = rand() < 0.25
        for (i = 0; i < 13; ++i) line = line "\t" (rand() < 0.2 ? "" : int(exp(8 * rand())) - 2)
        for (i = 0; i < 26; ++i) {
          line = line "\t" (rand() < 0.1 ? "" : sprintf("%08x", 7919 * i + int(300 * rand() ^ 3)))
        }
        print line
      }
    }' >"$work/rows.tsv"
  fi
  prepare_both criteo configs/criteo/schema.textproto --input="$work/rows.tsv"
}

# Records of every step with the state's digest, few rows to measure.
each_step=(
  --set=training.log_every_steps=1 --set=checkpoint.every_steps=1 --set=checkpoint.keep=1 --set=spectrum.samples=32
)
# same RUN OTHER [PATTERN]: compares what two runs say, or their records with the pattern. A checkpoint's record comes
# when it is written.
same() {
  if ! diff <(numbers_of "$work/$1" | grep --extended-regexp "${3:-}" | sort) \
    <(numbers_of "$work/$2" | grep --extended-regexp "${3:-}" | sort) >"$work/difference"; then
    fail "$2: other numbers than $1 (<): $(head --lines=4 "$work/difference")"
    return
  fi
  echo "equal: $2, $(grep --count '"event":"checkpoint"' "$work/$2/metrics.jsonl") steps, $(digest_of "$work/$2")"
}
# run_both NAME STEPS ARGUMENT...: with another number of threads on each machine.
run_both() {
  local arguments=("${@:3}" "${each_step[@]}" --set=training.max_steps="$2")
  on x86 trainer/trainer "${arguments[@]}" --set=parallel.threads=1 --output_dir="$work/$1"
  on arm trainer/trainer "${arguments[@]}" --set=parallel.threads=2 --output_dir="$work/$1.arm"
  same "$1" "$1.arm"
}

stream=(--experiment=configs/planted/stream.textproto --set=data.path="$work/stream.data")
make_stream() {
  sed 's/rows: 2500000/rows: 30000/' configs/planted/stream_schema.textproto >"$work/stream.textproto"
  prepare_both stream "$work/stream.textproto"
}
# criteo_run EXPERIMENT: sets `arguments`. A step has sixteen rows in two leaves, which is less work for QEMU.
criteo_run() {
  make_criteo
  arguments=(--experiment="configs/criteo/$1.textproto" --set=data.path="$work/criteo.data" --set=training.batch_size=16
    --set=parallel.virtual_shards=2)
}

# restart NAME STEPS ARGUMENT...: each machine stops at a third and at two thirds of a run, and the other goes on. Where
# a run stops it has evaluations, which are not compared.
restart() {
  local name=$1 steps=$2 machine other run
  local arguments=("${@:3}" "${each_step[@]}")
  on x86 trainer/trainer "${arguments[@]}" --set=training.max_steps="$steps" --output_dir="$work/$name.whole"
  for machine in x86 arm; do
    other=arm
    [[ $machine == x86 ]] || other=x86
    run=$name.$machine-$other-$machine
    train() {
      on "$1" trainer/trainer "${arguments[@]}" --output_dir="$work/$run" --set=training.max_steps="$2" "${@:3}"
    }
    train $machine $((steps / 3))
    train $other $((2 * steps / 3)) --resume
    train $machine "$steps" --resume
    same "$name.whole" "$run" '^[0-9a-f]{32}$|"event":"(train|tables|checkpoint)"'
  done
}

# mixed NAME ARGUMENT...: two ranks on x86-64 and one on aarch64. They talk by TCP, as QEMU does not read other processes'
# memory.
mixed() {
  local name=$1 ranks=() machine arguments
  criteo_run dcn_v2
  arguments+=("${@:2}" "${each_step[@]}" --set=training.max_steps=6 --set=parallel.threads=1
    --set=parallel.virtual_shards=4)
  on x86 trainer/trainer "${arguments[@]}" --output_dir="$work/$name.alone"
  for machine in x86 x86 arm; do
    program $machine trainer/trainer
    ranks+=(+ "${command[@]}" "${arguments[@]}" --output_dir="$work/$name")
  done
  OMPI_MCA_btl=tcp,self mpi_each "${ranks[@]:1}" >"$work/log" 2>&1 || fail "$name: $(tail --lines=3 "$work/log")"
  grep '^plan:' "$work/log"
  same "$name.alone" "$name"
}

for comparison in "${comparisons[@]}"; do
  case $comparison in
    prepare)
      make_criteo
      prepare_both terabyte configs/criteo/terabyte_schema.textproto --input="$work/rows.tsv"
      for bars in x1 x4; do
        label=label
        [[ $bars == x1 ]] || label=Label
        { printf '%s' $label; printf ',I%d' {1..13}; printf ',C%d' {1..26}; echo; } >"$work/$bars.csv"
        cp "$work/$bars.csv" "$work/$bars.validation.csv"
        head --lines=4000 "$work/rows.tsv" | tr '\t' , >>"$work/$bars.csv"
        tail --lines=500 "$work/rows.tsv" | tr '\t' , >>"$work/$bars.validation.csv"
        prepare_both $bars configs/criteo/${bars}_schema.textproto --input="$work/$bars.csv" \
          --validation_input="$work/$bars.validation.csv"
      done
      ;;
    quickstart)
      prepare_both quickstart configs/quickstart_schema.textproto
      run_both quickstart 20 --flagfile=configs/quickstart.flags --set=data.path="$work/quickstart.data"
      ;;
    scale)
      make_criteo
      run_both scale 3 --flagfile=configs/scale.flags --set=data.path="$work/criteo.data"
      ;;
    stream)
      make_stream
      run_both stream 48 "${stream[@]}"
      grep --quiet '"evicted":[1-9]' "$work/stream/metrics.jsonl" || fail 'stream: expected rows that leave'
      ;;
    restart)
      criteo_run dcn_v2
      restart dcn_v2 6 "${arguments[@]}"
      make_stream
      restart stream 48 "${stream[@]}"
      ;;
    mixed)
      mixed mixed
      mixed mixed_16_bits --set=parallel.wire.rows=BFLOAT16 --set=parallel.wire.row_gradients=FLOAT16
      ;;
    *)
      criteo_run "$comparison"
      run_both "$comparison" 3 "${arguments[@]}"
      ;;
  esac
done
echo "$failures differ"
exit $((failures > 0))
