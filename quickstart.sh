#!/usr/bin/env bash
# From a bare Debian 12 to a trained model: installs what is missing (as root or with sudo), builds,
# makes a planted data set and trains RankElastor on it with four ranks. Arguments go on to the
# trainer:
#
#   ./quickstart.sh [--set=path.to.field=value ...]
#
# Data and run of an earlier quickstart are made anew.
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
cd "$(dirname "$0")"
for name in $(ls -A runs/quickstart 2>/dev/null); do
  case $name in
    data | run) ;;
    *)
      echo "$0: runs/quickstart/$name is not of an earlier quickstart; expected only data and run there" >&2
      exit 2
      ;;
  esac
done
tools/install_packages.sh
source tools/environment.sh

bazel build //trainer:trainer //trainer:prepare

if [[ -e runs/quickstart ]]; then echo "$0: removing the earlier quickstart in runs/quickstart"; fi
rm -rf runs/quickstart
bazel-bin/trainer/prepare/prepare --schema=configs/quickstart_schema.textproto \
  --output_dir=runs/quickstart/data
# Four ranks may share fewer cores.
mpirun -np 4 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 \
  bazel-bin/trainer/trainer --flagfile=configs/quickstart.flags "$@"
