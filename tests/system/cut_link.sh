#!/usr/bin/env bash
# A cut link between two hosts: four ranks on two network namespaces, whose cable is pulled while they train.
# With the keepalive of tools/environment.sh the job must end within the deadline and 10 s more, with one
# line. By hand, as root, where the kernel has network namespaces and veth:
#
#   TEST_TMPDIR=$(mktemp -d) tests/system/cut_link.sh bazel-bin/trainer/trainer \
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

readonly deadline=5
source "$here/two_hosts.sh"

cat >"$work/endless.textproto" <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding { width: 4 }
training { batch_size: 64 epochs: 1000000 }
spectrum { disabled: true }
EXPERIMENT
make_tiny_data 700

"$work/on_host" elastor1 timeout 120 mpirun -q "${between_hosts[@]}" --host elastor1:2,elastor2:2 -np 4 \
  "$trainer" --experiment="$work/endless.textproto" --set=data.path="$work/data" \
  --output_dir="$work/run" --set=parallel.deadline_seconds=$deadline >"$work/log" 2>&1 &
until grep --quiet train "$work/run/metrics.jsonl" 2>/dev/null || ! kill -0 $!; do sleep 0.1; done
ip -netns elastor2 link set cable down
cut=$SECONDS
wait $!
code=$?
printf 'exit code %d, %d s after the cut\n' $code $((SECONDS - cut))
lines=$(grep '^elastor: ' "$work/log")
echo "$lines"
[[ $code -ne 0 && $((SECONDS - cut)) -le $((deadline + 10)) ]] || fail "expected an end within $((deadline + 10)) s"
[[ $(wc --lines <<<"$lines") -eq 1 && $lines == *'; waiting for rank 2, 3; ranks 2-3 on elastor2: no word, stopped or cut off'* ]] ||
  fail 'expected one line that names ranks 2 and 3'
exit "$((failures > 0))"
