#!/usr/bin/env bash
# kernel_sass.py on listings of a fake cuobjdump: what it counts, and that it names every broken limit.
set -uo pipefail

export CUOBJDUMP=$TEST_TMPDIR/cuobjdump LISTING=$TEST_TMPDIR/listing
cat >"$CUOBJDUMP" <<'FAKE'
#!/usr/bin/env bash
[[ $* == "-sass -arch sm_90 program" ]] || exit 1
cat "$LISTING"
FAKE
chmod +x "$CUOBJDUMP"
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# kernel MANGLED_NAME INSTRUCTION...
kernel() {
  printf '\t\tFunction : %s\n\t.headerflags\t@"EF_CUDA_SM90"\n' "$1"
  printf '        /*0010*/                   %s ;   /* 0x000fe20000000f00 */\n' "${@:2}"
}
# many COUNT INSTRUCTION: into the array `made`.
many() { for ((i = 0; i < $1; ++i)); do made+=("$2"); done; }

# listing [PLAIN_INSTRUCTION [TENSOR_PRODUCTS [FMAS]]]
listing() {
  local made=()
  kernel _ZN7elastor4cuda11PlainKernelEv "${1:-NOP}" 'LDG.E.128.CONSTANT R4, desc[UR4][R2.64]' \
    '@!P0 LDG.E.64 R4, [R2]' 'LDG.E R4, [R2.64]' 'LDG.E.U16 R4, [R2.64]' 'LDS.128 R8, [R4]' \
    'LDS R8, [R4]' '@P1 STG.E.128 desc[UR4][R2.64], R8' 'BAR.SYNC.DEFER_BLOCKING 0x0' \
    '@!UPT UIADD3 UR4, URZ, URZ, URZ' 'MUFU.RCP R3, R2'
  many "${2:-8}" 'HMMA.1688.F32.TF32 R4, R8, R12, R4'
  kernel _ZN7elastor4cuda19TensorForwardKernelIfEEvv "${made[@]}"
  made=()
  many "${3:-280}" 'FFMA.FTZ R4, R8, R12, R4'
  many 24 'LDS.128 R8, [R4]'
  kernel _ZN7elastor4cuda13ForwardKernelILi1EEEvv "${made[@]}"
  kernel _ZN3cub4SortI7elastorEEvv 'STL [R1], R2'
}
# expect CODE LINE: of a run on the listing.
expect() {
  python3 tests/tools/kernel_sass.py program >"$TEST_TMPDIR/log" 2>&1
  local code=$?
  [[ $code == "$1" ]] && grep --quiet --fixed-strings --line-regexp -- "$2" "$TEST_TMPDIR/log" &&
    return
  fail "expected code $1 and '$2', found $code and:"
  cat "$TEST_TMPDIR/log"
}

listing >"$LISTING"
expect 0 'kernel,ldg_128,ldg_64,ldg_32,ldg_narrow,lds_128,lds_other,stg,ffma,hmma,doubles,bar,stack'
expect 0 '"PlainKernel",1,1,1,1,1,1,1,0,0,0,1,0'
expect 0 '"TensorForwardKernel<float>",0,0,0,0,0,0,0,0,8,0,0,0'
expect 0 '3 kernels, 0 limits broken'
for instruction in 'LDL R2, [R1]' '@P0 STL.64 [R1], R2'; do
  listing "$instruction" >"$LISTING"
  expect 1 'PlainKernel: stack 1; expected none'
done
for instruction in 'DFMA R2, R4, R6, R8' 'DADD R2, R4, R6' 'DMUL R2, R4, R6' 'MUFU.RCP64H R2, R3'; do
  listing "$instruction" >"$LISTING"
  expect 1 'PlainKernel: doubles 1; expected none'
done
listing 'HMMA.16816.F32.BF16 R4, R8, R12, R4' >"$LISTING"
expect 1 'PlainKernel: hmma 1; expected none'
listing NOP 7 >"$LISTING"
expect 1 'TensorForwardKernel<float>: hmma 7; expected at least 8'
listing NOP 8 279 >"$LISTING"
expect 1 'ForwardKernel<1>: ffma 279; expected at least 280'
kernel _ZN7elastor4cuda11PlainKernelEv NOP >"$LISTING"
expect 1 "'(Forward|Backward)Kernel<\\d+>': no kernel is called so"
printf '#!/bin/sh\necho no code >&2\nexit 255\n' >"$CUOBJDUMP"
expect 1 'program: no code'
CUOBJDUMP=$TEST_TMPDIR/none
expect 77 'no cuobjdump: CUOBJDUMP, CUDA_HOME/bin, PATH and /usr/local/cuda/bin have none'
exit $((failures > 0))
