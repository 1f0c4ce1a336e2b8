#!/usr/bin/env bash
# Installs what is missing, builds every program and runs every test. Ends with the line
# "N passed, N failed" and Bazel's exit status. Arguments go to `bazel test`:
#
#   ./run_tests.sh [--config=cuda ...]
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
cd "$(dirname "$0")"
tools/install_packages.sh
source tools/environment.sh

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
# Asked for a library itself, as by `bazel build //...`, Bazel compiles it once more, for a shared object that
# nothing links.
programs=$(bazel query --keep_going --color=no --curses=no --noshow_progress \
  'kind(".*_binary", //...) except deps(tests(//...)) except attr(tags, manual, //...)') || status=$?
options=(--keep_going --color=no --curses=no --show_progress_rate_limit=10)
# Many tests wait, for deadlines, disks and Slurm: others and the compiler run beside them.
options+=(--jobs=HOST_CPUS*2 --test_env=HWLOC_HIDE_ERRORS --test_env=HWLOC_COMPONENTS)
bazel build "${options[@]}" "$@" $programs || status=$?
# The longest one does little but wait, so it begins first.
bazel test "${options[@]}" --local_test_jobs=HOST_CPUS*2 --build_tests_only "$@" //tests/system:slurm_test //... 2>&1 |
  tee "$log" || status=$?

# Bazel's report has one line a test: its label and PASSED, FAILED, TIMEOUT, FLAKY, NO STATUS, ...
count() { grep --count --extended-regexp "^//[^ ]+ +(\(cached\) )?($1)" "$log" || true; }
passed=$(count 'PASSED|FLAKY')
failed=$(count 'FAILED|TIMEOUT|INCOMPLETE|REMOTE FAILURE')
skipped=$(count 'NO STATUS|SKIPPED')
# Something that is no test did not build.
if [[ $status -ne 0 && $failed -eq 0 ]]; then failed=1; fi
line="$passed passed, $failed failed"
if [[ $skipped -gt 0 ]]; then line+=", $skipped skipped"; fi
echo "$line"
exit "$status"
