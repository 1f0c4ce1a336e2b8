#!/usr/bin/env bash
# Scorers that follow a run's publications: after each of them the updated model, a fresh one and mode
# predict on the run's state of that step have the same bits, with restarts on other ranks in between.
# Damaged publications are refused. Threads score while versions come. A server follows, too. So it is with keyed tables,
# whose rows leave and return.
# Arguments: the trainer, prepare, follow_client, elastor_serve; `campaign` for a long run by hand.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
client=$PWD/$3
server=$PWD/$4
follow_server=$(cd "$(dirname "$0")" && pwd)/follow_server.py
oracle=$(cd "$(dirname "$0")" && pwd)/small_rows_oracle.py
source "$(dirname "$0")/spread_run.sh"
cd "$TEST_TMPDIR" || exit 1

if [[ ${5:-} == campaign ]]; then
  rows=20000 test_rows=2000 batch=128 epochs=3 every=2 base_every=40 damages=1200 load=(4 100 300)
  stops=(37 80 81 150 222 300 301 390) ranks=(2 5 1 7 3 8 4 2 6)
else
  rows=2000 test_rows=200 batch=64 epochs=2 every=3 base_every=8 damages=60 load=(2 20 1)
  stops=(20 40) ranks=(2 1 3)
fi

# make_rows SEED ROWS
make_rows() {
  awk -v seed="$1" -v rows="$2" -v users=$((rows / 5)) 'BEGIN {
    srand(seed)
    for (i = 0; i < rows; ++i) {
      user = int(rand() * rand() * users); item = int(rand() * 60); price = rand() * 20
      logit = (user % 5 - 2) * 0.8 + (item % 7 - 3) * 0.5 + (price - 10) * 0.1
      printf "%d\tu%d\ti%d\t%.2f\n", rand() < 1 / (1 + exp(-logit)), user, item, price
    }
  }'
}
make_rows 1 $rows >train.tsv
make_rows 2 $test_rows >test.tsv
cut --fields=2- test.tsv >values
cat >schema.textproto <<'SCHEMA'
name: "tsv"
layout: DELIMITED
fields { name: "click" type: LABEL }
fields { name: "user" type: CATEGORICAL }
fields { name: "item" type: CATEGORICAL }
fields { name: "price" type: NUMERIC }
SCHEMA
cat >tiny.textproto <<EXPERIMENT
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 dropout: 0.1 } }
embedding { width: 3 }
optimizer { learning_rate: 0.01 }
training { batch_size: $batch epochs: $epochs }
spectrum { disabled: true }
parallel { virtual_shards: 8 }
checkpoint { every_steps: $every keep: 1000 }
publish { path: "published" every_steps: $every base_every: $base_every keep_bases: 9 }
EXPERIMENT
"$prepare" --schema=schema.textproto --input=train.tsv --test_input=test.tsv --output_dir=data >log 2>&1 ||
  fail "prepare: $(cat log)"
# train RANKS EXPERIMENT DATA RUN FLAGS...
train() {
  on_ranks "$1" "$trainer" --experiment="$2".textproto --set=data.path="$3" --output_dir="$4" "${@:5}" >log 2>&1 ||
    fail "train $4 on $1 ranks: $(cat log)"
}
plans=(ROW_WISE TABLE_WISE REPLICATED AUTO)
# train_in_parts EXPERIMENT DATA RUN FLAGS...
train_in_parts() {
  local i
  for i in "${!ranks[@]}"; do
    train "${ranks[i]}" "$1" "$2" "$3" --resume --set=training.max_steps="${stops[i]:-0}" \
      --set=parallel.plan="${plans[i % 4]}" "${@:4}"
  done
}
# follow PUBLISHED RUN DATA WORK VALUES: the updated model, a fresh one and mode predict on the run's states score alike.
# Sets `last` to the last number.
follow() {
  local number
  "$client" "$1" "$4" "$5" scores || fail "$1: the updated model"
  last=$(find "$4" -name 'scores-*' | wc --lines)
  for number in $(seq 1 $((rows > 2000 ? 1 : 7)) $((last - 1))); do
    rm --recursive --force predicted
    "$trainer" --mode=predict --model="$(printf '%s/checkpoints/step-%010d' "$2" $((number * every)))" \
      --set=data.path="$3" --split=test --output_dir=predicted >log 2>&1 || fail "predict: $(cat log)"
    cmp <(tail --lines=+2 predicted/predictions.csv | cut --delimiter=, --fields=3) "$4"/scores-"$number" ||
      fail "$1: number $number: other bits than mode predict"
  done
}
train_in_parts tiny data run
follow published run data work values
"$client" published opened values open || fail 'opened with damages'
# Without some deltas it takes the next base, and goes on.
cp --recursive published gaps
base=$((base_every + 1))
for number in $(seq 3 $base); do rm --recursive "gaps/$(printf 'delta-%010d' "$number")"; done
"$client" gaps jumped values scores >log 2>&1 || fail "a missed delta: $(cat log)"
{ cmp work/scores-$base jumped/scores-$base && cmp work/scores-"$last" jumped/scores-"$last"; } || fail "a missed delta: other bits"
# By the clock every step is due here.
train 1 tiny data by_steps --set=publish.path=by_steps_published --set=publish.every_steps=1 --set=training.max_steps=11
for steps in 6 11; do
  train $((steps % 4)) tiny data by_clock --resume --set=publish.path=by_clock_published --set=publish.every_steps=0 \
    --set=publish.every_minutes=1e-9 --set=training.max_steps=$steps
done
diff --recursive by_steps_published by_clock_published >log || fail "publications by the clock: $(cat log)"
[[ -e by_clock_published/delta-0000000011 ]] || fail 'no publications by the clock'
# A base is a model like others.
"$trainer" --mode=verify --model=published/base-0000000001 >log 2>&1 || fail "verify: $(cat log)"
expect_line 2 'a published delta, which is no whole model' "$trainer" --mode=verify --model=published/delta-0000000002

"$trainer" --experiment=tiny.textproto --set=data.path=data --output_dir=other --set=publish.path=other_published \
  --set=training.seed=7 >log 2>&1 || fail "another run: $(cat log)"
"$client" published damaged values damage 1 $damages other_published >log 2>&1 || fail "damages: $(cat log)"
tail --lines=1 log
"$client" published loaded values load "${load[@]}" >log 2>&1 || fail "load: $(cat log)"
cat log
python3 "$follow_server" "$server" published followed values user,item,price work/scores || fail 'elastor_serve --follow'

# Keyed tables. Users and items come and go along the rows; in the next epoch they return.
# make_stream SEED ROWS
make_stream() {
  awk -v seed="$1" -v rows="$2" 'BEGIN {
    srand(seed)
    for (i = 0; i < rows; ++i) {
      begin = int(i * 12 / rows)
      user = begin * 40 + int(rand() * rand() * 150); item = begin * 15 + int(rand() * 40); kind = int(rand() * 5)
      logit = (user % 5 - 2) * 0.8 + (item % 7 - 3) * 0.5
      printf "%d\tu%d\t%s\tk%d\n", rand() < 1 / (1 + exp(-logit)), user, item % 9 ? item * 1001 : "", kind
    }
  }'
}
make_stream 1 $rows >stream.tsv
make_stream 2 $test_rows >stream_test.tsv
cut --fields=2- stream_test.tsv >stream_values
cat >stream_schema.textproto <<'SCHEMA'
name: "stream"
layout: DELIMITED
fields { name: "click" type: LABEL }
fields { name: "user" type: CATEGORICAL encoding: HASHED_KEY }
fields { name: "item" type: CATEGORICAL encoding: IDENTITY_KEY }
fields { name: "kind" type: CATEGORICAL }
SCHEMA
"$prepare" --schema=stream_schema.textproto --input=stream.tsv --test_input=stream_test.tsv --output_dir=stream \
  >log 2>&1 || fail "prepare: $(cat log)"
cat >keyed.textproto <<EXPERIMENT
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding {
  width: 3
  init_stddev: 0.1
  tables {
    fields: ["user"] capacity: 100 on_full: EVICT eviction { policy: LRU evict_to: 70 }
    admission { min_count: 2 count_ttl_steps: 20 } unadmitted: SHARED_ROW
  }
  tables { fields: ["item"] eviction { policy: TTL_STEPS ttl_steps: 6 } evict_every_steps: 4 }
}
data { order: FILE_ORDER }
optimizer { learning_rate: 0.01 sparse: ROW_WISE_ADAGRAD }
training { batch_size: $batch epochs: $epochs }
spectrum { disabled: true }
parallel { virtual_shards: 8 }
checkpoint { every_steps: $((every * 6)) delta_every_steps: $every keep: 1000 }
publish { path: "keyed_published" every_steps: $every base_every: $base_every keep_bases: 9 }
EXPERIMENT
train 1 keyed stream keyed_whole --set=publish.path=keyed_whole_published
train_in_parts keyed stream keyed
diff --recursive keyed_whole_published keyed_published >log || fail "keyed tables in parts: other bytes: $(cat log)"
evicted=$(grep --count '"event":"tables".*"evicted":[1-9]' keyed/metrics.jsonl)
((evicted > 9)) || fail "keyed tables: $evicted steps at which rows left"
keyed_deleted=$(cat keyed_published/delta-*/manifest.json | grep --count '"[a-z]*/deleted":\[\[')
((keyed_deleted > 5)) || fail "keyed tables: $keyed_deleted deltas with keys that left"
follow keyed_published keyed stream keyed_work stream_values
python3 "$follow_server" "$server" keyed_published keyed_followed stream_values user,item,kind keyed_work/scores ||
  fail 'keyed tables: elastor_serve --follow'
# Killed, and gone on with on other ranks, behind publications and in front of them.
train 1 keyed stream keyed_killed --set=publish.path=keyed_killed_published --set=training.max_steps=$((every * 4 + 1))
"$trainer" --experiment=keyed.textproto --set=data.path=stream --output_dir=keyed_killed --resume \
  --set=publish.path=keyed_killed_published --set=checkpoint.every_steps=1000 --set=checkpoint.delta_every_steps=1000 \
  >log 2>&1 &
until [[ -e keyed_killed_published/delta-0000000007 ]] || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
kill -KILL $! 2>/dev/null
wait $! 2>/dev/null
train 4 keyed stream keyed_killed --resume --set=publish.path=keyed_killed_published --set=parallel.plan=REPLICATED
diff --recursive keyed_whole_published keyed_killed_published >log || fail "keyed tables, killed: other bytes: $(cat log)"
# Without the keys that the last publication has, a base is next.
train 1 keyed stream keyed_lost_run --set=publish.path=keyed_lost_published --set=training.max_steps=$((every * 2 + 1))
rm --recursive keyed_lost_published/base-0000000001
train 3 keyed stream keyed_lost_run --resume --set=publish.path=keyed_lost_published
grep --quiet 'has no base up to number 2; which keys left since is not known, and a base is next' log ||
  fail "no line on keys that are not known: $(cat log)"
[[ -e keyed_lost_published/base-0000000003 && ! -e keyed_lost_published/delta-0000000003 ]] ||
  fail 'a delta without the keys that left'
"$client" keyed_published keyed_damaged stream_values damage 1 $damages >log 2>&1 || fail "damages: $(cat log)"
tail --lines=1 log
"$client" keyed_published keyed_loaded stream_values load "${load[@]}" >log 2>&1 || fail "load: $(cat log)"
cat log
for format in INT8 INT4; do
  train 3 keyed stream keyed_run_$format --set=publish.rows=$format --set=publish.path=keyed_$format --set=checkpoint.disabled=true
  "$client" keyed_$format keyed_work_$format stream_values scores || fail "keyed tables, $format: the updated model"
  base=$("$client" keyed_published keyed_small stream_values small $format) || fail "opened with $format rows"
  cmp keyed_small/scores keyed_work_$format/scores-"$base" || fail "keyed tables, $format: rows made at opening differ"
done

# Small rows. The same run publishes them, stopped and gone on with on other ranks; every version is held to the states
# of the run above by the definition of such rows.
# train_small FORMAT RANKS FLAGS...
train_small() {
  on_ranks "$2" "$trainer" --experiment=tiny.textproto --set=data.path=data --output_dir=run_"$1" --resume \
    --set=publish.rows="$1" --set=publish.path="$1" "${@:3}"
}
train_small INT8 3 --set=training.max_steps=$((every * 7)) >log 2>&1 || fail "INT8 on 3 ranks: $(cat log)"
train_small INT8 2 --set=parallel.plan=TABLE_WISE >log 2>&1 || fail "INT8 on 2 ranks: $(cat log)"
train_small INT4 1 >log 2>&1 || fail "INT4: $(cat log)"
for format in INT8 INT4; do
  "$client" $format work_$format values scores || fail "$format: the updated model"
  pairs=()
  for folder in "$format"/base-* "$format"/delta-*; do
    state=run/checkpoints/$(printf 'step-%010d' $((10#${folder##*-} * every)))
    [[ ! -e $state ]] || pairs+=("$folder" "$state")
  done
  compared=$(python3 "$oracle" $format "${pairs[@]}") || fail "$format: rows of another definition"
  ((${compared:-0} > 500)) || fail "$format: $compared rows compared"
  base=$("$client" published opened_small values small $format) || fail "opened with $format rows"
  cmp opened_small/scores work_$format/scores-"$base" || fail "$format: rows made at opening have other scores"
done
! cmp --silent work_INT8/scores-"$base" work/scores-"$base" || fail 'INT8 rows have the scores of FLOAT32'
"$client" INT8 damaged values damage 1 $((damages / 2)) >log 2>&1 || fail "damages of small rows: $(cat log)"
small_base=INT8/$(printf 'base-%010d' "$base")
"$trainer" --mode=predict --model="$small_base" --input=values >predicted.small 2>log || fail "predict: $(cat log)"
cmp <(tail --lines=+2 predicted.small | cut --delimiter=, --fields=3) work_INT8/scores-"$base" ||
  fail 'mode predict: other bits than the library'
"$trainer" --mode=verify --model="$small_base" >log 2>&1 || fail "verify: $(cat log)"
expect_line 2 'has INT8 rows, for scoring raw rows and serving alone' "$trainer" --mode=predict --model="$small_base" \
  --set=data.path=data --split=test --output_dir=refused
expect_line 2 'has INT8 rows; expected a model with FLOAT32 rows' "$trainer" --mode=export --model="$small_base" \
  --output_dir=refused
expect_line 2 "publish.rows: INT4; the run's publications in INT8 have INT8 rows" train_small INT8 1 \
  --set=publish.rows=INT4
expect_line 2 'has INT8 rows; expected FLOAT32 to make INT4 rows of them' "$server" --model="$small_base" --rows=INT4 --port=0
expect_line 2 'rows is INT9; expected FLOAT32, INT8 or INT4' "$server" --model="$small_base" --rows=INT9 --port=0
expect_line 2 '--rows=INT8 and --follow: expected publish.rows in the run' "$server" --follow=INT8 --rows=INT8
mkdir renamed
cp --recursive published/base-0000000001 renamed/base-0000000030
# refused PATTERN FLAGS...
refused() {
  expect_line 2 "$1" "$trainer" --experiment=tiny.textproto --set=data.path=data --output_dir=refused "${@:2}"
}
refused 'publish.path: values: cannot be made' --set=publish.path=values
refused 'publish.path: refused: the folder of a run; expected a folder for publications' --set=publish.path=refused
refused 'publish.path: run: the folder of a run; expected a folder for publications' --set=publish.path=run
refused 'publish.every_steps: 0; expected steps between two publications' --set=publish.every_steps=0
refused 'base-0000000030: not the publication of this number' --set=publish.path=renamed
# day RUN FLAGS...: its publications follow those of the day before, of which the first base's remove all.
day() {
  "$trainer" --experiment=tiny.textproto --set=data.path=data --set=training.warm_start.path=run/model --output_dir="$1" \
    --set=publish.path=days --set=publish.keep_bases=1 --set=publish.base_every=1 "${@:2}"
}
day day1 --set=training.max_steps=6 >log 2>&1 || fail "a day: $(cat log)"
day day2 --set=training.max_steps=6 --set=training.seed=7 >log 2>&1 || fail "the next day: $(cat log)"
expect_line 2 'days: another run has followed this one there; expected a new folder' day day1 --resume
day day2 --resume --set=training.max_steps=9 --set=training.seed=7 >log 2>&1 || fail "the next day goes on: $(cat log)"
expect_line 2 '--model and --follow: expected one of them' "$server" --model=run/model --follow=published
exit "$((failures > 0))"
