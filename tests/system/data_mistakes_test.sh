#!/usr/bin/env bash
# What goes wrong with prepared data is one clear line, never another result: rows that are encoded
# otherwise than those a model was trained on; damage; files that are written to, cut off or taken
# away while a run reads them. Arguments: the trainer, prepare.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
source "$(dirname "$0")/spread_run.sh"
cd "$TEST_TMPDIR" || exit 1

make_rows() { # SEED ITEMS
  awk -v seed="$1" -v items="$2" 'BEGIN {
    srand(seed)
    for (i = 0; i < 4000; ++i) {
      item = int(rand() * items); price = exp(rand() * 8)
      click = rand() < 1 / (1 + exp(3 - item % 5 - log(price) / 3)) ? 1 : 0
      printf "%d\t%.2f\ti%d\ta%d|a%d\n", click, price, item, rand() * 9, rand() * 9
    }
  }'
}
make_schema() { # TRANSFORM MAX_LENGTH
  cat <<SCHEMA
name: "clicks"
rows_per_block: 512
split { train: 0.8 validation: 0.1 test: 0.1 }
fields { name: "click" type: LABEL }
fields { name: "price" type: NUMERIC transform: $1 }
fields { name: "item" type: CATEGORICAL }
fields { name: "tags" type: MULTI_HOT encoding: HASH buckets: 50 max_length: $2 }
SCHEMA
}
prepare() { # OUTPUT_DIR FLAGS...
  "$prepare" --output_dir="$1" "${@:2}" >log 2>&1 || fail "prepare: $(cat log)"
}
make_rows 1 30 >rows.tsv
make_rows 2 30 >new_rows.tsv
make_schema LOG2_STANDARDIZE 64 >schema
make_schema NONE 64 >schema_without_transform
make_schema LOG2_STANDARDIZE 1 >schema_of_one_tag
prepare data --schema=schema --input=rows.tsv
cat >tiny.textproto <<'EXPERIMENT'
model { mlp { hidden: 8 } }
embedding { width: 2 }
training { batch_size: 64 epochs: 2 }
parallel { virtual_shards: 4 deadline_seconds: 30 }
spectrum { disabled: true }
EXPERIMENT
train=("$trainer" --experiment=tiny.textproto --set=training.log_every_steps=1000000)
"${train[@]}" --set=data.path=data --output_dir=run --set=training.max_steps=60 >log 2>&1 || cat log
digest=$(digest_of run)
is_digest "$digest" || fail "no run to begin with"

# ---- Rows that mean something else to the model.
evaluate() { # RANKS DATA FLAGS...
  rm -rf evaluated
  on_ranks "$1" "${train[@]}" --mode=evaluate --model=run/model --output_dir=evaluated \
    --set=data.path="$2" "${@:3}"
}
prepare untransformed --schema=schema_without_transform --input=rows.tsv
prepare new --schema=schema --input=new_rows.tsv
prepare new_with_its_ids --schema=schema --input=new_rows.tsv --vocabulary_from=data
prepare one_tag --schema=schema_of_one_tag --input=rows.tsv
trained="run/model/manifest.json was trained on"
untransformed="data.path: untransformed: numeric field price: transform NONE; $trained LOG2_STANDARDIZE"
expect_line 2 "$untransformed" evaluate 1 untransformed
expect_line 2 "$untransformed" evaluate 3 untransformed --mode=predict
expect_line 2 "$untransformed" evaluate 1 untransformed --mode=spectra
expect_line 2 "data.path: new: numeric field price: mean " evaluate 1 new
expect_line 2 "categorical field tags: keeps the first 1; $trained first 64" evaluate 1 one_tag
evaluate 2 new_with_its_ids >log 2>&1 || fail "rows with the training set's ids: $(cat log)"
# With equal means, the ids tell.
sed '/price/s/transform: LOG2_STANDARDIZE//' schema >schema_of_ids
prepare ids --schema=schema_of_ids --input=rows.tsv
prepare new_ids --schema=schema_of_ids --input=new_rows.tsv
"${train[@]}" --set=data.path=ids --output_dir=run_of_ids --set=training.max_steps=5 >log 2>&1 || cat log
expect_line 2 "data.path: new_ids: categorical field item: vocabulary " evaluate 1 new_ids \
  --model=run_of_ids/model
# To go on from a checkpoint, and to begin from one.
expect_line 2 "numeric field price: transform NONE; run/checkpoints/step-0000000060" on_ranks 2 \
  "${train[@]}" --output_dir=run --resume --set=data.path=untransformed
warm=("${train[@]}" --output_dir=warm --set=training.max_steps=2)
expect_line 2 "training.warm_start: numeric field price: transform NONE; $trained" \
  "${warm[@]}" --set=data.path=untransformed --set=training.warm_start.path=run/model
rm -rf warm
expect_line 2 "training.warm_start: categorical field item: vocabulary " \
  "${warm[@]}" --set=data.path=new_ids --set=training.warm_start.path=run_of_ids/model
rm -rf warm

# Keys are no ids of a vocabulary, and the other way round.
sed '/"item"/s/CATEGORICAL/& encoding: HASHED_KEY/' schema_of_ids >schema_of_keys
sed 's/HASHED_KEY/IDENTITY_KEY/' schema_of_keys >schema_of_numbers
prepare keys --schema=schema_of_keys --input=rows.tsv
"${train[@]}" --set=data.path=keys --output_dir=run_of_keys --set=training.max_steps=5 >log 2>&1 || cat log
expect_line 2 "data.path: keys: categorical field item: encoding HASHED_KEY; \
run_of_ids/model/manifest.json was trained on VOCABULARY" evaluate 3 keys --model=run_of_ids/model
expect_line 2 "data.path: ids: categorical field item: encoding VOCABULARY; \
run_of_keys/model/manifest.json was trained on HASHED_KEY" evaluate 1 ids --model=run_of_keys/model
evaluate 2 keys --model=run_of_keys/model >log 2>&1 || fail "a model of keys: $(cat log)"
expect_line 2 "training.warm_start: categorical field item: encoding HASHED_KEY; " \
  "${warm[@]}" --set=data.path=keys --set=training.warm_start.path=run_of_ids/model
rm -rf warm
expect_line 2 "--vocabulary_from=ids encodes field item as vocabulary, the schema as hashed_key" \
  "$prepare" --schema=schema_of_keys --input=new_rows.tsv --vocabulary_from=ids --output_dir=mistake
expect_line 2 "--vocabulary_from=keys encodes field item as hashed_key, the schema as vocabulary" \
  "$prepare" --schema=schema_of_ids --input=new_rows.tsv --vocabulary_from=keys --output_dir=mistake
expect_line 2 "rows.tsv:1: column 3 (item): found 'i" \
  "$prepare" --schema=schema_of_numbers --input=rows.tsv --output_dir=mistake
expect_line 2 "--grow: no field of the schema has a vocabulary; tables of HASH and IDENTITY have" \
  "$prepare" --schema=schema_of_keys --input=rows.tsv --vocabulary_from=keys --grow --output_dir=mistake

# A model holds the vocabularies, and knows them.
diff --recursive data/vocabulary run/model/vocabulary || fail "the model's vocabularies are others"
"$trainer" --mode=verify --model=run/model >log 2>&1 || fail "verify: $(cat log)"
cp --recursive run/model other_values
echo 'another' >>other_values/vocabulary/item.tsv
expect_line 2 "other_values/vocabulary/item.tsv: has the hash " \
  "$trainer" --mode=verify --model=other_values

# ---- Damage: the same code in every file, on every number of ranks.
flip() { # FILE OFFSET
  local byte
  byte=$(od --address-radix=n --format=u1 --skip-bytes="$2" --read-bytes=1 "$1")
  printf "%b" "\\x$(printf %02x $((byte ^ 1)))" |
    dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
fresh() { # RANKS
  rm -rf fresh
  on_ranks "$1" "${train[@]}" --set=data.path=data --output_dir=fresh
}
for file in data/train.rows data/validation.rows data/meta.json data/stats.json \
  data/vocabulary/item.tsv; do
  flip $file 200
  expect_line 2 "$file: " fresh 1
  [[ $file != data/train.rows ]] || expect_line 2 "$file: " fresh 3
  flip $file 200
done
sed --in-place '0,/"item"/s//"itam"/' data/meta.json
expect_line 2 "data/meta.json: the text does not match its hash" fresh 1
sed --in-place 's/"itam"/"item"/' data/meta.json

# ---- Files that change while a run reads them.
# disturb RANKS EPOCHS COMMAND...: a run into disturbed/, on data in changing/, with the command in
# its middle; its exit code. What it says is in the file `said`.
disturb() {
  local ranks=$1 epochs=$2 pid
  shift 2
  rm -rf changing disturbed
  cp --recursive data changing
  on_ranks "$ranks" "${train[@]}" --set=data.path=changing --output_dir=disturbed \
    --set=training.epochs="$epochs" --set=checkpoint.disabled=true >said 2>&1 &
  pid=$!
  until grep --quiet '"event":"eval"' disturbed/metrics.jsonl 2>/dev/null || ! kill -0 "$pid"; do
    sleep 0.1
  done
  "$@"
  wait "$pid"
}
# refused RANKS CODE TEXT COMMAND...: a run that the command disturbs must end with that code and one
# line that holds the text. (Undisturbed it would take a minute.)
refused() {
  local ranks=$1 code=$2 text=$3 status
  shift 3
  disturb "$ranks" 3000 "$@"
  status=$?
  if [[ $status -ne $code || $(loud_lines <said | wc --lines) -ne 1 ]] ||
    ! grep --quiet --fixed-strings -- "$text" said; then
    fail "disturbed by $*: expected exit code $code and one line with: $text"
    printf '  found exit code %d and:\n%s\n' "$status" "$(tail --lines=20 said)"
  fi
}
other_block() {
  dd if=/dev/urandom of=changing/train.rows bs=64 count=1 seek=100 conv=notrunc status=none
}
# By who puts the time of the last write back.
other_label() {
  cp --preserve=timestamps changing/train.rows copy
  flip changing/train.rows 3
  touch --reference=copy changing/train.rows
}
cut_off() { truncate --size=5000 changing/train.rows; }
validation_cut_off() { truncate --size=100 changing/validation.rows; }
refused 1 2 "changing/train.rows: block 0 at byte 0 does not match its checksum" other_block
refused 3 2 "changing/train.rows: block 0 at byte 0 does not match its checksum" other_label
refused 1 3 "changing/train.rows: cut off at byte 5000 while it was read" cut_off
refused 3 3 "changing/train.rows: cut off at byte 5000 while it was read" cut_off
refused 2 3 "changing/validation.rows: cut off at byte 100 while it was read" validation_cut_off

# The same bytes written once more, or another file in the place of the one that is read, change
# nothing.
same_bytes() { dd if=data/train.rows of=changing/train.rows conv=notrunc status=none; }
another_file() { head --bytes=9000 data/train.rows >another && mv another changing/train.rows; }
disturb 1 100 true || fail "undisturbed: $(cat said)"
digest=$(digest_of disturbed)
for harmless in same_bytes another_file; do
  disturb 2 100 $harmless || fail "$harmless: $(cat said)"
  [[ $(digest_of disturbed) == "$digest" ]] || fail "$harmless: another digest"
done
exit "$((failures > 0))"
