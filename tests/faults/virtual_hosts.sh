#!/usr/bin/env bash
# Two hosts, elastor1 and elastor2, as network namespaces with a cable between them. As root:
#
#   virtual_hosts.sh FOLDER up [LEAST MOST]|cut|heal|throttle MBIT|free|delay|prompt|down|probe|probe_delay
#
# up: makes them, and FOLDER/on_host, which runs a command line on one, as ssh would; with LEAST and MOST the
# cable is one that can delay by so many milliseconds (delayed_cable), while a command runs on the first
# host; delay: from now on it does; prompt: no more; down: removes them; probe, probe_delay: whether that can
# be done here.
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
    start=
    if [[ $# -eq 4 ]]; then
      for i in 1 2; do
        ip -netns $space$i tuntap add dev cable mode tap
        ip -netns $space$i link set cable mtu 60000
      done
      start='[[ $host != elastor1 ]] || {'" $(realpath "$(dirname "$0")")/delayed_cable"' $$ '
      start+="${space}1 ${space}2 cable $3 $4 & echo "'$!'" >$folder/cable; }"
    else
      ip link add name cable netns ${space}1 type veth peer name cable netns ${space}2
    fi
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
$start
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
    # The burst is what passes in 0.56 ms. At 1 Gbit/s that is a packet of 64 KiB as the kernel hands it over:
    # smaller bursts would have it cut into frames, one by one, and the cable would carry a third of its rate.
    burst=$(($3 * 70 > 4096 ? $3 * 70 : 4096))
    for i in 1 2; do
      tc -netns $space$i qdisc replace dev cable root tbf rate "$3mbit" burst $burst latency 400ms
    done
    ;;
  free) for i in 1 2; do tc -netns $space$i qdisc delete dev cable root; done ;;
  delay | prompt) kill -USR1 "$(<"$folder/cable")" ;;
  down) down ;;
  probe) "$0" "$folder" up && "$0" "$folder" throttle 10 && down ;;
  probe_delay) "$0" "$folder" up 1 1 && down ;;
esac
