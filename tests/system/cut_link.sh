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
hosts=(elastor1 elastor2)
trap 'for host in "${hosts[@]}"; do ip netns delete $host; done 2>/dev/null' EXIT
for host in "${hosts[@]}"; do ip netns add $host || exit 1; done
ip link add name cable netns elastor1 type veth peer name cable netns elastor2 || exit 1
for i in 1 2; do
  echo "10.78.0.$i elastor$i" >>"$work/hosts"
  ip -netns elastor$i address add 10.78.0.$i/24 dev cable
  ip -netns elastor$i link set cable up
  ip -netns elastor$i link set lo up
done
echo '127.0.0.1 localhost' >>"$work/hosts"

# Runs a command line on a host, with its name, its /dev/shm and this /etc/hosts, as ssh would; like ssh
# it does not hear of the command's end across a cut link.
cat >"$work/on_host" <<AGENT
#!/usr/bin/env bash
host=\$1
shift
nsenter --net=/run/netns/\$host unshare --uts --mount --propagation private bash -c '
  hostname "\$1"; mount --bind $work/hosts /etc/hosts; mount --types tmpfs shm /dev/shm
  shift; exec bash -c "\$*"' on_host \$host "\$@"
status=\$?
until [[ \$host == elastor1 ]] || ip -netns elastor1 link show cable | grep --quiet LOWER_UP ||
  ! kill -0 \$PPID; do sleep 1; done
exit \$status
AGENT
chmod +x "$work/on_host"

cat >"$work/endless.textproto" <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding { width: 4 }
training { batch_size: 64 epochs: 1000000 }
spectrum { disabled: true }
EXPERIMENT
make_tiny_data 700

"$work/on_host" elastor1 timeout 120 mpirun -q --mca plm rsh --mca plm_rsh_agent "$work/on_host" \
  --mca oob_tcp_if_include 10.78.0.0/24 --mca btl_tcp_if_include 10.78.0.0/24 \
  --mca hwloc_base_binding_policy none --mca mpi_yield_when_idle 1 --host elastor1:2,elastor2:2 -np 4 \
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
[[ $(wc --lines <<<"$lines") -eq 1 && $lines == *'; waiting for rank 2, 3' ]] ||
  fail 'expected one line that names ranks 2 and 3'
exit "$((failures > 0))"
