#!/usr/bin/env bash
# Two hosts, elastor1 and elastor2, as network namespaces with a cable between them. As root:
#
#   virtual_hosts.sh FOLDER up|cut|heal|throttle MBIT|down|probe
#
# up: makes them, and FOLDER/on_host, which runs a command line on one, as ssh would; down: removes them;
# probe: whether all that can be done here.
set -euo pipefail
folder=$1
space=elastor$(cksum <<<"$folder" | cut --delimiter=' ' --fields=1)- # of the namespaces' names

down() {
  for i in 1 2; do ip netns delete $space$i 2>/dev/null || true; done
}

case $2 in
  up)
    down
    echo '127.0.0.1 localhost' >"$folder/hosts"
    for i in 1 2; do ip netns add $space$i; done
    ip link add name cable netns ${space}1 type veth peer name cable netns ${space}2
    for i in 1 2; do
      echo "10.79.0.$i elastor$i" >>"$folder/hosts"
      ip -netns $space$i address add 10.79.0.$i/24 dev cable
      ip -netns $space$i link set cable up
      ip -netns $space$i link set lo up
    done
    # With the host's name, its /dev/shm and this /etc/hosts. Like ssh it does not hear of the command's
    # end across a cut link.
    cat >"$folder/on_host" <<AGENT
#!/usr/bin/env bash
host=\$1
shift
nsenter --net=/run/netns/${space}\${host#elastor} unshare --uts --mount --propagation private bash -c '
  hostname "\$1"; mount --bind $folder/hosts /etc/hosts; mount --types tmpfs shm /dev/shm
  mkdir --parents "\${OMPI_MCA_btl_vader_backing_directory:-/dev/shm}"
  shift; exec bash -c "\$*"' on_host \$host "\$@"
status=\$?
until [[ \$host == elastor1 ]] || ip -netns ${space}1 link show cable | grep --quiet LOWER_UP ||
  ! kill -0 \$PPID; do sleep 1; done
exit \$status
AGENT
    chmod +x "$folder/on_host"
    ;;
  cut) ip -netns ${space}2 link set cable down ;;
  heal) ip -netns ${space}2 link set cable up ;;
  throttle)
    for i in 1 2; do
      tc -netns $space$i qdisc replace dev cable root tbf rate "$3mbit" burst 32kbit latency 400ms
    done
    ;;
  down) down ;;
  probe) "$0" "$folder" up && "$0" "$folder" throttle 10 && down ;;
esac
