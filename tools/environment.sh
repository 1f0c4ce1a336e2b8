# Sourced by the scripts, and by people: what Bazel and mpirun expect, also in a chroot or container.
#
#   source tools/environment.sh
if [[ ${BASH_SOURCE[0]:-} == "$0" ]]; then
  sed --quiet '1,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi

# Bazel keeps its output below HOME, in the name of USER.
export USER=${USER:-$(id --user --name)}
export HOME=${HOME:-$(getent passwd "$(id --user)" | cut --delimiter=: --fields=6)}

# mpirun refuses root unless told twice.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# mpirun and every rank look at the hardware. In a chroot without /sys they would complain; without
# /etc/hosts, the search for X displays asks the name server for localhost, 5 s for each lost answer.
export HWLOC_HIDE_ERRORS=2 HWLOC_COMPONENTS=-gl

# mpirun notices within seconds that the link to a host is cut (docs/use/running.md, "A cut link").
export OMPI_MCA_oob_tcp_keepalive_time=2 OMPI_MCA_oob_tcp_keepalive_intvl=1 OMPI_MCA_oob_tcp_keepalive_probes=3
