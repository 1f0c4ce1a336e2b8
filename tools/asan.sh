#!/usr/bin/env bash
# Builds tests with gcc's AddressSanitizer and UndefinedBehaviorSanitizer and with the assertions of the standard
# library, and runs them. The first report ends a test.
#
#   tools/asan.sh PATTERN...
#
# PATTERN: tests as Bazel names them, such as //tests/embedding:all.
set -euo pipefail
if [[ $# -eq 0 || " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
cd "$(dirname "$0")/.."
tools/install_packages.sh
source tools/environment.sh
# What cannot run so.
left_out=(
  //tests/core/base:exhausted_test  # its limits of address space leave the sanitizer no room
  //tests/core/kernels:isa_symbols_test  # the sanitizer adds symbols to the kernels' objects
  //tests/faults:few_runs_test  # preloads a library, which the sanitizer wants to be first
  //tests/system:avx2_only_test  # QEMU cannot hold the sanitizer's memory
  //tests/system:memory_mistakes_test  # limits of address space, too
  //tests/system:ranks_mistakes_test  # preloads a library, too
  //tests/system:modes_test  # compares the memory that is told with the memory that is taken
)
# The sanitizer opens shared objects in a program's name, and does not know where the program has its own.
parts=$(bazel info --config=asan bazel-bin)/collective
exec bazel test --config=asan --keep_going --build_tests_only --local_test_jobs=HOST_CPUS*2 \
  --test_env=LD_LIBRARY_PATH="$parts" -- "$@" \
  "${left_out[@]/#/-}"
