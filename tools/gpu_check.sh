#!/usr/bin/env bash
# Everything that only a GPU can show: parity of device and CPU, NCCL, speed beside its floors and
# beside PyTorch in the same run, compute-sanitizer. Runs from a release made by tools/release.sh
# --cuda --with-mpi --tests, with python3 and torch on the machine, and needs nothing else. One call on any machine,
# then the others on the GPU machine, under 8 minutes each:
#
#   tools/gpu_check.sh reference [OUTPUT_DIR [PREPARED_DATA]]
#       what the CPU says: a training, its AUC and digest, its model's predictions
#   tools/gpu_check.sh tests [OUTPUT_DIR]
#       every device test; trainings beside the reference; then NCCL alone
#   tools/gpu_check.sh speed [OUTPUT_DIR]
#       floors, embedding and training step with the times of their phases, PyTorch
#   tools/gpu_check.sh memcheck|racecheck|initcheck|synccheck [OUTPUT_DIR]
#       this tool of compute-sanitizer on every device test, its cases in shares side by side
#
# PREPARED_DATA: a data set of 13 numeric and 26 categorical fields, as configs/scale.textproto
# expects (without it planted data is made); it is copied. OUTPUT_DIR (gpu_check): a folder for each
# call with the logs of its parts and results.txt, the lines that are printed at the end: name=value,
# then a verdict for everything that was expected. CALL.tar.gz holds the folder. Exit code 0 when
# everything expected was done and holds, else 1; goals of speed have a verdict and no say in it. A
# part that fails or runs out of its time stops no other, and leaves no process behind.
#
# GPU_CHECK_SECONDS (470): what a call may take.
set -u
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
root=$(cd "$(dirname "$0")/.." && pwd)
call=${1:-}
top=${2:-gpu_check}
case $call in
  reference | tests | speed | memcheck | racecheck | initcheck | synccheck) ;;
  *)
    echo "$0: '$call'; expected reference, tests, speed, memcheck, racecheck, initcheck or synccheck" >&2
    exit 2
    ;;
esac
data=
if [[ $call == reference && -n ${3:-} ]]; then
  data=$(realpath -e "$3") || exit 2
fi
mkdir -p "$top"
top=$(realpath "$top")
reference=$top/reference
if [[ $call == tests && ! -e $reference/results.txt ]]; then
  echo "$0: $reference/results.txt: not there; expected what '$0 reference' makes" >&2
  exit 2
fi
cd "$root" || exit 3
out=$top/$call
rm -rf "$out"
mkdir -p "$out"
tests=$root/libexec/tests
export root reference out tests
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export HWLOC_HIDE_ERRORS=2 HWLOC_COMPONENTS=-gl
# What a test prints is read here; under mpirun it would take a terminal for granted.
export GTEST_COLOR=no
readonly limit_s=${GPU_CHECK_SECONDS:-470}
SECONDS=0
results=$out/results.txt
: >"$results"

# --- parts

# The running parts: names, sessions (the process number of their first process), limits.
names=() sessions=() limits=()

# Ends every process of a session, whatever its process group: `timeout` within a part and mpirun's
# ranks have groups of their own.
end_session() { # session
  local stat line fields left=1 looks=100 # a process that waits for a driver outlives SIGKILL
  while ((left && looks--)); do
    left=0
    for stat in /proc/[0-9]*/stat; do
      { read -r line <"$stat"; } 2>/dev/null || continue
      read -ra fields <<<"${line##*) }" # state, parent, group, session
      [[ ${fields[3]} == "$1" && ${fields[0]} != [ZX] ]] || continue
      stat=${stat#/proc/}
      kill -KILL "${stat%/stat}" 2>/dev/null
      left=1
    done
    if ((left)); then sleep 0.05; fi
  done
}
end_all() {
  local session
  for session in ${sessions[@]+"${sessions[@]}"}; do end_session "$session"; done
}
trap end_all EXIT
trap 'exit 1' INT TERM

# start NAME SECONDS COMMAND...: a part in a session of its own; its output goes to NAME.log.
start() {
  local name=$1 seconds=$2
  shift 2
  if ((seconds > limit_s - SECONDS)); then seconds=$((limit_s - SECONDS)); fi
  if ((seconds < 1)); then
    echo "part.$name=left_out" >>"$results"
    return
  fi
  setsid timeout --kill-after=5 "$seconds" bash -c '"$@"' part "$@" >"$out/$name.log" 2>&1 &
  names+=("$name") sessions+=("$!") limits+=("$seconds")
}
# Waits for all parts that run; their name=value lines and ends go to the results.
finish() {
  local i code name
  for i in ${names[@]+"${!names[@]}"}; do
    name=${names[i]}
    wait "${sessions[i]}"
    code=$?
    end_session "${sessions[i]}"
    case $code in
      0) code=ok ;;
      124 | 137) code=out_of_time_after_${limits[i]}s ;;
      *) code=failed_with_$code ;;
    esac
    grep -E '^[a-z][A-Za-z0-9_.]*=[^ ]*$' "$out/$name.log" | sed "s/^/$name./" >>"$results"
    echo "part.$name=$code" >>"$results"
    echo "[$SECONDS s] $name: $code"
  done
  names=() sessions=() limits=()
}
part() {
  start "$@"
  finish
}

# --- what the parts do

# Every device test of the release, some at a time, its cases in shares side by side, under
# ELASTOR_RUN_WITH: the largest exit code, and 77 when none of its cases ran.
on_tests() { # logs' prefix, seconds for each, shares, arguments...
  local prefix=$1 seconds=$2 shares=$3
  shift 3
  export prefix seconds shares
  xargs -P 4 -I '{}' bash -c '
    log=$out/$prefix.$1.log
    : >"$log"
    for ((share = 0; share < shares; ++share)); do
      GTEST_TOTAL_SHARDS=$shares GTEST_SHARD_INDEX=$share timeout --kill-after=5 "$seconds" \
        "$root/bin/run" "tests/$@" >"$log.$share" 2>&1 &
      running[share]=$!
    done
    code=0
    for share in "${!running[@]}"; do
      wait "${running[share]}"
      ended=$?
      ((ended <= code)) || code=$ended
      cat "$log.$share" >>"$log" && rm "$log.$share"
    done
    [[ $code != 0 ]] || grep -q "\[  PASSED  \] [1-9]" "$log" || code=77
    echo "$1=$code"' on_test '{}' "$@" <"$tests/device_tests"
}
# Of our kernels alone, except that initcheck must see what CUB and cuBLAS write. Racecheck makes
# cuBLAS's tensor-core kernels fault (CUDA 13.0 on an H100), so the cases that run them are left out.
sanitizer() { # tool
  command -v compute-sanitizer >/dev/null || return 3
  local options=(--kernel-name kns=elastor) left_out='*Death*'
  case $1 in
    memcheck) options+=(--track-stream-ordered-races all) ;;
    racecheck) left_out+=:MatmulTest.*:*RoundedProducts*:*LowerPrecision* ;;
    initcheck) options=() ;;
  esac
  ELASTOR_RUN_WITH="compute-sanitizer --tool $1 ${options[*]} --error-exitcode 9" \
    on_tests "$1" 450 4 "--gtest_filter=-$left_out"
}
# Ranks that share the device, over NCCL: each says that it is a host of its own.
on_ranks() { # ranks, program...
  local ranks=$1
  shift
  bin/mpirun --mca orte_execute_quiet 1 --oversubscribe --bind-to none -np "$ranks" bash -c \
    'NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 exec "$@"' \
    rank bin/run "$@"
}
nccl_test() { # ranks
  on_ranks "$1" tests/device_communicator_test --schedule=lazy_shuffled >"$out/nccl.$1.log" 2>&1
  local code=$?
  [[ $code != 0 ]] || grep -q '\[  PASSED  \] [1-9]' "$out/nccl.$1.log" || code=77
  echo "ranks$1=$code"
}
# A run of the trainer and numbers of its summary.
run() { # name, command before trainer..., --, flags...
  local name=$1
  shift
  local before=()
  while [[ $1 != -- ]]; do before+=("$1") && shift; done
  shift
  "${before[@]}" "$@" --output_dir="$out/$name" >"$out/run_$name.log" 2>&1
  echo "$name.code=$?"
  python3 -c '
import json, sys
summary = json.load(open(sys.argv[2]))
for key in ("auc", "logloss", "samples_per_s", "state_digest"):
    print(f"{sys.argv[1]}.{key}={summary[key]}")
' "$name" "$out/$name/summary.json"
}
flags_of() { # data folder
  experiment=configs/quickstart.textproto
  [[ ! -e $1/is_given ]] || experiment=configs/scale.textproto
  flags=(--experiment="$experiment" --set=data.path="$1/data" --set=spectrum.disabled=true
    --set=checkpoint.disabled=true)
}
make_reference() { # prepared data, or nothing
  if [[ -n $1 ]]; then
    cp -r "$1" "$out/data" && touch "$out/is_given" || return
  else
    bin/prepare --schema=configs/quickstart_schema.textproto --output_dir="$out/data" || return
  fi
  flags_of "$out"
  run cpu bin/trainer -- "${flags[@]}" || return
  run cpu_predictions bin/trainer -- "${flags[@]}" --mode=predict --model="$out/cpu/model" \
    --split=test
}
training() {
  flags_of "$reference"
  flags+=(--device=cuda)
  run cuda bin/trainer -- "${flags[@]}"
  run cuda_predictions bin/trainer -- "${flags[@]}" --mode=predict --split=test \
    --model="$reference/cpu/model"
  run cuda_tf32 bin/trainer -- "${flags[@]}" --set=training.precision=TF32
  run cuda_bfloat16 bin/trainer -- "${flags[@]}" --set=training.precision=BFLOAT16
  run cuda_no_overlap bin/trainer -- "${flags[@]}" --set=parallel.overlap=false
  run cuda_2_ranks bin/mpirun --mca orte_execute_quiet 1 --oversubscribe --bind-to none -np 2 bin/trainer -- "${flags[@]}"
}
nccl() {
  nccl_test 2
  nccl_test 3
  flags_of "$reference"
  flags+=(--device=cuda --set=training.max_steps=200)
  run one_rank bin/trainer -- "${flags[@]}"
  run two_ranks on_ranks 2 trainer -- "${flags[@]}"
}
benchmark() { # NAME SECONDS PROGRAM ARGUMENT...
  part "$1" "$2" bin/run "tests/$3" "${@:4}"
}

# --- the calls

export -f on_tests on_ranks nccl_test run flags_of make_reference training nccl sanitizer
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null |
  sed 's/, /,/g; s/ /_/g; s/^/machine.gpu=/' >>"$results"
echo "machine.cores=$(nproc)" >>"$results"
case $call in
  reference)
    part reference 400 make_reference "$data"
    ;;
  tests)
    # What is not timed runs side by side; ranks that wait for each other on one GPU do not.
    start test 250 on_tests test 240 1
    start training 250 training
    finish
    part nccl 200 nccl
    ;;
  speed)
    benchmark floor 60 cuda_floor_benchmark
    benchmark embedding 40 cuda_embedding_benchmark
    for precision in FLOAT32 TF32 BFLOAT16; do
      benchmark step.4096.$precision 15 cuda_train_step_benchmark --batch=4096 \
        --set=training.precision=$precision
      benchmark step.65536.$precision 15 cuda_train_step_benchmark --batch=65536 --shards=64 \
        --set=training.precision=$precision
    done
    # In fast mode the number of leaves, and whether the per-token network is fused, is a matter of
    # speed alone: its best is the one to beat.
    for shards in 1 8 64; do
      for fused in true false; do
        benchmark fast.65536.FLOAT32.fused_$fused.shards_$shards 15 cuda_train_step_benchmark \
          --batch=65536 --shards=$shards --fused_network=$fused --set=parallel.reproducible=false
      done
    done
    part torch_embedding 40 python3 tools/peers/torch_embedding.py
    part torch_step 120 python3 tools/peers/torch_train_step.py --modes=eager,compile \
      --batches=4096 --embedding_optimizers=sparse --seconds=90
    ;;
  *)
    part "$call" 460 sanitizer "$call"
    ;;
esac
python3 tools/gpu_check_table.py "$call" "$top" "$tests/device_tests"
code=$?
tar --create --gzip --directory="$top" --file="$top/$call.tar.gz" "$call"
echo "$top/$call.tar.gz"
exit $code
