#!/usr/bin/env bash
# tools/gpu_check.sh and its table in a release whose programs are fakes: every call passes when all
# that is expected is there, and fails, naming it, when any of it fails, is skipped, hangs, never
# starts or is missing; and nothing that a call started is left behind.
set -uo pipefail

sources=$PWD/tools
release=$TEST_TMPDIR/release
mkdir --parents "$release"/{bin,tools/peers,libexec/tests,path}
cp --dereference "$sources"/gpu_check.sh "$sources"/gpu_check_table.py "$release/tools/"
cp --dereference "$sources/release_run.sh" "$release/bin/run"
chmod +x "$release"/bin/run
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# program PATH: a script of the release, from stdin. FAULT in the environment says what goes wrong: '[FAULT][FAULT]...'.
program() {
  { echo '#!/usr/bin/env bash' && cat; } >"$release/$1"
  chmod +x "$release/$1"
}
for name in trainer prepare mpirun; do ln -s run "$release/bin/$name"; done
program libexec/prepare <<<':'
program libexec/mpirun <<'FAKE'
while [[ $1 != -np ]]; do shift; done
OMPI_COMM_WORLD_RANK=0 exec "${@:3}"
FAKE
program libexec/trainer <<'FAKE'
for argument in "$@"; do
  [[ $argument != --output_dir=* ]] || out=${argument#*=}
done
mkdir --parents "$out/model"
auc=0.75 digest=d probability=0.25
[[ $FAULT != *"[auc ${out##*/}]"* ]] || auc=0.7502
[[ $FAULT != *"[digest ${out##*/}]"* ]] || digest=e
[[ $FAULT != *"[predictions ${out##*/}]"* ]] || probability=0.2501
[[ $FAULT != *"[run ${out##*/}]"* ]] || exit 3
echo '{"auc": '$auc', "logloss": 0.5, "samples_per_s": 7, "state_digest": "'$digest'"}' >"$out/summary.json"
printf 'index,label,probability\n0,1,%s\n1,0,0.5\n' $probability >"$out/predictions.csv"
FAKE
tests=(a_test b_test c_test d_test e_test device_communicator_test)
printf '%s\n' "${tests[@]}" >"$release/libexec/tests/device_tests"
for name in "${tests[@]}"; do
  program "libexec/tests/$name" <<'FAKE'
name=${0##*/}
case $FAULT in
  *"[fail $name]"*) exit 1 ;;
  *"[nccl $name]"*) [[ -z ${NCCL_HOSTID:-} ]] || exit 1 ;;
  *"[skip $name]"*) echo '[  PASSED  ] 0 tests.' && exit ;;
  *"[hang $name]"*)
    sleep 300 &
    echo $$ $! >>"$PROCESSES"
    wait
    ;;
esac
echo '[  PASSED  ] 3 tests.'
FAKE
done
program libexec/tests/cuda_floor_benchmark <<'FAKE'
[[ $FAULT != *'[floor]'* ]] || exit 1
printf '%s\n' float32_tflops=50 tf32_tflops=400 bfloat16_tflops=800 device_copy_gb_per_s=4000
for precision in FLOAT32 TF32 BFLOAT16; do
  [[ $FAULT == *"[no gate $precision]"* ]] ||
    printf '%s\n' gate_{forward,backward}."${precision}_ms=0.25"
  case $FAULT in
    *"[no network $precision]"*) ;;
    *"[no room $precision]"*) echo "gated_network.$precision=by_products" ;;
    *) printf '%s\n' gated_network_{forward=2,backward=4} | sed "s/=/.${precision}_ms=/" ;;
  esac
done
for layer in tokenizer mixing up_proj down_proj shortcut; do
  for pass in forward dx dw; do
    for precision in FLOAT32 TF32 BFLOAT16; do echo "${layer}_$pass.${precision}_ms=0.5"; done
  done
done
FAKE
program libexec/tests/cuda_embedding_benchmark <<'FAKE'
for width in 16 128; do
  for pass in forward backward; do echo "float32_width_${width}_${pass}_useful_share=0.5"; done
done
FAKE
program libexec/tests/cuda_train_step_benchmark <<'FAKE'
[[ $FAULT != *'[fast products]'* || $* != *--fused_network=false* ]] && rate=1000000 || rate=1100000
echo samples_per_s=$rate
[[ $FAULT != *'[phases]'* ]] || exit 0
printf '%s_ms=1\n' lookup compute reduce route_gradients scalars update
echo ms_per_step=70
FAKE
cat >"$release/tools/peers/torch_embedding.py" <<<'print("peer=torch pass=forward width=16 useful_gb_per_s=1000")'
cat >"$release/tools/peers/torch_train_step.py" <<'FAKE'
import os
for mode in ("eager", "compile"):
    for precision in ("fp32", "tf32", "bf16"):
        if f"[torch {mode} {precision}]" not in os.environ["FAULT"]:
            print(f"mode={mode} precision={precision} batch=4096 samples_per_s=100000")
FAKE
# compute-sanitizer OPTIONS... PROGRAM ARGUMENT...
program path/compute-sanitizer <<'FAKE'
tool=$2
while [[ $1 != /* ]]; do shift; done
[[ $FAULT != *"[hazard $tool ${1##*/}]"* ]] || exit 9
exec "$@"
FAKE
# Without the toolkit's folder a sanitizer of the machine would take the place of a missing fake.
PATH=$release/path:/usr/bin:/bin
export PROCESSES=$TEST_TMPDIR/processes

# expect CODE LINE CALL [FAULTS [SECONDS]]: the call's exit code, and a line that begins like that.
expect() {
  local line
  : >"$PROCESSES"
  FAULT=${4:-} GPU_CHECK_SECONDS=${5:-60} "$release/tools/gpu_check.sh" "$3" "$TEST_TMPDIR/out" \
    >"$TEST_TMPDIR/log" 2>&1
  local code=$?
  line=$(grep --fixed-strings --max-count=1 -- "$2" "$TEST_TMPDIR/log")
  [[ $code == "$1" && -n $line ]] && return
  fail "$3 with the fault '${4:-none}': expected code $1 and '$2', found $code and:"
  cat "$TEST_TMPDIR/log"
}
# also LINE...: of the last call.
also() {
  local line
  for line in "$@"; do
    grep --quiet --fixed-strings -- "$line" "$TEST_TMPDIR/log" || fail "no '$line'"
  done
}
# No process that a fake wrote down lives on; those that ended may wait for their parent.
expect_no_process() {
  local process state
  [[ -s $PROCESSES ]] || fail "$1: nothing hung"
  for process in $(<"$PROCESSES"); do
    state=$(sed 's/.*) \(.\).*/\1/' "/proc/$process/stat" 2>/dev/null)
    [[ -z $state || $state == [ZX] ]] || fail "$1: process $process is left ($state)"
  done
}

expect 2 "out/reference/results.txt: not there" tests
expect 1 'part reference ended well: NO' reference '[run cpu]'
expect 0 'cpu_predictions ended well: yes' reference

expect 0 'test: every device test ran and passed: yes (6 of 6)' tests
[[ -s $TEST_TMPDIR/out/tests.tar.gz ]] || fail 'no archive'
expect 0 'auc_difference.cuda_tf32=0.0002' tests '[auc cuda_tf32]'
expect 1 'test: b_test failed with 1' tests '[fail b_test]'
expect 1 'FP32: AUC within 0.0001 of the CPU' tests '[auc cuda][digest two_ranks]'
also 'same bits: nccl.one_rank and nccl.two_ranks: NO (d e)'
expect 1 'test: b_test no test of it ran' tests '[skip b_test][predictions cuda_predictions][digest cuda_2_ranks]'
also "the CPU's model predicts within 1e-05 of the CPU: NO" \
  'same bits: training.cuda and training.cuda_2_ranks: NO (d e)'
expect 1 "NCCL's tests on 2 ranks passed: NO (1)" tests \
  '[nccl device_communicator_test][run two_ranks][run cuda_bfloat16]'
also 'same bits: nccl.one_rank and nccl.two_ranks: NO (missing)' \
  'training cuda_bfloat16 ended well: NO (3)'
for name in a b c d; do hanging+="[hang ${name}_test]"; done
expect 1 'test: e_test did not start' tests "$hanging" 2
expect_no_process 'tests that hang'
also 'test: a_test did not end in its time' 'part nccl ended well: NO (left_out)'
mv "$release/libexec/tests/c_test" "$TEST_TMPDIR/"
expect 1 'test: c_test failed with 2' tests
mv "$TEST_TMPDIR/c_test" "$release/libexec/tests/"
mv "$release/libexec/tests/device_tests" "$TEST_TMPDIR/"
expect 1 'device tests are in the release: NO' tests
mv "$TEST_TMPDIR/device_tests" "$release/libexec/tests/"

# A call that is ended ends what it started.
: >"$PROCESSES"
FAULT='[hang a_test]' "$release/tools/gpu_check.sh" tests "$TEST_TMPDIR/out" >/dev/null 2>&1 &
check=$!
until [[ -s $PROCESSES ]]; do sleep 0.05; done
kill -TERM $check
wait $check
expect_no_process 'a call that is ended'

expect 0 'step.65536.TF32: 70.000 ms, floor' speed
also 'above it, largest first: waiting for the host and for ids 64.000' \
  'goal: batch 4,096 FLOAT32: at least 10 times PyTorch eager: reached (10)'
also 'best fast mode: reached (1)'
expect 0 'best fast mode: NOT reached (1.1)' speed '[fast products]'
for precision in FLOAT32 TF32 BFLOAT16; do
  grep --quiet "^gated_network.$precision.times_its_products=1.2" "$TEST_TMPDIR/log" ||
    fail "the $precision per-token network is not compared with its products"
done
expect 1 'the FLOAT32 per-token network was timed: NO (missing)' speed \
  '[no network FLOAT32][no network BFLOAT16][no gate TF32][torch compile tf32]'
also 'the BFLOAT16 per-token network was timed: NO (missing)' \
  'its TF32 products and gate were timed: NO (missing)' \
  'PyTorch compile tf32 at 4,096 was measured: NO (missing)'
expect 0 'TF32: the device has no room for the per-token network as one kernel' speed '[no room TF32]'
grep --quiet '^step.65536.TF32.products_ms' "$TEST_TMPDIR/log" || fail 'no products without a kernel'
grep --quiet '^gated_network.TF32' "$TEST_TMPDIR/log" && fail 'a ratio without a kernel'
expect 1 'part floor ended well: NO (failed_with_1)' speed '[floor]'
expect 1 'step.4096.FLOAT32 has its times: NO' speed '[phases]'

for tool in memcheck racecheck initcheck synccheck; do
  expect 0 "$tool: every device test ran and passed: yes (6 of 6)" $tool
done
expect 1 'racecheck: d_test failed with 9' racecheck '[hazard racecheck d_test]'
expect 1 'synccheck: d_test no test of it ran' synccheck '[skip d_test]'
expect 1 'initcheck: a_test did not end in its time' initcheck '[hang a_test]' 2
expect_no_process 'sanitizers that hang'
mv "$release/path/compute-sanitizer" "$TEST_TMPDIR/"
expect 1 'memcheck: a_test did not start' memcheck
exit $((failures > 0))
