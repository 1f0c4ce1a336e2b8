#!/usr/bin/env bash
# The verdict of tools/soak.sh on samples that are made up: flat, growing, falling, restless, too few, none.
set -euo pipefail
soak=$PWD/tools/soak.sh
cd "$TEST_TMPDIR"
failed=0

# expect VERDICT SECONDS FIGURE AWK_VALUE: a sample every 5 s, the value an expression of the time t in hours,
# of the sample's number n and of noise, even in -1 to 1. VERDICT: the end of the figure's line.
expect() {
  local verdict=$1 code=0
  awk -v seconds="$2" -v figure="$3" "BEGIN {
    srand(7); print \"seconds\\trank\\tfigure\\tvalue\"
    for (n = 0; 5 * n <= seconds; ++n) {
      t = 5 * n / 3600; noise = 2 * rand() - 1
      printf \"%d\\t0\\t%s\\t%.4f\\n\", 5 * n, figure, $4
    }
  }" >samples.tsv
  "$soak" --judge samples.tsv >verdict || code=$?
  local expected=1
  [[ $verdict != flat ]] || expected=0
  if ! tail --lines=1 verdict | grep --quiet "$verdict\$" || [[ $code -ne $expected ]]; then
    echo "$2 s of $3 = $4: expected '$verdict', found exit code $code and"
    cat verdict
    failed=1
  fi
}

expect flat 3600 private_kb '100000 + 300 * noise'
expect flat 3600 private_kb '100000'
expect flat 3600 private_kb '100000 + (t < 0.2 ? 0 : 20000)'  # what the beginning takes
expect grows 3600 private_kb '100000 + 300 * noise + 3000 * t'
expect falls 3600 private_kb '100000 + 300 * noise - 3000 * t'
expect grows 3600 descriptors '20 + int(3 * t)'
expect flat 3600 descriptors '20 + n % 2'
expect grows 3600 us_per_row '5 + 0.1 * noise + t'
expect 'nobody can tell' 600 us_per_row '5 + 4 * noise'
expect 'expected 3' 250 private_kb '100000'
expect 'no samples' -5 private_kb '100000'
exit $failed
