#!/bin/bash
# What the kernels compiled for AVX-512 define lies in their own namespace: a weak symbol of another
# name could be the one that the linker keeps for everybody, and end a program on a CPU without it.
# usage: isa_symbols_test.sh {NAMESPACE ARCHIVE}...
set -euo pipefail
while [ $# -gt 0 ]; do
  namespace=$1
  archive=$2
  shift 2
  own=" _ZN7elastor${#namespace}$namespace"
  symbols=$(nm --defined-only --extern-only "$archive")
  kernels=$(grep --count " [A-Za-z]$own" <<<"$symbols") || true
  if [ "$kernels" -lt 1 ]; then
    echo "$archive: found $kernels symbols of elastor::$namespace, expected its kernels"
    exit 1
  fi
  if others=$(grep ' [A-Za-z] ' <<<"$symbols" | grep --invert-match "$own"); then
    echo "$archive defines, outside of elastor::$namespace:"
    c++filt <<<"$others"
    exit 1
  fi
done
