#!/usr/bin/env bash
# Trains configs/scale.flags by builds of other compilers and under other MPIs: every run must have the same digest.
# Compiles with g++ and clang 14, runs each alone and on ranks of Open MPI and MPICH, and in one job whose ranks are both
# builds. Prints a line for each run, and ends with exit code 1 if a digest differs. The sources must be those of a
# commit. ROWS: a file in Criteo's layout (docs/use/install.md, "MPI").
#
#   tools/other_builds.sh ROWS OUTPUT_DIR
#
# BAZEL_OPTIONS: more options for Bazel.
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
if [[ $# -ne 2 ]]; then
  echo "usage: $0 ROWS OUTPUT_DIR" >&2
  exit 2
fi
rows=$(realpath "$1")
mkdir --parents "$2"
output=$(realpath "$2")
cd "$(dirname "$0")/.."
tools/install_packages.sh clang-14
source tools/environment.sh

read -ra options <<<"${BAZEL_OPTIONS:-}"
# built COMPILER OPTION...: sets bin to the folder of its programs.
built() {
  local all=("${options[@]}" "${@:2}")
  bazel build "${all[@]}" //trainer //trainer/prepare >"$output/build-$1.log" 2>&1 ||
    { cat "$output/build-$1.log" && exit 1; }
  bin=$(bazel info "${all[@]}" bazel-bin 2>/dev/null)
}
# What clang warns of and g++ does not is no part of the check.
built clang-14 --repo_env=CC=clang-14 --platform_suffix=clang --copt=-Wno-error && clang=$bin/trainer/trainer
built g++ && gcc=$bin/trainer/trainer
[[ -e $output/data/meta.json ]] || "$bin/trainer/prepare/prepare" --schema=configs/criteo/schema.textproto \
  --input="$rows" --output_dir="$output/data" --threads=2 >"$output/prepare.log"

open_mpi=(mpirun --mca orte_execute_quiet 1 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np)
mpich=(mpiexec.hydra -n)
first= failed=0
# trained NAME COMMAND...: `run` in the command stands for the trainer's arguments.
trained() {
  local name=$1 begin=$SECONDS folder=$output/$1 command=() word digest
  for word in "${@:2}"; do
    if [[ $word == run ]]; then
      command+=(--flagfile=configs/scale.flags --set=data.path="$output/data" --output_dir="$folder")
    else
      command+=("$word")
    fi
  done
  rm --recursive --force "$folder"
  "${command[@]}" >"$output/$name.log" 2>&1 || true
  digest=$(sed --quiet 's/.*"state_digest": "\(.*\)",/\1/p' "$folder/summary.json" 2>/dev/null) || true
  printf '%-24s %s %5d s\n' "$name" "${digest:-no digest, see the log}" $((SECONDS - begin))
  first=${first:-$digest}
  [[ -n $digest && $digest == "$first" ]] || failed=1
}

for program in "$gcc" "$clang"; do
  "$program" --version
  ELASTOR_MPI=mpich "$program" --version | tail --lines=1
done
trained gcc-alone "$gcc" run
trained clang-alone "$clang" run
for ranks in 1 3 4 16; do
  trained "gcc-openmpi-$ranks" "${open_mpi[@]}" $ranks "$gcc" run
  trained "gcc-mpich-$ranks" "${mpich[@]}" $ranks "$gcc" run
done
trained clang-openmpi-4 "${open_mpi[@]}" 4 "$clang" run
trained both-openmpi-1+1 "${open_mpi[@]}" 1 "$gcc" run : -np 1 "$clang" run
trained both-mpich-1+1 "${mpich[@]}" 1 "$gcc" run : -n 1 "$clang" run
exit "$failed"
