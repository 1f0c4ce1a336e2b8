#!/usr/bin/env bash
# On a CPU without AVX-512, which QEMU plays, the trainer runs and ends with the digest of this CPU.
# Skipped without Debian's qemu-user. Arguments: the trainer, prepare.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
work=$TEST_TMPDIR
source "$(dirname "$0")/spread_run.sh"

if [[ ${isas[0]} != v3 ]]; then
  echo 'skipped: a CPU without AVX-512; this machine is no x86-64'
  exit 0
fi
if ! type qemu-x86_64 >/dev/null 2>&1; then
  echo 'skipped: a CPU without AVX-512; qemu-x86_64 is not installed (Debian: qemu-user)'
  exit 0
fi
cat >"$work/tiny.textproto" <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 26 blocks: 2 dropout: 0.1 } }
embedding { width: 20 }
training { batch_size: 48 epochs: 1 }
parallel { virtual_shards: 2 }
EXPERIMENT
# QEMU plays every multiply-add in software: two steps are enough, with leaves of 24 rows, then of 8.
make_tiny_data 80

# run NAME [COMMAND...]: trains, by means of the command; must be able to.
run() {
  local name=$1
  shift
  "$@" "$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/data" \
    --output_dir="$work/$name" >"$work/log" 2>&1 || { fail "$name"; cat "$work/log"; }
}
run here
# All that QEMU can play, which AVX-512 is not of.
run avx2 qemu-x86_64 -cpu max
here=$(digest_of "$work/here")
if ! is_digest "$here" || [[ $(digest_of "$work/avx2") != "$here" ]]; then
  fail "here '$here', without AVX-512 '$(digest_of "$work/avx2")'"
fi
if ! grep --quiet '"isa": "v3"' "$work/avx2/summary.json"; then fail 'not the kernels of v3'; fi
expect_line 2 'ELASTOR_ISA=v4: this CPU lacks AVX-512; expected v3' \
  env ELASTOR_ISA=v4 qemu-x86_64 -cpu max "$trainer" --experiment="$work/tiny.textproto" \
  --set=data.path="$work/data" --output_dir="$work/none"
exit "$((failures > 0))"
