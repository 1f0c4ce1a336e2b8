#!/usr/bin/env bash
# Installs the Debian 12 packages that building, testing and running need, and those named as
# arguments. Says which they are and how long it took; silent and quick when all are there:
#
#   tools/install_packages.sh [PACKAGE ...]
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi

packages=(
  bazel-bootstrap
  bazel-rules-java
  ca-certificates
  g++
  git
  libboost-dev
  libeigen3-dev
  libfast-float-dev
  libgflags-dev
  libgmock-dev
  libgoogle-glog-dev
  libgtest-dev
  liblzma-dev
  libmpich-dev
  libonnx-dev
  libopenmpi-dev
  libprotobuf-dev
  libxml2-dev
  libxxhash-dev
  libzstd-dev
  mpich
  nlohmann-json3-dev
  openmpi-bin
  pkgconf
  procps
  protobuf-compiler
  python3-numpy
  zlib1g-dev
)

# A package without this line is unknown, removed or half installed.
states=$(dpkg-query --show --showformat='${Package} ${db:Status-Status}\n' "${packages[@]}" "$@" 2>/dev/null || true)
missing=()
for package in "${packages[@]}" "$@"; do
  grep --quiet --line-regexp --fixed-strings "$package installed" <<<"$states" || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "$0: these packages are missing; install them as root: ${missing[*]}" >&2
    exit 2
  fi
  as_root=(sudo)
fi
echo "$0: installing ${#missing[@]} packages: ${missing[*]}"
apt_get() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 "$@"
}
# Java's packages put links there, and images without manual pages lack it.
"${as_root[@]}" mkdir --parents /usr/share/man/man1
status=0
{ apt_get update && apt_get install --yes --no-install-recommends "${missing[@]}" >/dev/null; } || status=$?
if [[ $status -ne 0 ]]; then
  echo "$0: apt-get ended with exit code $status after $SECONDS s; these packages are missing: ${missing[*]}" >&2
  exit "$status"
fi
echo "$0: installed ${#missing[@]} packages in $SECONDS s"
