#!/usr/bin/env bash
# A supervised run on two hosts, each a network namespace, that loses one of them: it must go on on the other one
# and end with the digest of a run on one rank; and take the host back when it answers again. By hand, as root:
#
#   TEST_TMPDIR=$(mktemp -d) tests/system/lost_host.sh bazel-bin/trainer/trainer \
#       bazel-bin/trainer/prepare/prepare
#
# Arguments: the trainer, prepare.
set -uo pipefail

trainer=$(realpath "$1")
prepare=$(realpath "$2")
work=$TEST_TMPDIR
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../../tools/environment.sh"
source "$here/spread_run.sh"
hosts() { "$here/../faults/virtual_hosts.sh" "$work" "$@"; }
trap 'hosts down' EXIT
hosts up || exit 1
unset OMPI_MCA_btl
between_hosts=(--mca plm rsh --mca plm_rsh_agent "$work/on_host" --mca oob_tcp_if_include 10.79.0.0/24
  --mca btl_tcp_if_include 10.79.0.0/24 --mca hwloc_base_binding_policy none --mca mpi_yield_when_idle 1)

cat >"$work/long.textproto" <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding { width: 4 }
training { batch_size: 64 epochs: 1000000 max_steps: 2000 eval_every_steps: 1000 }
checkpoint { every_steps: 100 }
spectrum { disabled: true }
parallel { deadline_seconds: 5 }
EXPERIMENT
make_tiny_data 100000
long=("$trainer" --experiment="$work/long.textproto" --set=data.path="$work/data")
"${long[@]}" --output_dir="$work/alone" >"$work/log" 2>&1 || fail "one rank: $(cat "$work/log")"

run=$work/run
# written COUNT: once the run has more than so many checkpoints.
written() {
  until [[ $(grep --count '"event":"checkpoint"' "$run/metrics.jsonl" 2>/dev/null) -gt $1 ]] ||
    ! kill -0 $job; do sleep 0.1; done
}
"$work/on_host" elastor1 timeout $hang_seconds "${long[@]}" --output_dir="$run" --supervise --hosts=elastor1:2,elastor2:2 \
  --launch="'mpirun ${between_hosts[*]}'" >"$work/log" 2>&1 &
job=$!
written 2
hosts cut
cut=$SECONDS
until grep --quiet 'again on 2 ranks of elastor1:2' "$work/log" || ! kill -0 $job; do sleep 0.1; done
printf 'on one host %d s after the cut\n' $((SECONDS - cut))
before=$(grep --count '"event":"checkpoint"' "$run/metrics.jsonl")
written "$before"
hosts heal
sleep 2
kill -KILL "$(pgrep --full "^[^ ]*trainer .*--output_dir=$run .*--nosupervise" | tail --lines=1)" || fail 'no rank to kill'
wait $job
code=$?
grep '^supervise: ' "$work/log"
grep --quiet 'again on 4 ranks of elastor1:2,elastor2:2' "$work/log" || fail 'the host was not taken back'
[[ $code -eq 0 ]] || fail "expected exit code 0, found $code and: $(grep --invert-match '^step ' "$work/log")"
[[ $(digest_of "$run") == "$(digest_of "$work/alone")" ]] || fail 'another digest than on one rank'
exit "$((failures > 0))"
