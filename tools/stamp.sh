#!/usr/bin/env bash
# Copies a linked program and writes the commit of its sources into the copy, over the blanks behind the mark of
# core/process/build_info.cc. Nothing else differs. STATUS is a file with the lines of tools/workspace_status.sh;
# without a commit in it the copy is exact.
#
#   tools/stamp.sh PROGRAM STATUS COPY
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
program=$1 status=$2 copy=$3

mark=elastor-commit: blanks=30
commit=$(sed --quiet 's/^STABLE_ELASTOR_COMMIT //p' "$status")
mapfile -t places < <(LC_ALL=C grep --text --byte-offset --only-matching "$mark *" "$program")
if [[ ${#places[@]} -ne 1 || ${#commit} -gt $blanks ]]; then
  echo "$0: $program: ${#places[@]} places for the commit '$commit'; expected one, of $blanks blanks" >&2
  exit 1
fi
cp --force "$program" "$copy"
chmod u+w "$copy"
offset=${places[0]%%:*}
printf %s "$commit" |
  dd of="$copy" bs=1 seek="$((offset + ${#mark}))" conv=notrunc status=none
