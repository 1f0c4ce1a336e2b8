#!/usr/bin/env bash
# From a bare Debian 12 to a trained model: installs what is missing (as root or with sudo), builds,
# makes a planted data set and trains RankElastor on it with four ranks. Arguments go on to the
# trainer.
set -euo pipefail
cd "$(dirname "$0")"
tools/install_packages.sh
source tools/environment.sh

bazel build //trainer:trainer //trainer:prepare

rm -rf runs/quickstart
bazel-bin/trainer/prepare/prepare --schema=configs/quickstart_schema.textproto \
  --output_dir=runs/quickstart/data
# Four ranks may share fewer cores.
mpirun -np 4 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 \
  bazel-bin/trainer/trainer --flagfile=configs/quickstart.flags "$@"
