#!/usr/bin/env bash
# Raw rows that a model scores by itself, after its data is gone, get the bytes of mode predict on the
# prepared rows: every layout and type of field, with labels and without, from files, gzip and stdin, on
# any number of threads and with every instruction set. A row that cannot be read is answered or ends
# the program, as the user says. Served over
# HTTP they get the same bits. Arguments: the trainer, prepare, score_client, elastor_serve.
set -uo pipefail
shopt -s lastpipe  # a failure at the end of a pipe counts

trainer=$PWD/$1
prepare=$PWD/$2
client=$PWD/$3
server=$PWD/$4
serve_client=$(cd "$(dirname "$0")" && pwd)/serve_client.py
oracle=$(cd "$(dirname "$0")" && pwd)/onnx_oracle.py
export PYTHONPATH=$PWD/tools/python PYTHONDONTWRITEBYTECODE=1
source "$(dirname "$0")/spread_run.sh"
cd "$TEST_TMPDIR" || exit 1

# make_rows SEED ROWS: values that are missing, unknown to training and in quotes among them.
make_rows() {
  awk -v seed="$1" -v rows="$2" 'BEGIN {
    srand(seed)
    print "click,user,item,seen,tags,price,size,importance,at,page"
    for (i = 0; i < rows; ++i) {
      user = int(rand() * 40); item = int(rand() * 60); price = rand() * 20
      seen = ""; for (n = int(rand() * 6); n > 0; --n) seen = seen (seen ? "|" : "") "i" int(rand() * 80)
      tags = ""; for (n = int(rand() * 3); n > 0; --n) tags = tags (tags ? "|" : "") int(rand() * 9)
      logit = (user % 5 - 2) * 0.8 + (item % 7 - 3) * 0.5 + (price - 10) * 0.1
      printf "%d,%s,%s,%s,%s,%s,%d,%.1f,%d,%s\n", rand() < 1 / (1 + exp(-logit)),
        rand() < 0.1 ? "" : "u" user, rand() < 0.2 ? "\"i" item "\"" : "i" item, seen, tags,
        rand() < 0.1 ? "" : sprintf("%.2f", price), int(rand() * rand() * 900), 1 + (i % 3) * 0.5,
        1400000000 + i * 977, rand() < 0.1 ? "" : "a rather long name of page " int(rand() * 50)
    }
  }'
}
make_rows 1 1500 >train.csv
make_rows 2 1100 >test.csv
cat >csv.textproto <<'SCHEMA'
name: "csv"
layout: DELIMITED
delimiter: ","
header: true
quoted: true
fields { name: "click" type: LABEL }
fields { name: "user" type: CATEGORICAL min_count: 3 }
fields { name: "item" type: CATEGORICAL }
fields { name: "seen" type: SEQUENCE max_length: 4 shares: "item" pooling: MEAN }
fields { name: "tags" type: MULTI_HOT encoding: IDENTITY buckets: 9 }
fields { name: "price" type: NUMERIC transform: STANDARDIZE }
fields { name: "size" type: NUMERIC transform: LOG2_STANDARDIZE }
fields { name: "bucket" type: CATEGORICAL transform: LOG2_BUCKET column: "size" }
fields { name: "importance" type: WEIGHT }
fields { name: "who" type: GROUP column: "user" }
fields { name: "at" type: TIME }
fields { name: "hour" type: CATEGORICAL transform: HOUR encoding: IDENTITY buckets: 24 column: "at" }
fields { name: "page" type: CATEGORICAL encoding: HASH buckets: 31 }
fields { name: "whole_page" type: CATEGORICAL column: "page" }
SCHEMA
# The same rows without a header, and as pairs.
tail --lines=+2 train.csv | tr -d '"' | tr , '\t' | cut --fields=1,2,3,6,8 >train.tsv
tail --lines=+2 test.csv | tr -d '"' | tr , '\t' | cut --fields=1,2,3,6,8 >test.tsv
cat >tsv.textproto <<'SCHEMA'
name: "tsv"
layout: DELIMITED
fields { name: "click" type: LABEL }
fields { name: "user" type: CATEGORICAL }
fields { name: "item" type: CATEGORICAL }
fields { name: "price" type: NUMERIC }
fields { name: "importance" type: WEIGHT }
SCHEMA
to_pairs='{ printf "%s %s:1 2:%s", $1, substr($3, 2), $5
  for (i = 0; i < NR % 4; ++i) printf " %d:1", (NR * 7 + i * 3) % 20; print "" }'
awk -F'\t' "$to_pairs" train.tsv >train.libsvm
awk -F'\t' "$to_pairs" test.tsv >test.libsvm
cat >libsvm.textproto <<'SCHEMA'
name: "libsvm"
layout: LIBSVM
fields { name: "item" type: CATEGORICAL }
fields { name: "importance" type: NUMERIC }
fields { name: "others" type: MULTI_HOT }
SCHEMA
cat >tiny.textproto <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 dropout: 0.1 } }
embedding { width: 3 }
optimizer { learning_rate: 0.01 }
training { batch_size: 256 seed: 3 }
spectrum { disabled: true }
EXPERIMENT

# score MODEL FLAGS...: to stdout.
score() {
  local model=$1
  shift
  "$trainer" --mode=predict --model="$model" "$@" 2>score.log || {
    fail "$model $*"
    cat score.log >&2
  }
}
# expect_same WHAT EXPECTED_FILE: stdin.
expect_same() {
  cat >found
  [[ -s found ]] || fail "$1: nothing to compare"
  cmp found "$2" >difference || fail "$1: $(cat difference)"
}
probabilities() { cut --delimiter=, --fields=1,3; }

for layout in csv tsv libsvm; do
  "$prepare" --schema=$layout.textproto --input=train.$layout --test_input=test.$layout \
    --output_dir=data >prepare.log 2>&1 || fail "prepare: $(cat prepare.log)"
  "$trainer" --experiment=tiny.textproto --set=data.path=data --output_dir=$layout >train.log 2>&1 ||
    fail "train: $(cat train.log)"
  on_ranks 3 "$trainer" --experiment=tiny.textproto --set=data.path=data --mode=predict --split=test \
    --model=$layout/model --output_dir=${layout}_predicted >train.log 2>&1 ||
    fail "predict: $(cat train.log)"
  rm -r data
  expected=${layout}_predicted/predictions.csv
  [[ $(wc --lines <$expected) == 1101 ]] || fail "$layout: not a line a row"
  score $layout/model --input=test.$layout | expect_same "$layout" $expected
  gzip --stdout test.$layout | ELASTOR_ISA=${isas[0]} score $layout/model --input=- |
    expect_same "$layout, v3, gzip from stdin" $expected
  cat test.$layout | score $layout/model --input=- --set=parallel.threads=3 |
    expect_same "$layout, 3 threads" $expected
done
if grep --quiet --word-regexp avx512bw /proc/cpuinfo; then
  ELASTOR_ISA=v4 score csv/model --input=test.csv | expect_same 'v4' csv_predicted/predictions.csv
fi

# Keys without vocabularies. The test rows have keys that training has not met, or that were evicted, or not admitted;
# these count with their first values, with zeros, or with shared rows, as in mode predict.
cat >keys.textproto <<'SCHEMA'
name: "keys"
delimiter: ","
header: true
quoted: true
fields { name: "click" type: LABEL }
fields { names: ["user", "item", "price", "page"] type: CATEGORICAL encoding: HASHED_KEY }
fields { name: "seen" type: SEQUENCE max_length: 4 shares: "item" pooling: MEAN }
fields { name: "tags" type: MULTI_HOT encoding: IDENTITY_KEY }
fields { name: "size" type: NUMERIC transform: LOG2_STANDARDIZE }
fields { name: "importance" type: WEIGHT }
fields { name: "moment" type: CATEGORICAL encoding: IDENTITY_KEY column: "at" }
SCHEMA
admission='tables { fields: "user" admission { min_count: 3 } unadmitted: SHARED_ROW }'
admission+=' tables { fields: "item" admission { min_count: 2 } }'
eviction='tables { fields: "moment" capacity: 400 on_full: EVICT eviction { policy: LRU } }'
sed "s/width: 3/& init_stddev: 0.3 $eviction $admission/" tiny.textproto >keys.experiment
"$prepare" --schema=keys.textproto --input=train.csv --test_input=test.csv --output_dir=data >prepare.log 2>&1 ||
  fail "prepare keys: $(cat prepare.log)"
[[ ! -e data/vocabulary || -z $(ls data/vocabulary) ]] || fail "vocabularies of keys: $(ls data/vocabulary)"
"$trainer" --experiment=keys.experiment --set=data.path=data --output_dir=keys >train.log 2>&1 ||
  fail "train keys: $(cat train.log)"
on_ranks 3 "$trainer" --experiment=keys.experiment --set=data.path=data --mode=predict --split=test \
  --model=keys/model --output_dir=keys_predicted >train.log 2>&1 || fail "predict keys: $(cat train.log)"
rm -r data
score keys/model --input=test.csv | expect_same 'keys' keys_predicted/predictions.csv
tr -d '"' <test.csv | tail --lines=+2 | awk -F, -v OFS='\t' '{ print $2, $3, $6, $10, $4, $5, $7, $9 }' >values
"$client" keys/model values 600 2 2>answers | expect_same 'C, keys' <(
  probabilities <keys_predicted/predictions.csv | tail --lines=+2)
sed '2s/14[0-9]*,/soon,/' test.csv >soon.csv
expect_line 2 "(moment): found 'soon', expected an integer from -2^63 to 2^64 - 1" \
  "$trainer" --mode=predict --model=keys/model --input=soon.csv

# Prepared without labels, the rows get the same predictions; there is nothing to measure.
tail --lines=+2 test.csv | cut --delimiter=, --fields=2- >kept
(head --lines=1 test.csv | cut --delimiter=, --fields=2- && cat kept) >nolabel.csv
cut --fields=2- test.tsv >nolabel.tsv
cut --delimiter=' ' --fields=2- test.libsvm >nolabel.libsvm
for layout in csv tsv libsvm; do
  "$prepare" --schema=$layout.textproto --input=train.$layout --test_input=nolabel.$layout \
    --unlabelled_test --output_dir=data >prepare.log 2>&1 || fail "prepare: $(cat prepare.log)"
  grep --quiet '^test_rows=1100' prepare.log || fail "unlabelled $layout: $(cat prepare.log)"
  on_ranks 2 "$trainer" --experiment=tiny.textproto --set=data.path=data --mode=predict --split=test \
    --model=$layout/model --output_dir=${layout}_unlabelled >predict.log 2>&1 ||
    fail "predict: $(cat predict.log)"
  grep --quiet '^test: no labels, no metrics' predict.log || fail "not told: $(cat predict.log)"
  probabilities <${layout}_predicted/predictions.csv | expect_same "$layout without labels" \
    <(probabilities <${layout}_unlabelled/predictions.csv)
  grep --quiet '"rows":0,"positives":0,"auc":null,"logloss":null' ${layout}_unlabelled/metrics.jsonl ||
    fail "figures of no label: $(cat ${layout}_unlabelled/metrics.jsonl)"
  expect_line 2 'no row of the test split has a label; expected --mode=predict' "$trainer" \
    --experiment=tiny.textproto --set=data.path=data --mode=evaluate --split=test \
    --model=$layout/model --output_dir=mistake
  rm -r data
done
expect_line 2 '--unlabelled_test is of the files of --test_input' \
  "$prepare" --schema=tsv.textproto --input=train.tsv --unlabelled_test --output_dir=data
expect_line 2 'found 5 columns, expected 4' "$prepare" --schema=tsv.textproto --input=train.tsv \
  --test_input=test.tsv --unlabelled_test --output_dir=data
rm --recursive --force data data.partial

# Several files are one after another; the index goes on.
head --lines=501 test.csv >first.csv
(head --lines=1 test.csv && tail --lines=+502 test.csv) >second.csv
score csv/model --input=first.csv,second.csv --output_dir=scored
expect_same 'two files' csv_predicted/predictions.csv <scored/predictions.csv

# Without what training alone needs.
probabilities <csv_predicted/predictions.csv >expected
cut --delimiter=, --fields=2-7,9-10 test.csv | score csv/model --input=- | probabilities |
  expect_same 'csv without label and weight' expected
probabilities <tsv_predicted/predictions.csv >expected
cut --fields=2- test.tsv | score tsv/model --input=- | probabilities |
  expect_same 'tsv without label' expected
cut --fields=2-4 test.tsv | score tsv/model --input=- | probabilities |
  expect_same 'tsv without label and weight' expected
probabilities <libsvm_predicted/predictions.csv >expected
cut --delimiter=' ' --fields=2- test.libsvm | score libsvm/model --input=- >unlabelled
probabilities <unlabelled | expect_same 'libsvm without label' expected
{ echo '# a comment'; head --lines=2 test.libsvm; echo ' # one more'; echo; } |
  score libsvm/model --input=- --max_bad_rows=1 >commented
expect_same 'comments and a blank line of libsvm' <(head --lines=3 libsvm_predicted/predictions.csv; echo 2,,) <commented
sed --quiet 2p unlabelled | grep --quiet '^0,,0\.' || fail 'a missing label is not empty'

# Through the C interface: one row at a time and many, on one thread and on three.
tr -d '"' <test.csv | tail --lines=+2 |
  awk -F, -v OFS='\t' '{ print $2, $3, $4, $5, $6, $7, $7, $9, $10, $10 }' >values
probabilities <csv_predicted/predictions.csv | tail --lines=+2 >expected
for batch_and_threads in '1 3' '256 1' '600 2'; do
  # shellcheck disable=SC2086
  "$client" csv/model values $batch_and_threads 2>answers | expect_same "C, $batch_and_threads" expected
done
cat >expected <<'ANSWERS'
a wrong number: 2 row 1: column 5 (price): found 'dear', expected a number
ids: 2 offsets is NULL; the model has fields of several ids
a wrong id: 2 offsets is NULL; the model has fields of several ids
wrong offsets: 2 row 0: field user: found 0 ids, expected 1
an infinite number: 2 row 0: field price: infinite, or so once it is standardised; expected a finite number
no values: 2 values is NULL
no room: 2 probabilities is NULL
no numbers: 2 numeric is NULL
no model: 2 model is NULL
NULL: 2 folder is NULL
no folder: 2 no_such_folder/manifest.json: open: No such file or directory; expected the folder of a checkpoint or a model
ANSWERS
expect_same 'answers' expected <answers
cut --fields=2-4 test.tsv >values
"$client" tsv/model values 7 2 2>answers | expect_same 'C, without bags' <(
  probabilities <tsv_predicted/predictions.csv | tail --lines=+2)
grep --quiet '^ids: 0' answers || fail "ids: $(cat answers)"
grep --quiet "^a wrong id: 2 .*user.* -1" answers || fail "a wrong id: $(cat answers)"

# Over HTTP.
python3 "$serve_client" "$server" tsv/model values <(probabilities <tsv_predicted/predictions.csv) ||
  fail 'elastor_serve'
expect_line 2 '--model: expected the folder of a model' "$server"
expect_line 2 '--max_rows=0: expected 1 to 1000000' "$server" --model=tsv/model --max_rows=0
expect_line 2 "--name=a/b: expected letters, digits, '_', '-' and '.'" "$server" --model=tsv/model --name=a/b
expect_line 2 'nowhere/manifest.json: open: No such file' "$server" --model=nowhere --port=0
expect_line 2 '--host=192.0.2.1 --port=0: Cannot assign requested address' \
  "$server" --model=tsv/model --host=192.0.2.1 --port=0
few_threads() { (ulimit -v 500000 && exec "$@"); }
if few_threads "$server" --version >/dev/null 2>&1; then  # a sanitizer needs more
  expect_line 3 '--threads=64: the system refuses thread ' \
    few_threads "$server" --model=tsv/model --port=0 --threads=64
fi

# A value of two lines is one of one row; of a bad row of two lines the first is told.
sed '4s/[^,]*$/"a page\nof two lines"/; 9s/[^,]*$/"bad\n"page/' test.csv >two_lines.csv
score csv/model --input=two_lines.csv --max_bad_rows=1 >answered
sed '4d; 9d' answered | expect_same 'values of two lines' <(sed '4d; 9d' csv_predicted/predictions.csv)
[[ $(sed --quiet 9p answered) == 7,, ]] || fail "a bad row of two lines: $(sed --quiet 9p answered)"
grep --quiet 'two_lines.csv:10: column 10: found a quote' score.log || fail "not told: $(cat score.log)"

# Rows that cannot be read.
sed '4s/$/\tmore/; 900s/\t1\.0$/\tmuch/; 900s/^[01]/2/' test.tsv >bad.tsv
expect_line 2 'bad.tsv:4: found 6 columns, expected 5; 1 bad rows so far, max_bad_rows is 0' \
  "$trainer" --mode=predict --model=tsv/model --input=bad.tsv --output_dir=mistake
[[ ! -e mistake/predictions.csv ]] || fail 'a failed command left predictions'
score tsv/model --input=bad.tsv --max_bad_rows=2 --logits >answered
cut --delimiter=, --fields=1-3 answered |
  expect_same 'bad rows' <(sed 's/^3,.*/3,,/; s/^899,.*/899,,/' tsv_predicted/predictions.csv)
expect_same 'columns of bad rows' <(printf '3,,,\n899,,,\n') < <(grep '^3,,\|^899,,' answered)
grep --quiet 'bad.tsv:900: column 1 (click)' score.log || fail "bad rows are not told: $(cat score.log)"

# Mistakes.
expect_line 2 'missing.tsv: stat: No such file' \
  "$trainer" --mode=predict --model=tsv/model --input=missing.tsv
expect_line 2 "expected one 'user'" "$trainer" --mode=predict --model=csv/model --input=test.tsv
expect_line 2 'only --mode=predict scores raw rows' \
  "$trainer" --mode=evaluate --model=tsv/model --input=test.tsv
expect_line 2 'expected one, whose work --set=parallel.threads=N shares' \
  on_ranks 3 "$trainer" --mode=predict --model=tsv/model --input=test.tsv
expect_line 2 'expected parallel.threads=N alone' \
  "$trainer" --mode=predict --model=tsv/model --input=test.tsv --set=training.seed=4
expect_line 2 'holds no vocabularies, as checkpoints do not; expected the model that a run ends with' \
  "$trainer" --mode=predict --model=tsv/checkpoints/"$(ls tsv/checkpoints)" --input=test.tsv
mv tsv/model/vocabulary/user.tsv kept
expect_line 2 'vocabulary/user.tsv: stat: No such file' \
  "$trainer" --mode=predict --model=tsv/model --input=test.tsv
sed '1d' kept >tsv/model/vocabulary/user.tsv
expect_line 2 'vocabulary/user.tsv: found' \
  "$trainer" --mode=predict --model=tsv/model --input=test.tsv

# Every model as ONNX, scored by onnxruntime where $ELASTOR_PYTHON (python3) has it.
python=${ELASTOR_PYTHON:-python3}
"$python" -c 'import numpy, onnxruntime' 2>/dev/null ||
  { python=: && echo 'SKIPPED: onnxruntime is not there, the exported graphs are not compared'; }
"$prepare" --schema=tsv.textproto --input=train.tsv --test_input=test.tsv --output_dir=data \
  >/dev/null 2>&1
# export_model NAME FLAGS...
export_model() {
  local name=$1
  shift
  "$trainer" --experiment=tiny.textproto --set=data.path=data --output_dir="$name" "$@" \
    >train.log 2>&1 || fail "$name: $(cat train.log)"
  score "$name/model" --input=test.tsv --output_dir="$name.scored"
  "$trainer" --mode=export --model="$name/model" --output_dir="$name.onnx" >export.log 2>&1 ||
    fail "$name: $(cat export.log)"
  "$python" "$oracle" "$name.onnx" test.tsv "$name.scored/predictions.csv" || fail "$name as ONNX"
}
export_model RANK_ELASTOR
export_model gated_sum --set=model.feed_forward.kind=GATED_SUM --set=model.tokenizer.norm=NORM_RMS
for kind in RANK_MIXER MLP DCN_V2 X_DEEP_FM WUKONG MMOE FM IPNN DCN; do
  export_model $kind --set=model.kind=$kind
done
for head in MEAN_POOL FLATTEN_LINEAR FLATTEN_MLP MULTI_PROBE VECTOR_COLLAPSE; do
  export_model $head --set=model.head.kind=$head --set=model.iterations=2
done
export_model AUTO_INT --set=model.kind=AUTO_INT --set=model.auto_int.hidden=16
export_model batch_norm --set=model.kind=MLP --set=model.mlp.batch_norm=true
# Histories id by id, of rows that lack some ids and of rows that lack all.
if [[ $python != : ]]; then
  { cat csv.textproto && echo 'fields { name: "done" column: "seen" type: SEQUENCE max_length: 4 min_count: 9 }'; } \
    >histories.textproto
  "$prepare" --schema=histories.textproto --input=train.csv --output_dir=csv_data >/dev/null 2>&1
  for encoder in 'mean { }' 'din { softmax: true }' 'din { hidden: [8, 4] }' 'hstu { layers: 2 heads: 2 }' \
    'bst { heads: 2 layers: 2 }' 'tokens { }' "fields: 'done'"; do
    model='mlp { hidden: 8 }'
    [[ $encoder == tokens* ]] && model='one_trans { tokens: 3 token_width: 8 heads: 2 }'
    [[ $encoder == fields* ]] &&
      model="hstu_ranker { actions: 'done' request_fields: 'price' token_width: 8 layers: 2 }"
    name=${encoder//[^a-z0-9]/}
    sed "s/^model {.*/model { $model sequences { fields: 'seen' max_length: 3 $encoder } }/" tiny.textproto \
      >sequences.textproto
    "$trainer" --experiment=sequences.textproto --set=embedding.width=4 --set=data.path=csv_data --output_dir=$name \
      --set=embedding.init_stddev=0.3 >train.log 2>&1 || fail "$name: $(cat train.log)"
    score $name/model --input=test.csv --output_dir=$name.scored
    "$trainer" --mode=export --model=$name/model --output_dir=$name.onnx >export.log 2>&1 || fail "$name: $(cat export.log)"
    "$python" "$oracle" $name.onnx test.csv $name.scored/predictions.csv || fail "$name as ONNX"
  done
fi
cp test.csv test.keys
for layout in csv libsvm keys; do  # bags, hashes, hours; keys without rows
  "$trainer" --mode=export --model=$layout/model --output_dir=$layout.onnx >export.log 2>&1 ||
    fail "$layout: $(cat export.log)"
  "$python" "$oracle" $layout.onnx test.$layout ${layout}_predicted/predictions.csv || fail "$layout as ONNX"
done
expect_line 2 "--output_dir=MLP.onnx: holds 'embeddings.safetensors'; expected a new or empty directory" \
  "$trainer" --mode=export --model=MLP/model --output_dir=MLP.onnx
expect_line 2 "reads what the model's folder tells" \
  "$trainer" --mode=export --experiment=tiny.textproto --model=MLP/model --output_dir=mistake
expect_line 2 'MLP: is a run' "$trainer" --mode=export --model=MLP --output_dir=mistake

# A side table is read as in training, and is the same file.
awk 'BEGIN { for (i = 0; i < 60; i += 2) printf "i%d::%d.5::m%d\n", i, i % 7, i % 5 }' >items
{ cat tsv.textproto && cat <<'SCHEMA'; } >side.textproto
fields { name: "maker" column: "m" type: CATEGORICAL }
fields { name: "weight" column: "w" type: NUMERIC }
lookup { file: "items" by: "item" key: "k" columns: ["k", "w", "m"] delimiter: "::" }
SCHEMA
"$prepare" --schema=side.textproto --input=train.tsv --test_input=test.tsv --output_dir=side_data \
  >prepare.log 2>&1 || fail "prepare: $(cat prepare.log)"
grep --quiet '^missing_item_in_items=[1-9]' prepare.log || fail "no missing keys: $(cat prepare.log)"
"$trainer" --experiment=tiny.textproto --set=data.path=side_data --output_dir=side >train.log 2>&1 ||
  fail "train: $(cat train.log)"
"$trainer" --experiment=tiny.textproto --set=data.path=side_data --mode=predict --split=test \
  --model=side/model --output_dir=side_predicted >train.log 2>&1 || fail "predict: $(cat train.log)"
score side/model --input=test.tsv | expect_same 'side' side_predicted/predictions.csv
score side/model --input=nolabel.tsv | probabilities |
  expect_same 'side, no label' <(probabilities <side_predicted/predictions.csv)
echo 'i1::1::m1' >>items
expect_line 2 'items: has the hash ' "$trainer" --mode=predict --model=side/model --input=test.tsv
rm items
expect_line 2 'items: stat: No such file' "$trainer" --mode=predict --model=side/model --input=test.tsv

# Histories, which `prepare` makes of the log, stand in the rows: the last three items of the user before the time.
cat train.tsv test.tsv | awk -F'\t' -v OFS='\t' '{ t = int(NR / 60); past = ""; n = 0
  for (i = count[$2]; i > 0 && n < 3; --i) if (at[$2, i] < t) { past = item[$2, i] (n++ ? "|" past : "") }
  print $0, t, past
  if ($2 != "" && $3 != "") { at[$2, ++count[$2]] = t; item[$2, count[$2]] = $3 } }' >given.tsv
{ cat tsv.textproto && cat <<'SCHEMA'; } >history.textproto
fields { name: "at" type: TIME }
fields { name: "past" column: "p" type: SEQUENCE shares: "item" }
history { name: "p" of: "item" by: "user" max_length: 3 }
SCHEMA
rows=$(wc --lines <train.tsv)
head --lines=$rows given.tsv | cut --fields=1-6 >log.tsv
tail --lines=+$((rows + 1)) given.tsv >given_test.tsv
cut --fields=1-6 given_test.tsv >log_test.tsv
"$prepare" --schema=history.textproto --input=log.tsv --test_input=log_test.tsv --output_dir=history_data \
  >prepare.log 2>&1 || fail "prepare: $(cat prepare.log)"
"$trainer" --experiment=tiny.textproto --set=data.path=history_data --output_dir=history >train.log 2>&1 ||
  fail "train: $(cat train.log)"
"$trainer" --experiment=tiny.textproto --set=data.path=history_data --mode=predict --split=test \
  --model=history/model --output_dir=history_predicted >train.log 2>&1 || fail "predict: $(cat train.log)"
score history/model --input=given_test.tsv | expect_same 'history' history_predicted/predictions.csv

cat >planted.textproto <<'SCHEMA'
name: "planted"
layout: SYNTHETIC
split { train: 0.9 validation: 0.1 }
synthetic { rows: 500 seed: 1 numeric_fields: 2 categorical_fields: 3 ids_per_field: 30 }
SCHEMA
"$prepare" --schema=planted.textproto --output_dir=planted_data >/dev/null &&
  "$trainer" --experiment=tiny.textproto --set=data.path=planted_data --output_dir=planted >/dev/null 2>&1
expect_line 2 'its training data was planted' \
  "$trainer" --mode=predict --input=test.tsv --model=planted/model

exit "$((failures > 0))"
