#!/usr/bin/env bash
# --version of every program, with and without the commit that tools/stamp.sh writes, and the commit that
# tools/workspace_status.sh tells Bazel. Arguments: the programs.
set -uo pipefail

version=$(<VERSION)
work=$TEST_TMPDIR
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
# expect WHAT FOUND EXPECTED
expect() { [[ $2 == "$3" ]] || fail "$1: expected '$3', found '$2'"; }

[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "VERSION: '$version'"
echo 'STABLE_ELASTOR_COMMIT 0123456789ab, dirty' >"$work/status"
: >"$work/no_status"
for program in "$@"; do
  name=${program##*/}
  mapfile -t said < <("$program" --version)
  expect "$name" "${said[0]}" "$name $version (commit unknown)"
  [[ ${said[1]} == 'compiler: '?* ]] || fail "$name: ${said[1]}"
  [[ ${said[2]} =~ ^'numerics: '(x86-64-v3|aarch64)' panels16 cpu'$ ]] || fail "$name: ${said[2]}"
  mpi=${said[3]:-}
  if [[ $name == trainer ]]; then
    [[ $mpi == 'MPI: Open MPI '* ]] || fail "trainer: '$mpi'"
  else
    expect "$name" "$mpi" ''
  fi
  tools/stamp.sh "$program" "$work/status" "$work/$name" || fail "stamp $name"
  expect "stamped $name" "$("$work/$name" --version | head --lines=1)" "$name $version (0123456789ab, dirty)"
  expect "bytes that differ in the stamped $name" "$(cmp --verbose "$program" "$work/$name" | wc --lines)" 18
done
tools/stamp.sh "$1" "$work/no_status" "$work/copy" && cmp "$1" "$work/copy" || fail 'stamped without a commit'
tools/stamp.sh "$work/status" "$work/status" "$work/copy" 2>"$work/log" && fail 'stamped what has no place for it'
grep --quiet 'status: 0 places for the commit' "$work/log" || fail "no place: $(<"$work/log")"

# A checkout, what differs from it, and an archive of it.
sources=$work/sources
mkdir --parents "$sources/tools"
cp --dereference tools/workspace_status.sh "$sources/tools/"
# The text is built here, so that an archive of these sources keeps it.
echo "\$Format:""%H\$" >"$sources/tools/archived_commit"
echo 'tools/archived_commit export-subst' >"$sources/.gitattributes"
cd "$sources" || exit 1
status() { tools/workspace_status.sh; }
expect 'without git' "$(status)" ''
git init --quiet
git add .
git -c user.name=n -c user.email=e commit --quiet --message=m
commit=$(git rev-parse HEAD | cut --characters=-12)
expect 'a checkout' "$(status)" "STABLE_ELASTOR_COMMIT $commit"
touch --date=2001-01-01 .gitattributes
expect 'a copy, whose files have other times' "$(status)" "STABLE_ELASTOR_COMMIT $commit"
touch notes.txt
expect 'a file that is no source' "$(status)" "STABLE_ELASTOR_COMMIT $commit"
touch new.cc
expect 'a new source' "$(status)" "STABLE_ELASTOR_COMMIT $commit, dirty"
rm new.cc
echo '# changed' >>.gitattributes
expect 'a changed file' "$(status)" "STABLE_ELASTOR_COMMIT $commit, dirty"
mkdir "$work/archive"
git archive HEAD | tar --extract --directory="$work/archive"
expect 'an archive' "$("$work/archive/tools/workspace_status.sh")" "STABLE_ELASTOR_COMMIT $commit, archive"
exit $((failures > 0))
