#!/usr/bin/env bash
# A user's mistake ends every rank with exit code 2 and one line from us, printed once.
# Arguments: the trainer, prepare.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
work=$TEST_TMPDIR
source "$(dirname "$0")/spread_run.sh"

# expect_mistake PATTERN COMMAND...
expect_mistake() { expect_line 2 "$@"; }

cat >"$work/schema.textproto" <<'SCHEMA'
name: "tiny"
layout: SYNTHETIC
split { train: 0.8 validation: 0.1 test: 0.1 }
synthetic { rows: 2000 seed: 1 numeric_fields: 2 categorical_fields: 2 ids_per_field: 50 }
SCHEMA
cat >"$work/tiny.textproto" <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding { width: 4 }
training { batch_size: 64 max_steps: 2 }
parallel { virtual_shards: 16 }
EXPERIMENT
"$prepare" --schema="$work/schema.textproto" --output_dir="$work/data" >/dev/null || exit 1
tiny=(--experiment="$work/tiny.textproto" --set=data.path="$work/data")

# The run that the mistakes below are made from is none.
if ! mpi 2 "$trainer" "${tiny[@]}" --output_dir="$work/used" >"$work/log" 2>&1; then
  fail 'a run without a mistake'
  cat "$work/log"
fi

new=--output_dir=$work/new
expect_mistake 'holds a run already' mpi 2 "$trainer" "${tiny[@]}" --output_dir="$work/used"
expect_mistake "did you mean 'tokens'?" mpi 2 "$trainer" "${tiny[@]}" "$new" --set=model.tokns=3
expect_mistake '16 cannot be spread over 17 ranks' mpi 17 "$trainer" "${tiny[@]}" "$new"
expect_mistake "$work/nowhere" mpi 2 "$trainer" "${tiny[@]}" "$new" --set=data.path="$work/nowhere"
expect_mistake "$work/nothing.textproto" \
  mpi 2 "$trainer" --experiment="$work/nothing.textproto" "$new"
# Ranks that were started differently do not work together.
expect_mistake "rank 1: training.seed is 3, expected rank 0's 0" \
  mpi_each "$trainer" "${tiny[@]}" "$new" + "$trainer" "${tiny[@]}" "$new" --set=training.seed=3
sed 's/seed: [0-9]*/seed: 99/' "$work/schema.textproto" >"$work/other.textproto"
"$prepare" --schema="$work/other.textproto" --output_dir="$work/other" >/dev/null || exit 1
expect_mistake "rank 1: the data set's fingerprint is" mpi_each "$trainer" "${tiny[@]}" "$new" + \
  "$trainer" "${tiny[@]}" "$new" --set=data.path="$work/other"

# Alone, without mpirun, the same lines come faster.
expect_mistake "$work/nothing.flags" "$trainer" --flagfile="$work/nothing.flags"
expect_mistake '16 cannot be spread over 17 ranks' \
  "$trainer" "${tiny[@]}" --mode=describe --ranks=17
expect_mistake 'model.rank_mixer.token_width: 26 is not a multiple of model.rank_mixer.tokens 15' \
  "$trainer" "${tiny[@]}" "$new" --set=model.kind=RANK_MIXER --set=model.tokens=15 \
  --set=model.token_width=26
expect_mistake 'parallel.virtual_shards: 12 is not a power of two' \
  "$trainer" "${tiny[@]}" "$new" --set=parallel.virtual_shards=12
expect_mistake 'training.batch_size: 15 is less than parallel.virtual_shards 16' \
  "$trainer" "${tiny[@]}" "$new" --set=training.batch_size=15
expect_mistake '--speed: no such flag; there are:' "$trainer" "${tiny[@]}" "$new" --speed=9
expect_mistake '--device=cuda' "$trainer" "${tiny[@]}" "$new" --device=cuda
expect_mistake '--mode=fly: expected train or evaluate or predict or spectra or theory or projection or ntk or verify or describe' "$trainer" "${tiny[@]}" "$new" --mode=fly
expect_mistake '--ranks=4: --mode=train starts no ranks by itself; expected mpirun -np 4 before the command, or --supervise beside it' \
  "$trainer" "${tiny[@]}" "$new" --ranks=4
# Another MPI than the launcher's, none, a part of another build, and the program alone.
expect_mistake 'environment: PMI_SIZE: the launcher started 4 ranks, but MPICH finds 1' \
  env PMI_SIZE=4 PMI_RANK=0 "$trainer" "${tiny[@]}" "$new"
expect_mistake 'environment: OMPI_COMM_WORLD_SIZE: the launcher started 2 ranks, but MPICH finds 1' \
  mpi 2 env ELASTOR_MPI=mpich "$trainer" "${tiny[@]}" "$new"
mkdir "$work"/{gone,other_part,alone}
gcc -shared -x c - -o "$work/gone/libgone.so" </dev/null &&
  gcc -shared -x c - -o "$work/gone/libmpi.so.40" -Wl,--no-as-needed -L"$work/gone" -lgone </dev/null || exit 1
rm "$work/gone/libgone.so"
cp "$(dirname "$trainer")/../../collective/libelastor_mpich.so" "$work/other_part/libelastor_openmpi.so"
cp "$trainer" "$work/alone/"
expect_mistake "libgone.so: cannot open shared object file: No such file or directory; expected the folder of Open MPI's library in LD_LIBRARY_PATH" \
  env LD_LIBRARY_PATH="$work/gone" OMPI_COMM_WORLD_SIZE=2 "$trainer" "${tiny[@]}" "$new"
expect_mistake 'libelastor_openmpi.so: is of another build than this program' \
  env LD_LIBRARY_PATH="$work/other_part" OMPI_COMM_WORLD_SIZE=2 "$trainer" "${tiny[@]}" "$new"
expect_mistake 'libelastor_openmpi.so: cannot open shared object file: No such file or directory; expected it beside' \
  env --unset=LD_LIBRARY_PATH OMPI_COMM_WORLD_SIZE=2 "$work/alone/trainer" "${tiny[@]}" "$new"
expect_mistake '--output_dir: missing' "$trainer" "${tiny[@]}"
expect_mistake 'data.path: empty' "$trainer" --experiment="$work/tiny.textproto" "$new"
expect_mistake '--experiment: missing' "$trainer"

# A mode refuses every flag that it does not use.
given=(--resume --predictions --per_sample --kernels --rows=9 --supervise --hosts=a:1 --hostfile=h
  --launch=l --max_restarts=7 --input=rows --max_bad_rows=3 --tensorboard --ranks=3 --split=test
  --device=cuda --output_dir=out)
measures=' --tensorboard --split --device --output_dir '
declare -A takes=(
  [train]="$measures --resume --predictions --supervise --hosts --hostfile --launch --max_restarts"
  [evaluate]=$measures [predict]="$measures --input" [theory]=$measures [projection]=$measures
  [spectra]="$measures --per_sample " [ntk]=' --kernels --rows --tensorboard --split --output_dir '
  [describe]=' --rows --ranks ' [verify]='' [compact]=' --output_dir ' [export]=' --output_dir '
  [plot]=' --output_dir ')
for mode in "${!takes[@]}"; do
  for flag in "${given[@]}"; do
    [[ "${takes[$mode]} " == *" ${flag%%=*} "* ]] && continue
    expect_mistake "${flag%%=*}" "$trainer" --mode="$mode" "$flag"
  done
done
expect_mistake '--max_restarts: is of a job that is supervised' "$trainer" "${tiny[@]}" "$new" --max_restarts=7
expect_mistake '--set=training.seed=4: --mode=verify takes the folder as it is' \
  "$trainer" --mode=verify --model="$work/used/model" --set=training.seed=4

# What no evaluation of the validation split can have is known before the first step.
cat >"$work/alike.textproto" <<'SCHEMA'
layout: DELIMITED
delimiter: ","
fields { name: "y" type: LABEL }
fields { name: "c" type: CATEGORICAL }
SCHEMA
for i in $(seq 100); do echo "$((i % 2)),$((i % 7))"; done >"$work/both.csv"
grep '^0' "$work/both.csv" >"$work/alike.csv"
"$prepare" --schema="$work/alike.textproto" --input="$work/both.csv" --validation_input="$work/alike.csv" \
  --output_dir="$work/alike" >/dev/null 2>&1 || exit 1
expect_mistake 'training.monitor.metric: AUC, but the label is 0 in every validation row; expected rows of both, or LOGLOSS' \
  "$trainer" "${tiny[@]}" "$new" --set=data.path="$work/alike" --set=training.monitor.best_weights=true

# Settings that a run can have, and that are mostly slips, are told.
"$trainer" "${tiny[@]}" --output_dir="$work/idle" --set=training.schedule.warmup_steps=100 \
  --set=training.batch_size=4096 --set=parallel.threads=32 >"$work/log" 2>&1 || fail 'a run with idle settings'
for line in 'training.schedule.warmup_steps: 100; the run has 1 step,' 'training.batch_size: 4096; training has 1600 rows,' \
  'parallel.threads: 32 on all ranks; those beyond parallel.virtual_shards, 16,'; do
  grep --quiet "^warning: $line" "$work/log" || fail "expected 'warning: $line', found: $(cat "$work/log")"
done

# Sizes whose products are beyond 64 bits are refused before anything is built.
expect_mistake 'model.x_deep_fm.maps: 2147483647; expected at most 1000000' "$trainer" "${tiny[@]}" "$new" \
  --set=model.kind=X_DEEP_FM --set=model.maps=2147483647,2147483647
expect_mistake 'embedding.width: 2147483647; expected at most 1000000' "$trainer" "${tiny[@]}" "$new" \
  --set=embedding.width=2147483647
expect_mistake 'model: 1e+12 dense parameters; expected at most 6.87e+10' "$trainer" "${tiny[@]}" "$new" \
  --set=model.kind=MLP --set=model.hidden=1000000,1000000
expect_mistake 'model.mlp.hidden: 16000 numbers; expected at most 1000' "$trainer" "${tiny[@]}" "$new" \
  --set=model.kind=MLP --set=model.hidden="$(seq --separator=, 16000 | sed 's/[0-9]\+/4/g')"
expect_mistake 'data.shape.image_side: 2147483647; expected a number in [0, 4097)' "$trainer" \
  --experiment="$work/tiny.textproto" --mode=describe --set=data.shape.image_side=2147483647

# None of them left anything behind.
[[ ! -e $work/new ]] || fail "a refused run left $(find "$work/new")"
exit "$((failures > 0))"
