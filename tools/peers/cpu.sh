#!/usr/bin/env bash
# Elastor's training step beside its peers' on the same CPU: the same models, batches, ids and
# optimizers, measured in turn. Prints tables in markdown: samples a second, and the median of the
# rounds' ratios with its quartiles.
#
#   tools/peers/cpu.sh [--quick] [--models=rank_elastor,rank_mixer,mlp,dcn_v2,x_deep_fm,...]
#       [--batches=256,1024,4096,65536] [--rounds=7]
#       [--peers=eager,compile,fuxictr,torchrec,fbgemm] [--embeddings=16x1,128x20,...]
#       [--optimizers=row_wise_adagrad,sgd,adagrad,lazy_adam] [--cpu=N[,N...]] [--programs=DIR]
#       [--venv=DIR] [--versions=PACKAGE==VERSION,...]
#
# --quick: RankElastor at 1,024 rows and the smallest embedding, three rounds, some three minutes
#     once all is installed and built; the default takes two hours, a quarter of it batch 65,536,
#     which has a third of the rounds. Figures so far go to the standard error.
# --embeddings: the tables that are measured beside FBGEMM, WIDTHxIDS_OF_A_BAG, each with all of
#     --optimizers. Every one runs beside the FBGEMM of requirements.txt and beside
#     1.4.2, whose backward pass is faster; the ratio is to the faster of the two.
# --models: of the 21 in torch_models.py; the first eight by default. FuxiCTR and TorchRec stand beside
#     the first four.
# --cpu: the cores to run on; one is measured in CPU time, several (a thread each) in wall time.
#     Default: the last one.
# --programs: holds train_step_benchmark, embedding_benchmark and trainer. Default: built by Bazel.
# --venv: where the peers are installed (requirements.txt), at the first run. What cannot be
#     installed or does not run is named in a line "left out: ..." and its columns stay empty.
# --versions: others than those of requirements.txt, in an environment of their own.
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
peers=$(cd "$(dirname "$0")" && pwd)
venv=${XDG_CACHE_HOME:-$HOME/.cache}/elastor/peers
programs=
versions=
arguments=()
for argument in "$@"; do
  case $argument in
    --venv=*) venv=$(realpath --canonicalize-missing "${argument#*=}") ;;
    --programs=*) programs=$(realpath "${argument#*=}") ;;
    --versions=*) versions=${argument#*=} ;;
    *) arguments+=("$argument") ;;
  esac
done
cd "$peers/../.."
scratch=$(mktemp --directory)
trap 'rm -rf "$scratch"' EXIT
constraints=$scratch/constraints
cp "$peers/requirements.txt" "$constraints"
for version in ${versions//,/ }; do
  sed --in-place "/^${version%%==*}==/d" "$constraints"
  echo "$version" >> "$constraints"
done
[[ -z $versions ]] || venv+=-${versions//[^a-zA-Z0-9.]/_}

pip_install() { "$venv/bin/pip" install --quiet --constraint "$constraints" "$@" >&2; }
# install PEER PACKAGE [OPTION|PACKAGE...]: unless the first is there.
install() {
  local peer=$1 package=$2
  shift 2
  "$venv/bin/pip" show --quiet "$package" 2>/dev/null || pip_install "$@" "$package" ||
    echo "left out: $peer: pip cannot install $package" >&2
}
# open_environment VENV: makes it, with PyTorch. From PyPI that comes with 5 GB of CUDA;
# PIP_EXTRA_INDEX_URL may name an index of builds for the CPU.
open_environment() {
  venv=$1
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  "$venv/bin/pip" show --quiet torch 2>/dev/null || pip_install torch
}
newest=$venv
open_environment "$newest" || exit
install "every peer" numpy
install fuxictr fuxictr
install fbgemm fbgemm-gpu-cpu
install torchrec tensordict torchmetrics iopath pyre-extensions tqdm
# TorchRec asks for fbgemm-gpu, whose files would replace those of fbgemm-gpu-cpu.
install torchrec torchrec --no-deps
# The FBGEMM that is faster, with its PyTorch.
printf '%s\n' torch==2.9.1 numpy==2.4.6 fbgemm-gpu-cpu==1.4.2 > "$constraints"
open_environment "$newest-fbgemm-1.4.2" || echo "left out: FBGEMM 1.4.2: no PyTorch 2.9.1" >&2
install "FBGEMM 1.4.2" numpy
install "FBGEMM 1.4.2" fbgemm-gpu-cpu

if [[ -z $programs ]]; then
  source tools/environment.sh
  targets=(//tests/bench:train_step_benchmark //tests/bench:embedding_benchmark //trainer:trainer)
  bazel build "${targets[@]}" >&2
  programs=$scratch
  ln -s "$PWD"/bazel-bin/{tests/bench/{train_step,embedding}_benchmark,trainer/trainer} "$programs"
fi

"$newest/bin/python" "$peers/cpu_table.py" --programs="$programs" \
  --other_python="$venv/bin/python" "${arguments[@]}"
