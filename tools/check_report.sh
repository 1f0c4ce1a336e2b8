#!/usr/bin/env bash
# Looks at a report, of a sweep or of runs, as readers do, in headless Chromium: screenshots at 1280 and 390 pixels, light
# and dark, and a print as PDF. Fails when the page is not whole, logs an error or asks the network
# for anything. Pictures go to OUTPUT_DIR, by default beside the report:
#
#   tools/check_report.sh REPORT.html [OUTPUT_DIR]
#
# Without Chromium (Debian: chromium) it says so and ends with code 0.
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  || $# -lt 1 ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  [[ $# -ge 1 ]]
  exit
fi
report=$(realpath "$1")
output=${2:-$(dirname "$report")/pictures}
browser=$(command -v chromium || command -v chromium-browser || true)
if [[ -z $browser ]]; then
  echo "skipped: check_report.sh needs chromium"
  exit 0
fi
mkdir -p "$output"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() {
  echo "check_report.sh: $*" >&2
  failures=$((failures + 1))
}

# look NAME ARGUMENT...: opens the report; its console must be silent, its network unused.
look() {
  local name=$1
  shift
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --enable-logging=stderr \
    --user-data-dir="$work/profile" --disable-background-networking --disable-component-update \
    --no-first-run --virtual-time-budget=5000 --log-net-log="$work/$name.net" "$@" "file://$report" \
    >"$work/$name.out" 2>"$work/$name.err" || fail "$name: chromium ended with code $?"
  if grep --quiet ':CONSOLE' "$work/$name.err"; then
    fail "$name: $(grep ':CONSOLE' "$work/$name.err")"
  fi
  # Requests for anything but the file and Chromium's own pages.
  if grep --only-matching --extended-regexp '"url":"(https?|wss?|ftp):[^"]*"' "$work/$name.net" |
    grep --invert-match --extended-regexp 'google|gstatic|gvt1' >"$work/urls"; then
    fail "$name: asks for $(sort --unique "$work/urls" | tr '\n' ' ')"
  fi
}

for width in 1280 390; do
  look "light$width" --window-size="$width,2400" --screenshot="$output/light$width.png"
  look "dark$width" --window-size="$width,2400" --blink-settings=preferredColorScheme=0 \
    --screenshot="$output/dark$width.png"
done
look print --print-to-pdf="$output/print.pdf" --no-pdf-header-footer
look dom --dump-dom
for what in '<h1>' 'aria-sort="none"' '</footer>\|</main>' '<svg'; do
  grep --quiet -- "$what" "$work/dom.out" || fail "the page has no $what: its script or text is not whole"
done
if grep --extended-regexp --ignore-case '(src|href)="?(https?:)?//' "$report" >/dev/null; then
  fail 'the page has an address outside itself'
fi
for picture in light1280.png dark1280.png light390.png dark390.png print.pdf; do
  [[ -s $output/$picture ]] || fail "$picture: was not made"
done
[[ $failures -eq 0 ]] && echo "looked at $report: no error, no request; pictures in $output"
exit "$((failures > 0))"
