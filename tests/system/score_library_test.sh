#!/usr/bin/env bash
# libelastor_score.so as a C program uses it: compiled by a C compiler against the header and the library
# alone, it gives the bytes of mode predict; the library exports the C interface and nothing else, and needs
# no MPI. Arguments: the trainer, prepare, the library, its header, the program's source.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
library=$PWD/$3
header=$PWD/$4
program=$PWD/$5
source "$(dirname "$0")/spread_run.sh"
cd "$TEST_TMPDIR" || exit 1

# expect_same WHAT EXPECTED FOUND
expect_same() {
  if [[ -z $2 || $2 != "$3" ]]; then fail "$1: expected '$2', found '$3'"; fi
}

expect_same 'exported names' "$(grep --only-matching 'elastor_[a-z_]*(' "$header" | tr -d '(' | sort)" \
  "$(nm --dynamic --defined-only "$library" | awk '$2 != "A" { sub("@.*", "", $3); print $3 }' | sort)"
expect_same 'name for the loader' 'libelastor_score.so.1' \
  "$(readelf --dynamic "$library" | sed --quiet 's/.*SONAME.*\[\(.*\)\]/\1/p')"
if ldd "$library" | grep --quiet libmpi; then fail 'the library needs MPI'; fi

for i in $(seq 400); do echo "$((i * 7 % 3 == 0)),u$((i % 11)),$((i % 17)).5"; done >rows.csv
cat >schema.textproto <<'SCHEMA'
name: "tiny"
layout: DELIMITED
delimiter: ","
fields { name: "click" type: LABEL }
fields { name: "user" type: CATEGORICAL }
fields { name: "price" type: NUMERIC }
SCHEMA
cat >tiny.textproto <<'EXPERIMENT'
model { dcn_v2 { cross_layers: 2 hidden: 4 } }
embedding { width: 3 }
optimizer { learning_rate: 0.01 }
training { batch_size: 128 seed: 3 }
spectrum { disabled: true }
EXPERIMENT
"$prepare" --schema=schema.textproto --input=rows.csv --output_dir=data >prepare.log 2>&1 ||
  fail "prepare: $(cat prepare.log)"
"$trainer" --experiment=tiny.textproto --set=data.path=data --output_dir=run >train.log 2>&1 ||
  fail "train: $(cat train.log)"

# As it is installed.
mkdir -p include lib
cp "$header" include/
cp "$library" lib/libelastor_score.so.1
ln --symbolic libelastor_score.so.1 lib/libelastor_score.so
cc -std=c99 -pedantic -Wall -Wextra -Werror -Iinclude "$program" -Llib -lelastor_score -o score ||
  fail 'the program does not compile'
printf 'u3,1.5\nu4,\n,2.5\nnobody,-7\n' >new.csv
"$trainer" --mode=predict --model=run/model --input=new.csv 2>predict.log >expected.csv ||
  fail "predict: $(cat predict.log)"
expect_same 'probabilities' "$(cut --delimiter=, --fields=3 expected.csv | tail --lines=+2)" \
  "$(LD_LIBRARY_PATH=lib ./score run/model u3 1.5 u4 '' '' 2.5 nobody -7)"
expect_same 'a wrong number' "2 row 0: column 2 (price): found 'dear', expected a number" \
  "$(LD_LIBRARY_PATH=lib ./score run/model u3 dear)"
# Its products of features exceed float.
expect_same 'a score that is not finite' "4 row 1: the model's logit is not finite" \
  "$(LD_LIBRARY_PATH=lib ./score run/model u3 1.5 u3 3e38)"
expect_same 'no folder' 2 "$(LD_LIBRARY_PATH=lib ./score nowhere | cut --delimiter=' ' --fields=1)"

exit "$((failures > 0))"
