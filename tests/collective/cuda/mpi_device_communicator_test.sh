#!/bin/bash
# The suite of device communicators over real MPI ranks: NCCL with --config=cuda, where the ranks
# share the devices there are; else through the host. Without a device every test is skipped.
# Usage: mpi_device_communicator_test.sh SUITE
set -u
suite=$1

source tests/system/spread_run.sh
unset TEST_PREMATURE_EXIT_FILE # One file, several ranks.

# NCCL takes several ranks on one device when each says it is a host of its own; they then talk over
# sockets, and there is no other network to look for.
export NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1

for ranks in 1 2 3; do
  mpi "$ranks" bash -c 'NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK exec "$@"' rank \
    "$suite" --gtest_brief=1 --schedule=lazy_shuffled || fail "$ranks ranks"
done
exit "$((failures > 0))"
