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
)
exec bazel test --config=asan --keep_going --build_tests_only -- "$@" "${left_out[@]/#/-}"
