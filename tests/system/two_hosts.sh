# Sourced by tests that need two hosts, as root, where the kernel has network namespaces and veth: elastor1 and
# elastor2, joined by a cable. Sets up $work/on_host and between_hosts; takes all away at the end.

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

# mpirun's options by which it uses them.
between_hosts=(--mca plm rsh --mca plm_rsh_agent "$work/on_host" --mca oob_tcp_if_include 10.78.0.0/24
  --mca btl_tcp_if_include 10.78.0.0/24 --mca hwloc_base_binding_policy none --mca mpi_yield_when_idle 1)
