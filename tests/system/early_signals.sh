#!/usr/bin/env bash
# Signals in a job's first second: SIGINT, SIGTERM or SIGUSR1 to one rank, to all ranks or to mpirun, at a
# random moment. No job may hang or leave a rank behind. Ranks end in order, so that the job's code is 75, or
# 128 + the signal where the system was still loading a rank ("loading"), or mpirun's own: 1 after SIGINT or
# SIGTERM to it; where it does not handle signals yet, 128 + the signal, or the job trains on and is sent
# another SIGUSR1 ("lost").
# Prints how often each came; a test runs a few, by hand many:
#
#   TEST_TMPDIR=$(mktemp -d) tests/system/early_signals.sh bazel-bin/trainer/trainer \
#       bazel-bin/trainer/prepare/prepare 200 1
#
# Arguments: the trainer, prepare, [how many jobs, [the seed of the random moments]].
set -uo pipefail

trainer=$(realpath "$1")
prepare=$(realpath "$2")
jobs=${3:-10}
RANDOM=${4:-1}
work=$TEST_TMPDIR
source "$(dirname "$0")/spread_run.sh"

cat >"$work/endless.textproto" <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding { width: 4 }
training { batch_size: 64 epochs: 1000000 }
spectrum { disabled: true }
EXPERIMENT
make_tiny_data 700

pick() { # WORD...: one of them
  local words=("$@")
  picked=${words[RANDOM % $#]}
}

# ranks_of MPIRUN: the process ids of its ranks.
ranks_of() { pgrep --parent "$1" --full -- --output_dir; }

# loading PROCESS SIGNAL: whether the trainer does not run there yet: no handler, and no thread of MPI's either.
loading() {
  local caught threads number
  caught=$(sed --quiet 's/^SigCgt:\t//p' "/proc/$1/status" 2>/dev/null)
  threads=$(sed --quiet 's/^Threads:\t//p' "/proc/$1/status" 2>/dev/null)
  number=$(kill -l "$2")
  ((threads == 1 && !(0x${caught:-0} >> (number - 1) & 1)))
}

gone() { # PROCESS
  ! kill -0 "$1" 2>/dev/null
}

declare -A outcomes
for ((i = 0; i < jobs; ++i)); do
  pick INT TERM USR1 && signal=$picked
  pick one all mpirun && target=$picked
  pick 2 3 4 && ranks=$picked
  moment=$((RANDOM % 1000))
  delay=$(printf '0.%03d' $((moment * moment / 1000))) # a third in the first tenth of the second
  set -m # mpirun gets a process group of its own, in which SIGINT is not ignored
  mpirun --mca orte_execute_quiet 1 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np "$ranks" "$trainer" \
    --experiment="$work/endless.textproto" --set=data.path="$work/data" \
    --output_dir="$work/run$i" >"$work/log" 2>&1 </dev/null &
  mpirun=$!
  set +m
  [[ $target == mpirun ]] || until ranks_of $mpirun >/dev/null; do sleep 0.01; done
  sleep "$delay"
  mapfile -t processes < <(ranks_of $mpirun)
  case $target in
    mpirun) targets=("$mpirun") ;;
    one) targets=("${processes[RANDOM % ${#processes[@]}]}") ;;
    all) targets=("${processes[@]}") ;;
  esac
  outcome=
  if [[ $target != mpirun ]]; then
    for process in "${targets[@]}"; do
      if loading "$process" "$signal"; then outcome=loading,; fi
    done
  fi
  kill -"$signal" "${targets[@]}" 2>/dev/null
  sleep 0.3
  mapfile -t -O ${#processes[@]} processes < <(ranks_of $mpirun)
  what="job $i: SIG$signal to $target of $ranks ranks after $delay s"
  for ((waited = 0; waited < hang_seconds * 10; ++waited)); do
    gone $mpirun && break
    if [[ $waited -eq 100 && $target == mpirun && $signal == USR1 && -s $work/run$i/metrics.jsonl ]]; then
      outcome=lost,
      kill -USR1 $mpirun
    fi
    sleep 0.1
  done
  if ! gone $mpirun; then
    fail "$what: still there after $hang_seconds s"
    kill -KILL "${processes[@]}" $mpirun 2>/dev/null
    wait $mpirun 2>/dev/null
    outcome+=hang
  else
    wait $mpirun 2>/dev/null
    outcome+=$?
    for process in "${processes[@]}"; do
      wait_until gone "$process" || fail "$what: rank process $process outlived mpirun"
    done
  fi
  case $outcome in
    75 | lost,75 | loading,*) ;;
    1) [[ $target == mpirun && $signal != USR1 ]] || fail "$what: exit code 1" ;;
    130 | 138 | 143) [[ $target == mpirun ]] || fail "$what: $outcome" ;;
    *) fail "$what: $outcome: $(head --lines=3 "$work/log")" ;;
  esac
  key="$signal to $target: $outcome"
  outcomes[$key]=$((${outcomes[$key]:-0} + 1))
  rm -rf "$work/run$i"
done

for key in "${!outcomes[@]}"; do printf '%4d  %s\n' "${outcomes[$key]}" "$key"; done | sort --key=2
exit "$((failures > 0))"
