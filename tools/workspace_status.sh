#!/usr/bin/env bash
# Tells Bazel the commit of the sources (.bazelrc). Prints "STABLE_ELASTOR_COMMIT COMMIT", with ", dirty" behind it if
# a tracked file differs from the commit or a source is not in it. Sources that `git archive` has packed carry their
# commit in tools/archived_commit; it has ", archive" behind it, because no one can tell whether they were changed.
# Without either it prints nothing. Takes no arguments.
set -uo pipefail
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
cd "$(dirname "$0")/.." || exit 1

# The checkout may belong to another user.
in_git() { git -c safe.directory="$PWD" "$@" 2>/dev/null; }
if [[ -e .git ]] && commit=$(in_git rev-parse HEAD); then
  state=
  in_git diff --quiet HEAD -- &&
    [[ -z $(in_git ls-files --others --exclude-standard -- '*.bazel' '*.bzl' '*.cc' '*.cu' '*.h' '*.proto') ]] ||
    state=', dirty'
elif commit=$(<tools/archived_commit) && [[ $commit =~ ^[0-9a-f]{40}$ ]]; then
  state=', archive'
else
  exit 0
fi
echo "STABLE_ELASTOR_COMMIT ${commit:0:12}$state"
