#!/usr/bin/env bash
# Builds for aarch64 on x86-64 (Debian 12) and runs what it has built under qemu-aarch64. Installs the cross compiler and
# QEMU, and unpacks Debian's arm64 packages in a root of their own, which it keeps. Every part says what it did; the exit
# code is 1 if a test failed (docs/use/install.md, "aarch64").
#
#   tools/cross_aarch64.sh root                 the packages alone; prints the options that Bazel takes for this machine
#   tools/cross_aarch64.sh build [LABEL ...]    builds; without labels the programs
#   tools/cross_aarch64.sh test [LABEL ...]     builds and runs unit tests; without labels those of UNIT_TESTS
#   tools/cross_aarch64.sh compare [COMPARISON ...]    builds for both machines and compares (tests/system/two_machines.sh)
#   tools/cross_aarch64.sh run PROGRAM [ARGUMENT ...]    runs a program of bazel-out
#   tools/cross_aarch64.sh release OUTPUT_DIR   makes a release (tools/release.sh)
#
# ELASTOR_ARM_ROOT: the root's folder, by default ~/.cache/elastor/arm64. BAZEL_OPTIONS: more options for Bazel.
set -euo pipefail
if [[ $# -eq 0 || " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit $(($# == 0 ? 2 : 0))
fi
root=$(realpath --canonicalize-missing "${ELASTOR_ARM_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/elastor/arm64}")
emulator=("$root/emulate")
command=$1
shift

# QEMU keeps an entry for every page of address space, and keyed tables take as much of that as the host has memory.
mkdir --parents "$root"
cat >"$root/emulate.$$" <<RUN
#!/bin/sh
ulimit -v 67108864
# Tests of prepare find in PREPARE what they start.
[ -z "\$PREPARE" ] || export PREPARE="${emulator[*]} \$PREPARE"
exec qemu-aarch64 -L "$root" "\$@"
RUN
chmod +x "$root/emulate.$$"
mv "$root/emulate.$$" "${emulator[0]}"
case $command in
  run) exec "${emulator[@]}" "$@" ;;
  ldd) # QEMU shows programs the root's files as if they lay in /.
    "${emulator[@]}" "$root/lib/ld-linux-aarch64.so.1" --list "$@" | sed "s|=> /|=> $root/|"
    exit
    ;;
esac
cd "$(dirname "$0")/.."
source tools/environment.sh

# Tests of one process each: the rest of the suite starts programs, which QEMU does not run for it.
UNIT_TESTS=(//tests/core/... //tests/embedding/... //tests/trainer/step/... //tests/trainer/data/... //tests/trainer/prepare/...)
# What QEMU cannot run; docs/use/install.md has the reasons.
NOT_EMULATED=(HostMemoryTest.TheLimitOfAddressSpaceIsTheProcesssOwn ExhaustedDeathTest.ARefusedThreadIsOneLine
  ThreadPoolDeathTest.RefusesRunInsideRun RowStore.CostFollowsTheRowsThatAreThere
  EmulationTest.TrafficCountsAPageOnceACall EmulationDeathTest.HostAndDeviceMemoryAreApart
  TrafficTest.WhatTheFusedNetworkSaves RowTier.PagesLeaveMemoryAndComeBack)
PROGRAMS=(//trainer //trainer/prepare //launcher //trainer/score/shared:libelastor_score.so)

# apt with a state of its own: nothing of this system's packages is touched.
apt_of_root() {
  apt-get -qq -o Dir::State="$root/apt/state" -o Dir::State::status="$root/apt/status" -o Dir::Cache="$root/apt/cache" \
    -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User=root \
    -o APT::Install-Recommends=false -o Dir::Etc::sourceparts=- -o Dir::Etc::sourcelist="$root/apt/sources.list" "$@"
}

make_root() {
  # What tools/install_packages.sh installs here, of libraries.
  local packages
  packages=$(sed --quiet '/^packages=(/,/^)/{/^  lib\|^  nlohmann\|^  zlib\|^  openmpi-bin\|^  mpich/p}' tools/install_packages.sh)
  [[ $(cat "$root/complete" 2>/dev/null) != "$packages" ]] || return 0
  tools/install_packages.sh g++-aarch64-linux-gnu qemu-user
  echo "$0: unpacking arm64 packages in $root"
  mkdir -p "$root"/apt/{state/lists/partial,cache/archives/partial}
  touch "$root/apt/status"
  # The release and the mirror that this system installs from.
  local mirror
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Suite: bookworm' 'Component: main' 2>/dev/null |
    head --lines=1)
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror:-http://deb.debian.org/debian} bookworm main" \
    >"$root/apt/sources.list"
  apt_of_root update
  # shellcheck disable=SC2086
  apt_of_root install --yes --download-only $packages libc6-dev libstdc++6 >/dev/null
  local package
  for package in "$root"/apt/cache/archives/*.deb; do dpkg-deb --extract "$package" "$root"; done
  rm --recursive "$root/apt/cache"
  # Absolute links lead into this system.
  local link
  find "$root" -type l -lname '/*' ! -lname "$root/*" -print0 | while IFS= read -r -d '' link; do
    ln --symbolic --force --no-dereference "$root$(readlink "$link")" "$link"
  done
  # BLAS and others, which Debian's alternatives link at installation, are not needed.
  cat >"$root/gcc" <<GCC
#!/bin/sh
exec aarch64-linux-gnu-gcc --sysroot="$root" "\$@"
GCC
  chmod +x "$root/gcc"
  tools/install_packages.sh python3-pip
  XDG_CACHE_HOME=$root/cache ELASTOR_MACHINE=aarch64 tools/install_arrow.sh
  echo "$packages" >"$root/complete"
}

read -ra more <<<"${BAZEL_OPTIONS:-}"
options=(--config=aarch64 --repo_env=CC="$root/gcc" --repo_env=XDG_CACHE_HOME="$root/cache" "${more[@]}")
case $command in
  root)
    make_root
    printf '%q ' "${options[@]}"
    echo
    ;;
  build)
    make_root
    [[ $# -gt 0 ]] || set -- "${PROGRAMS[@]}"
    bazel build "${options[@]}" "$@"
    ;;
  test)
    make_root
    [[ $# -gt 0 ]] || set -- "${UNIT_TESTS[@]}"
    bazel test "${options[@]}" --test_lang_filters=cc --run_under="$root/emulate" \
      --test_filter="-$(IFS=: && echo "${NOT_EMULATED[*]}")" --test_timeout=21600 --keep_going "$@"
    ;;
  compare)
    make_root
    bazel build "${more[@]}" //trainer //trainer/prepare
    bin=$(bazel info "${more[@]}" bazel-bin 2>/dev/null)
    bazel build "${options[@]}" //trainer //trainer/prepare
    arm_bin=$(bazel info "${options[@]}" bazel-bin 2>/dev/null)
    output=$(mktemp --directory "${TMPDIR:-/tmp}/elastor_compare.XXXXXX")
    EMULATOR="${emulator[*]}" tests/system/two_machines.sh "$bin" "$arm_bin" "$output/runs" "$@"
    rm --recursive "$output"
    ;;
  release)
    make_root
    cat >"$root/ldd" <<LDD
#!/bin/sh
ELASTOR_ARM_ROOT="$root" exec "$PWD/tools/cross_aarch64.sh" ldd "\$@"
LDD
    chmod +x "$root/ldd"
    export ELASTOR_MACHINE=aarch64 ELASTOR_STRIP=aarch64-linux-gnu-strip ELASTOR_LDD=$root/ldd XDG_CACHE_HOME=$root/cache
    BAZEL_OPTIONS="${options[*]}" exec tools/release.sh "$@"
    ;;
  *)
    echo "$0: $command: expected root, build, test, compare, run or release" >&2
    exit 2
    ;;
esac
