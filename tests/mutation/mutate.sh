#!/usr/bin/env bash
# mutate.sh SOURCE RESULT [LINE MISTAKE]...: copies SOURCE with every line LINE (spaces around it not
# counted) replaced by MISTAKE. Fails when a LINE is not found.
set -euo pipefail
source=$1
result=$2
shift 2

text=$(<"$source")
while [[ $# -gt 0 ]]; do
  mutant=
  found=0
  while IFS= read -r line; do
    if [[ $line =~ ^\ *(.*)$ && ${BASH_REMATCH[1]} == "$1" ]]; then
      line=$2
      found=1
    fi
    mutant+=$line$'\n'
  done <<<"$text"
  if [[ $found -eq 0 ]]; then
    printf '%s: no line is "%s"; the mutation must follow the source\n' "$source" "$1" >&2
    exit 1
  fi
  text=$mutant
  shift 2
done
printf '%s\n' "$text" >"$result"
