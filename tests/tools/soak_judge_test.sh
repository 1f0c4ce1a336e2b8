#!/usr/bin/env bash
# The verdict of tools/soak.sh on samples that are made up: flat, growing, falling, restless, too few, none,
# a figure or a value that is missing.
set -euo pipefail
soak=$PWD/tools/soak.sh
cd "$TEST_TMPDIR"
failed=0

# samples SECONDS FIGURE AWK_VALUE: of every figure and two ranks every 5 s, the figure's value an expression of
# the time t in hours, of the sample's number n and of noise, even in -1 to 1; the others are 100.
samples() {
  awk -v seconds="$1" -v figure="$2" "BEGIN {
    srand(7); print \"seconds\\trank\\tfigure\\tvalue\"
    count = split(\"0 private_kb 0 address_kb 0 threads 0 descriptors 1 private_kb 1 address_kb 1 threads \" \\
      \"1 descriptors all us_per_row\", series, \" \")
    for (n = 0; 5 * n <= seconds; ++n) {
      t = 5 * n / 3600; noise = 2 * rand() - 1
      for (i = 1; i < count; i += 2) {
        printf \"%d\\t%s\\t%s\\t%.4f\\n\", 5 * n, series[i], series[i + 1], series[i + 1] == figure ? $3 : 100
      }
    }
  }" >samples.tsv
}

# expect VERDICT SECONDS FIGURE AWK_VALUE: VERDICT is the end of the lines of the figure, or of the last one.
expect() {
  local verdict=$1 code=0
  samples "${@:2}"
  "$soak" --judge samples.tsv >verdict || code=$?
  local expected=1
  [[ $verdict != flat ]] || expected=0
  if ! { grep "^$3 " verdict || cat verdict; } | tail --lines=1 | grep --quiet "$verdict\$" ||
    [[ $code -ne $expected ]]; then
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

# refused TEXT SED_SCRIPT: what would be flat, but for the script's changes.
refused() {
  local code=0
  samples 3600 private_kb 100000
  sed --in-place --regexp-extended "$2" samples.tsv
  "$soak" --judge samples.tsv >verdict || code=$?
  if ! grep --quiet "$1" verdict || [[ $code -ne 1 ]]; then
    echo "$2: expected '$1', found exit code $code and"
    cat verdict
    failed=1
  fi
}

for figure in private_kb address_kb threads descriptors; do
  refused "^$figure  *1: 0 samples in the emptiest" "/\t1\t$figure/d"
  refused "value \"\" of $figure; expected a number" "200s/.*/95\t1\t$figure\t/"
done
refused '^us_per_row  *all: 0 samples in the emptiest' '/us_per_row/d'
exit $failed
