#!/usr/bin/env bash
# Elastor beside FuxiCTR where both have a model: the same rows, ids, hyper-parameters, recipe (dense
# Adam at 1e-3, embedding L2 over whole tables, gradient norm clipped at 10) and epochs, one core, a
# process a run, in turn. Prints a table in Markdown: the test AUC of both over seeds, the interval of
# their difference, samples a second and peak memory.
#
#   tools/peers/models.sh TRAIN_TXT [--models=mlp,dcn_v2,x_deep_fm,auto_int] [--seeds=5] [--epochs=4]
#       [--cpu=N] [--programs=DIR] [--venv=DIR]
#
# TRAIN_TXT: rows in the layout of Criteo's train.txt, plain or gzip. All fields become categories
#     (counts by floor(log2(x)^2), values seen fewer than 10 times share id 0, as in Criteo_x4), so that
#     both programs read the same ids; 80/10/10 in file order.
# --programs: holds trainer and prepare. Default: built by Bazel.
# --venv: where FuxiCTR is installed (requirements.txt), at the first run.
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  || $# -eq 0 ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
peers=$(cd "$(dirname "$0")" && pwd)
rows=$(realpath "$1")
shift
venv=${XDG_CACHE_HOME:-$HOME/.cache}/elastor/peers
programs=
arguments=()
for argument in "$@"; do
  case $argument in
    --venv=*) venv=$(realpath --canonicalize-missing "${argument#*=}") ;;
    --programs=*) programs=$(realpath "${argument#*=}") ;;
    *) arguments+=("$argument") ;;
  esac
done
cd "$peers/../.."

[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
for package in torch numpy fuxictr; do
  "$venv/bin/pip" show --quiet $package 2>/dev/null ||
    "$venv/bin/pip" install --quiet --constraint "$peers/requirements.txt" $package >&2
done
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
if [[ -z $programs ]]; then
  source tools/environment.sh
  bazel build //trainer:trainer //trainer/prepare:prepare >&2
  programs=$work/programs
  mkdir "$programs"
  ln -s "$PWD"/bazel-bin/trainer/{trainer,prepare/prepare} "$programs"
fi

# Criteo_x4's fields from the raw layout.
{
  sed '/^#/d; /^delimiter:/d; /^header:/d' configs/criteo/x4_schema.textproto
  echo 'split { train: 0.8 validation: 0.1 test: 0.1 }'
} >"$work/schema.textproto"
"$programs/prepare" --schema="$work/schema.textproto" --input="$rows" --output_dir="$work/data" >&2

"$venv/bin/python" "$peers/models_table.py" --trainer="$programs/trainer" --work="$work" "${arguments[@]}"
