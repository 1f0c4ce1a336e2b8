#!/usr/bin/env bash
# Every loss, metric and spectrum and the state digest are the same bits for any number of ranks and
# threads, any plan, and whichever all-reduce Open MPI takes. Two epochs with dropout, clipping and
# L2, whose last batches have fewer rows than there are leaves.
# Arguments: the trainer, prepare.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
work=$TEST_TMPDIR
source "$(dirname "$0")/spread_run.sh"

cat >"$work/tiny.textproto" <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 dropout: 0.1 } }
embedding { width: 4 init_stddev: 0.1 }
optimizer { learning_rate: 0.01 clip_norm: 0.05 dense_l2: 1e-3 embedding_l2: 1e-3 }
training { batch_size: 111 epochs: 2 log_every_steps: 1 eval_every_steps: 4 }
spectrum { every_steps: 6 samples: 32 }
parallel { virtual_shards: 8 }
EXPERIMENT
make_tiny_data 700

runs=0 first=0
program=("$trainer")
# same_numbers RANKS ARGUMENT...: trains and compares with run number $first.
same_numbers() {
  local ranks=$1 run=$work/run$runs
  shift
  runs=$((runs + 1))
  if ! on_ranks "$ranks" "${program[@]}" --experiment="$work/tiny.textproto" \
    --set=data.path="$work/data" --output_dir="$run" "$@" >"$work/log" 2>&1; then
    fail "$ranks ranks, $*"
    cat "$work/log"
  elif ! diff <(numbers_of "$work/run$first") <(numbers_of "$run") >"$work/difference"; then
    fail "$ranks ranks, $*: other numbers than 1 rank (<)"
    head --lines=6 "$work/difference"
  fi
}

plan=--set=parallel.plan
for ranks in 1 2 3 5 8; do
  same_numbers "$ranks" --set=parallel.threads=1 $plan=ROW_WISE
  same_numbers "$ranks" --set=parallel.threads=2 $plan=ROW_WISE --set=parallel.overlap=true \
    --set=parallel.first_ids_first=true
done
for ranks in 3 8; do
  same_numbers "$ranks" $plan=TABLE_WISE
  same_numbers "$ranks" $plan=REPLICATED --set=parallel.overlap=true
done
# Nor do rows in files.
if [[ $(stat --file-system --format=%T "$work") == tmpfs ]]; then
  echo 'skipped: rows in files; the folder of tests lies in memory'
else
  sed 's/ids_per_field: 300/ids_per_field: 20000/' "$work/schema.textproto" >"$work/wide_schema.textproto"
  "$prepare" --schema="$work/wide_schema.textproto" --output_dir="$work/wide" >/dev/null || exit 1
  for ranks in 1 3 4; do
    run=$work/wide$ranks
    files=(--set=embedding.tier.path="$work" --set=embedding.tier.memory_bytes=800000)
    [[ $ranks -ne 1 ]] || files=()
    on_ranks $ranks "$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/wide" --output_dir="$run" \
      --set=training.batch_size=24 "${files[@]}" >"$work/log" 2>&1 || fail "rows in files: $(cat "$work/log")"
    diff <(numbers_of "$work/wide1") <(numbers_of "$run") >/dev/null || fail "$ranks ranks, rows in files: other numbers"
  done
fi
# Nor do hosts that unite what their ranks send: in order, in turns, and of several sizes.
cat >"$work/on_hosts" <<'RANK'
#!/usr/bin/env bash
hosts=($HOSTS)
ELASTOR_HOST=${hosts[OMPI_COMM_WORLD_RANK % ${#hosts[@]}]} exec "$@"
RANK
chmod +x "$work/on_hosts"
program=("$work/on_hosts" "$trainer")
# between_hosts RUN: the bytes of a step's vectors and ids that went to other hosts.
between_hosts() {
  awk -F'[:,]' '/"phase"/ { counts = /(id|row|gradient)_exchange/ }
    counts && /"bytes_between_hosts"/ { sum += $2 }
    END { print sum + 0 }' "$1/summary.json"
}
export HOSTS
HOSTS='a a b b'
same_numbers 4 $plan=ROW_WISE
straight=$(between_hosts "$work/run$((runs - 1))")
same_numbers 4 $plan=ROW_WISE --set=parallel.by_host=true
united=$(between_hosts "$work/run$((runs - 1))")
((united > 0 && 10 * united < 9 * straight)) || fail "by host $united bytes go to other hosts, straight $straight"
HOSTS='a b' same_numbers 5 $plan=AUTO --set=parallel.by_host=true --set=parallel.overlap=true
HOSTS='a a a b c b b' same_numbers 8 $plan=TABLE_WISE --set=parallel.by_host=true --set=parallel.threads=2
program=("$trainer")

# Ranks may have threads in different numbers, also where a layer takes whole leaves.
cat >"$work/on_threads" <<'RANK'
#!/usr/bin/env bash
exec "$@" --set=parallel.threads=$((1 + 2 * (OMPI_COMM_WORLD_RANK % 2)))
RANK
chmod +x "$work/on_threads"
whole_leaves=(--set=model.kind=MLP --set=model.batch_norm=true --set=parallel.virtual_shards=2)
first=$runs
same_numbers 1 "${whole_leaves[@]}"
program=("$work/on_threads" "$trainer")
same_numbers 2 "${whole_leaves[@]}" --set=parallel.overlap=true
program=("$trainer")
first=0

# Nor does it matter how many rows are evaluated at a time.
same_numbers 3 --set=training.eval_batch_size=19

# Vectors in 16 bits have bits of their own, on any ranks as well.
first=$runs
wire=(--set=parallel.wire.rows=BFLOAT16 --set=parallel.wire.row_gradients=FLOAT16)
same_numbers 1 "${wire[@]}"
same_numbers 3 "${wire[@]}" $plan=TABLE_WISE --set=parallel.overlap=true
same_numbers 4 "${wire[@]}" $plan=REPLICATED --set=parallel.threads=2
same_numbers 8 "${wire[@]}" $plan=ROW_WISE
if [[ $(digest_of "$work/run0") == $(digest_of "$work/run$first") ]]; then fail '16 bits change no bit'; fi
first=0

# On one host Open MPI may happen to add floating-point numbers as the leaf tree does; rings do not.
# Integers, all that the trainer lets it add, come out alike.
for algorithm in 4 5; do
  force_allreduce $algorithm
  same_numbers 5 $plan=AUTO
  same_numbers 8 $plan=ROW_WISE
done

# Nor do the instruction sets of the ranks' kernels, alone and mixed.
if [[ ${#isas[@]} -eq 1 ]]; then echo "skipped: kernels of v4; this CPU has ${isas[0]} alone"; fi
for isa in "${isas[@]}"; do
  ELASTOR_ISA=$isa same_numbers 1 $plan=AUTO
  found=$(sed --quiet 's/.*"isa": "\(.*\)",/\1/p' "$work/run$((runs - 1))/summary.json")
  if [[ $found != "$isa" ]]; then fail "ELASTOR_ISA=$isa, but the summary says '$found'"; fi
done
cat >"$work/mixed" <<'RANK'
#!/usr/bin/env bash
isas=($ISAS)
ELASTOR_ISA=${isas[OMPI_COMM_WORLD_RANK % ${#isas[@]}]} exec "$@"
RANK
chmod +x "$work/mixed"
export ISAS="${isas[*]}"
program=("$work/mixed" "$trainer")
same_numbers 3 $plan=ROW_WISE
program=("$trainer")
names='v3 or v4'
[[ ${isas[0]} != neon ]] || names=neon
expect_line 2 "trainer: ELASTOR_ISA=avx2: expected $names" \
  env ELASTOR_ISA=avx2 "$trainer" --experiment="$work/tiny.textproto" --output_dir="$work/none"

# The comparison is worth something: the run has all its numbers.
lines=$(grep --count '"event":"train"' "$work/run0/metrics.jsonl")
if [[ $lines -ne 12 ]] || ! is_digest "$(digest_of "$work/run0")"; then
  fail "expected 12 steps and a digest, found $lines and '$(digest_of "$work/run0")'"
fi
# They depend on V. The others are these on more ranks, again as many as leaves.
first=$runs
same_numbers 1 --set=parallel.virtual_shards=16
same_numbers 16 --set=parallel.virtual_shards=16 $plan=ROW_WISE --set=parallel.overlap=true \
  --set=parallel.first_ids_first=true
expect_other_digest 'V = 8 and V = 16' "$work/run0" "$work/run$first"
first=0

# Of the first rows of the split alone, too; and they are not all.
part=--set=data.train_rows=301
runs=0
rm -r "$work"/run*
same_numbers 1 $part
same_numbers 3 $part $plan=ROW_WISE --set=parallel.overlap=true
[[ $(grep --count '"event":"train"' "$work/run0/metrics.jsonl") -eq 6 ]] ||
  fail "$part: expected 6 steps"
expect_line 2 'trainer: data.train_rows: 561; expected at most the 560 rows of the training split' \
  "$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/data" \
  --set=data.train_rows=561 --output_dir="$work/none"
expect_line 2 'data.train_rows: -1; expected 0 or more' "$trainer" \
  --experiment="$work/tiny.textproto" --set=data.train_rows=-1 --output_dir="$work/none"
expect_line 2 'data.train_rows: 300; expected 301' "$trainer" --resume --output_dir="$work/run0" \
  --experiment="$work/run0/experiment.textproto" --set=data.train_rows=300
exit "$((failures > 0))"
