#!/usr/bin/env bash
# .ci/run, run_tests.sh and tools/install_packages.sh on fakes of Bazel, Debian's packages and the formatter: every
# part runs whatever the others say, the last line counts all of them, and packages are installed once.
set -uo pipefail
mkdir --parents "$TEST_TMPDIR"/{checkout/.ci,checkout/tools,path,cuda/bin}
cp --dereference .ci/{run,check_sources} "$TEST_TMPDIR/checkout/.ci/"
cp --dereference run_tests.sh "$TEST_TMPDIR/checkout/"
cp --dereference tools/{install_packages,environment}.sh "$TEST_TMPDIR/checkout/tools/"
cd "$TEST_TMPDIR" || exit 1
printf '#!/bin/sh\n[ "$FAULT" != Arrow ] || { echo "no Arrow"; exit 1; }\n' >checkout/tools/install_arrow.sh
chmod +x checkout/tools/install_arrow.sh
failures=0

# program NAME: a fake, from stdin. FAULT in the environment says which part goes wrong.
program() {
  { echo '#!/usr/bin/env bash' && cat; } >"path/$1"
  chmod +x "path/$1"
}
program git <<'FAKE'
case $* in
  *" ls-files "*" *.h") printf 'a.h\0b.h\0' ;;
  *" ls-files "*) printf 'a.cc\0' ;;
esac
[[ $* != *" grep "*"$RULE"* || $FAULT != sources ]] || echo "$PLACE"
FAKE
program clang-format-14 <<<'[[ $FAULT != format ]] || { echo "a.cc:1: not formatted"; exit 1; }'
program sudo <<<'exec "$@"'
program dpkg-query <<'FAKE'
while [[ $1 == --* ]]; do shift; done
code=0
for package; do
  if [[ -e $STATE/$package ]]; then echo "$package installed"; else code=1; fi
done
exit $code
FAKE
program apt-get <<'FAKE'
[[ $FAULT != packages ]] || exit 100
while [[ $1 != update && $1 != install ]]; do shift; done
echo "$1" >>"$STATE/.calls"
[[ $1 == update ]] || (cd "$STATE" && touch "${@:4}")
FAKE
program bazel <<'FAKE'
[[ " $* " == *" --config=cuda "* ]] && configuration=cuda || configuration=tests
echo "$configuration $1" >>"$STATE/.bazel"
case $1 in
  query) [[ $FAULT != query ]] || exit 7; echo //a:program ;;
  build) [[ $FAULT != "$configuration build" ]] || { echo "//a:program did not build"; exit 1; } ;;
  test)
    if [[ $configuration == cuda ]]; then
      echo "//a:device_test                (cached) PASSED in 0.3s"
      echo "//a:other_device_test                   SKIPPED"
    else
      echo "//a:a_test                              PASSED in 0.3s"
    fi
    [[ $FAULT != "$configuration" ]] || { echo "//a:b_test                      TIMEOUT in 60.0s"; exit 3; }
    ;;
esac
FAKE
# header NAME TYPE
header() { printf 'namespace elastor {\nstruct %s {\n};\n}  // namespace elastor\n' "$2" >"checkout/$1"; }
header a.h Run
header b.h Job
touch cuda/bin/nvcc
chmod +x cuda/bin/nvcc

# expect FAULT CODE LINE...: the lines stand in what .ci/run says, in this order, the last of them as its last. T stands
# for seconds.
expect() {
  local code=0 found
  rm --recursive --force state && mkdir state
  FAULT=$1 STATE=$PWD/state CUDA_HOME=$PWD/${cuda:-cuda} PATH=$PWD/path:$PATH checkout/.ci/run >log 2>&1 || code=$?
  found=$(sed -E 's|  +[0-9]+ s   | T s   |' log)
  { [[ $code -eq $2 && $(tail --lines=1 log) == "${*: -1}" ]] &&
    printf '%s\n' "${@:3}" | diff - <(grep --line-regexp --fixed-strings "$(printf '%s\n' "${@:3}")" <<<"$found"); } ||
    { printf 'fault "%s": exit code %d, expected %d and the lines\n' "$1" $code "$2" &&
      printf '  %s\n' "${@:3}" && printf 'found\n%s\n' "$found" && failures=$((failures + 1)); }
}

good() { echo "$1 T s   1 passed, 0 failed, 0 skipped"; }
bad() { echo "$1 T s   0 passed, 1 failed, 0 skipped"; }
cuda_good='CUDA configuration T s   1 passed, 0 failed, 1 skipped'
packages_name=tools/install_packages.sh

expect '' 0 "$(good packages)" "$(good format)" "$(good sources)" "$(good tests)" "$cuda_good" '5 passed, 0 failed, 1 skipped'
grep --quiet "^$packages_name: installing 34 packages: bazel-bootstrap .* slurm-wlm\$" log &&
  grep --quiet "^$packages_name: installed 34 packages in [0-9]* s\$" log &&
  [[ $(cat state/.calls) == $'update\ninstall' ]] ||
  { echo "packages: expected one update and one install, found $(cat state/.calls log)" && failures=$((failures + 1)); }
[[ $(cat state/.bazel) == $'tests query\ntests build\ntests test\ntests query\ncuda build\ncuda test' ]] ||
  { echo "found the calls of Bazel $(cat state/.bazel)" && failures=$((failures + 1)); }

expect format 1 'a.cc:1: not formatted' "$(bad format)" "$(good tests)" "$cuda_good" '4 passed, 1 failed, 1 skipped'
export RULE='|regex' PLACE='trainer/a.h:7:#include <regex>'
expect sources 1 "$PLACE: takes long to compile; expected only in the files that .ci/check_sources names" \
  "$(good format)" "$(bad sources)" "$(good tests)" "$cuda_good" '4 passed, 1 failed, 1 skipped'
RULE=nlohmann PLACE='core/base/json.cc:9:#include "nlohmann/json.hpp"'
expect sources 0 "$(good sources)" '5 passed, 0 failed, 1 skipped'
RULE='timeout (' PLACE='tests/a.sh:5:time'"out 60"
expect sources 1 "$PLACE: a limit; expected \$hang_seconds" "$(bad sources)" '4 passed, 1 failed, 1 skipped'
header b.h Run
expect '' 1 'b.h:2: elastor::Run is a type of a.h too; expected another name' "$(bad sources)" '4 passed, 1 failed, 1 skipped'
header b.h Job
expect tests 1 "$(good format)" 'tests T s   1 passed, 1 failed, 0 skipped' "$cuda_good" \
  '5 passed, 1 failed, 1 skipped'
expect 'tests build' 1 '//a:program did not build' 'tests T s   1 passed, 1 failed, 0 skipped' "$cuda_good" \
  '5 passed, 1 failed, 1 skipped'
expect query 1 'tests T s   1 passed, 1 failed, 0 skipped' 'CUDA configuration T s   1 passed, 1 failed, 1 skipped' \
  '5 passed, 2 failed, 1 skipped'
expect cuda 1 "$(good tests)" 'CUDA configuration T s   1 passed, 1 failed, 1 skipped' '5 passed, 1 failed, 1 skipped'
expect packages 1 "$(bad packages)" "$(good format)" "$(bad tests)" "$(bad 'CUDA configuration')" \
  '2 passed, 3 failed, 0 skipped'
grep --quiet "^$packages_name: apt-get ended with exit code 100 after [0-9]* s; these packages are missing: baz" log ||
  { echo "packages: found $(cat log)" && failures=$((failures + 1)); }
expect Arrow 1 'no Arrow' "$(bad packages)" "$(good format)" "$(good tests)" "$cuda_good" '4 passed, 1 failed, 1 skipped'
cuda=none expect '' 0 "$(good tests)" 'CUDA configuration T s   0 passed, 0 failed, 1 skipped' \
  '4 passed, 0 failed, 1 skipped'
[[ $failures -eq 0 ]]
