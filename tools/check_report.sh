#!/usr/bin/env bash
# Looks at reports, of a sweep or of runs, as readers do, in headless Chromium: screenshots at 1280, 768 and 390 pixels,
# light and dark, and a print as PDF. Fails when a page is not whole, logs an error, asks the network for anything, is
# wider than its viewport, or cuts a text. Pictures go to OUTPUT_DIR, by default beside the page; those of several pages
# go to a folder for each, named by its path:
#
#   tools/check_report.sh REPORT.html... [OUTPUT_DIR]
#
# Without Chromium (Debian: chromium) it says so and ends with code 0.
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  || $# -lt 1 ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  [[ $# -ge 1 ]]
  exit
fi
output=
pages=("$@")
if [[ ${pages[-1]} != *.html ]]; then
  output=${pages[-1]}
  unset 'pages[-1]'
fi
browser=$(command -v chromium || command -v chromium-browser || true)
if [[ -z $browser ]]; then
  echo "skipped: check_report.sh needs chromium"
  exit 0
fi
failures=0
for page in "${pages[@]}"; do
  pictures=${output:-$(dirname "$page")/pictures}
  if [[ ${#pages[@]} -gt 1 ]]; then
    name=${page%.html} && name=${name#/}
    pictures+=/${name//\//-}
  fi
  if grep --extended-regexp --ignore-case '(src|href)="?(https?:)?//' "$page" >/dev/null; then
    echo "check_report.sh: $page: has an address outside itself" >&2
    failures=$((failures + 1))
  fi
  if timeout 300 "$(dirname "$0")/view_page.py" "$browser" "$pictures" "$page" >&2; then
    echo "looked at $page: no error, no request, nothing cut; pictures in $pictures"
  else
    failures=$((failures + 1))
  fi
done
exit "$((failures > 0))"
