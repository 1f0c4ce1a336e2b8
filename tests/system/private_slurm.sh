# Sourced by tests through Slurm, after spread_run.sh: a cluster of its own on this one machine, two hosts and a controller as
# network namespaces with a bridge between them, daemons of Debian's packages, all state in $cluster.
# Nothing of the machine's own network, of /etc or of /var is used, so a cluster that is there is not met.
#
#   source private_slurm.sh && start_slurm DIRECTORY; at EXIT stop_slurm
#
# Needs root; skip_without_slurm says what is missing, and ends the test well.

hosts=2
prefix=el$$- # Of namespaces and hosts; short, for names of network interfaces are.
export PATH=$PATH:/usr/sbin:/sbin

skip_without_slurm() {
  local program
  for program in slurmctld slurmd munged srun sbatch squeue ip nsenter unshare mpirun; do
    command -v "$program" >/dev/null || skip "$program is not installed"
  done
  [[ $(id --user) -eq 0 ]] || skip 'not root'
  ip netns add "${prefix}try" 2>/dev/null && ip netns delete "${prefix}try" || skip 'no network namespaces'
  unshare --uts --mount true 2>/dev/null || skip 'no mount namespaces'
}
skip() {
  echo "SKIPPED: tests through Slurm: $1"
  exit 0
}

# on HOST COMMAND...: HOST 0 is the controller and the login node.
on() {
  local host=$prefix$1
  shift
  # Not `ip netns exec`, whose new /sys hides the control groups that slurmd looks for.
  nsenter --net="/run/netns/$host" -- unshare --uts --mount --propagation private -- bash -c '
    hostname "$1" && mount --bind "$2/hosts" /etc/hosts && mount -t tmpfs -o mode=1777 shm /dev/shm &&
      shift 2 && exec "$@"' on "$host" "$cluster" "$@"
}

make_hosts() {
  local i
  echo '127.0.0.1 localhost' >"$cluster/hosts"
  for ((i = 0; i <= hosts; i++)); do
    echo "10.79.0.$((100 + i)) $prefix$i" >>"$cluster/hosts"
    ip netns add "$prefix$i" && ip -n "$prefix$i" link set lo up || return 1
  done
  ip -n "${prefix}0" link add br0 type bridge stp_state 0 forward_delay 0 &&
    ip -n "${prefix}0" address add 10.79.0.100/24 dev br0 && ip -n "${prefix}0" link set br0 up || return 1
  for ((i = 1; i <= hosts; i++)); do
    ip -n "${prefix}0" link add "p$i" type veth peer name eth0 netns "$prefix$i" &&
      ip -n "${prefix}0" link set "p$i" master br0 up &&
      ip -n "$prefix$i" address add "10.79.0.$((100 + i))/24" dev eth0 &&
      ip -n "$prefix$i" link set eth0 up || return 1
  done
}

# Short times, so that the end of a job and the loss of a node take seconds. The machine's cores are
# claimed several times.
write_slurm_conf() {
  local i
  cat >"$cluster/slurm.conf" <<CONF
ClusterName=elastor_test
SlurmctldHost=${prefix}0(10.79.0.100)
SlurmctldPort=16917
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$cluster/munge.socket,cred_expire=5
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd.%n.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/slurmd.%n.log
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool.%n
TmpFS=$cluster/tmp.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
AccountingStorageType=accounting_storage/none
MaxArraySize=3
KillWait=3
CompleteWait=0
SlurmdTimeout=6
SlurmctldTimeout=10
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
PropagateResourceLimits=NONE
MailProg=/bin/true
PartitionName=low Nodes=ALL Default=YES MaxTime=60 State=UP PriorityTier=1 GraceTime=20
PartitionName=high Nodes=ALL MaxTime=60 State=UP PriorityTier=10 PreemptMode=OFF
CONF
  for ((i = 1; i <= hosts; i++)); do
    mkdir --parents "$cluster/spool.$prefix$i" "$cluster/tmp.$prefix$i"
    echo "NodeName=$prefix$i NodeHostname=$prefix$i NodeAddr=10.79.0.$((100 + i)) Port=$((16917 + i)) CPUs=4" \
      "RealMemory=1000 State=UNKNOWN" >>"$cluster/slurm.conf"
  done
  mkdir --parents "$cluster/state"
}

start_slurm() {
  local i
  cluster=$1
  # Cleans up after a test that was killed, which runs no trap, and may stay a zombie.
  setsid bash -c 'while grep --quiet ") [^Z]" "/proc/$1/stat" 2>/dev/null; do sleep 1; done; cluster=$2 hosts=$3 prefix=$4; eval "$5"; stop_slurm; rm --recursive --force "$2"' \
    guard $$ "$cluster" "$hosts" "$prefix" "$(declare -f stop_slurm)" </dev/null >/dev/null 2>&1 &
  export SLURM_CONF=$cluster/slurm.conf
  # Every host believes that it owns all cores, and binds to the first.
  export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
  export OMPI_MCA_oob_tcp_if_include=10.79.0.0/24 OMPI_MCA_btl_tcp_if_include=10.79.0.0/24
  unset OMPI_MCA_btl
  mkdir --parents "$cluster"
  make_hosts && write_slurm_conf || return 1
  head --bytes=1024 /dev/urandom >"$cluster/munge.key"
  chmod 600 "$cluster/munge.key"
  munged --key-file="$cluster/munge.key" --socket="$cluster/munge.socket" --pid-file="$cluster/munged.pid" \
    --log-file="$cluster/munged.log" --seed-file="$cluster/munge.seed" --force || return 1
  on 0 slurmctld || return 1
  for ((i = 1; i <= hosts; i++)); do on "$i" slurmd -N "$prefix$i" || return 1; done
  wait_until all_idle
}
all_idle() { [[ $(on 0 sinfo --noheader --Node --partition=low --format=%T | grep --count '^idle$') -eq $hosts ]]; }

# Ends all that lives on the hosts, which is the cluster's alone, and removes them.
stop_slurm() {
  local i pids
  for ((i = hosts; i >= 0; i--)); do
    [[ -e /run/netns/$prefix$i ]] || continue
    while pids=$(ip netns pids "$prefix$i") && [[ -n $pids ]]; do
      kill -KILL $pids 2>/dev/null
      sleep 0.05
    done
    ip netns delete "$prefix$i"
  done
  if pids=$(cat "$cluster/munged.pid" 2>/dev/null); then kill -TERM "$pids" 2>/dev/null; fi
}

# cut_link HOST, mend_link HOST
cut_link() { ip -n "${prefix}0" link set "p$1" down; }
mend_link() { ip -n "${prefix}0" link set "p$1" up; }
