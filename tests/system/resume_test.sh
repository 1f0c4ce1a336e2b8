#!/usr/bin/env bash
# A run that is stopped and goes on, on other numbers of ranks and under other plans, ends with the
# bits of one that never stopped: every loss, every scheduled evaluation, the rates after plateaus,
# the best weights' metrics and the state digest. Stopped by max_steps, by a signal and by kill -9;
# gone on with from full checkpoints and from deltas. What they publish has the same bytes, too.
# Arguments: the trainer, prepare, slow_disk.so.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
slow_disk=$PWD/$3
work=$TEST_TMPDIR
source "$(dirname "$0")/spread_run.sh"

# 201 steps: three epochs of 66 whole batches and a short one.
cat >"$work/tiny.textproto" <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 dropout: 0.1 } }
embedding { width: 4 init_stddev: 0.1 }
optimizer { learning_rate: 0.02 clip_norm: 0.5 dense_l2: 1e-4 embedding_l2: 1e-4 }
training {
  batch_size: 72 epochs: 3 log_every_steps: 1 eval_every_steps: 10
  schedule { warmup_steps: 20 decay: COSINE final_share: 0.1 plateau_factor: 0.7 plateau_patience: 2 }
  monitor { best_weights: true early_stop_patience: 50 }
}
spectrum { every_steps: 50 samples: 32 }
parallel { virtual_shards: 8 }
EXPERIMENT
make_tiny_data 6000

# train RANKS RUN ARGUMENT...
train() {
  local ranks=$1 run=$2
  shift 2
  on_ranks "$ranks" "$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/data" \
    --output_dir="$run" "$@" >"$work/log" 2>&1
}

# decided_numbers RUN: all that an interruption must not change.
decided_numbers() {
  digest_of "$1"
  grep --extended-regexp '"(auc|logloss|best_step|best_metric|steps)":' "$1/summary.json"
  grep --extended-regexp '"event":"train"|"scheduled":true' "$1/metrics.jsonl" |
    sed 's/,"samples_per_s":.*//'
}

# same_as_whole RUN WHAT
same_as_whole() {
  if ! diff <(decided_numbers "$work/whole") <(decided_numbers "$1") >"$work/difference"; then
    fail "$2: other numbers than the run that never stopped (<)"
    head --lines=6 "$work/difference"
  fi
}

# must_train WHAT RANKS RUN ARGUMENT...
must_train() {
  local what=$1
  shift
  train "$@" && return
  fail "$what"
  cat "$work/log"
}

plan=--set=parallel.plan
publish=(--set=publish.every_steps=20 --set=publish.base_every=4 --set=publish.keep_bases=9)
must_train "the whole run" 1 "$work/whole" --set=checkpoint.disabled=true "${publish[@]}" \
  --set=publish.path="$work/whole_published"
# same_published FOLDER WHAT
same_published() {
  diff --recursive "$work/whole_published" "$1" >"$work/difference" ||
    fail "$2: publications with other bytes than those of the run that never stopped (<): $(cat "$work/difference")"
}
published=$(find "$work/whole_published" -mindepth 1 -maxdepth 1 -type d | wc --lines)
[[ $published -eq 13 ]] || fail "expected 4 bases and 9 deltas, found $published publications"
# The end put the best weights back: they are the last base, and the model.
for file in dense embedding-00000-of-00001; do
  cmp "$work"/{whole_published/base-0000000011,whole/model}/$file.safetensors || fail "the last publication is not the model"
done

# The comparison is worth something: a plateau before the first stop and one after the last, and best
# weights that are not the last.
rates=$(sed --quiet 's/.*"step":\([0-9]*\),.*"learning_rate":\([^,]*\),.*/\1 \2/p' \
  "$work/whole/metrics.jsonl" | wc --lines)
[[ $rates -eq 201 ]] || fail "expected 201 records with a rate, found $rates"
best=$(sed --quiet 's/.*"best_step": \([0-9]*\),.*/\1/p' "$work/whole/summary.json")
[[ -n $best && $best -gt 0 && $best -lt 201 ]] || fail "expected a best step inside the run, found '$best'"

# What is measured with the best weights put back is of their step, at the end and later.
last_step() { grep "\"event\":\"$2\"" "$1/metrics.jsonl" | tail --lines=1 | sed 's/.*"step":\([0-9]*\),.*/\1/'; }
for event in eval spectrum; do
  [[ $(last_step "$work/whole" $event) -eq $best ]] ||
    fail "the last $event: expected step $best, found $(last_step "$work/whole" $event)"
done
# A model holds its experiment.
"$trainer" --mode=evaluate --model="$work/whole/model" --output_dir="$work/evaluated" >"$work/log" 2>&1 ||
  fail "evaluate without an experiment: $(cat "$work/log")"
diff <(grep '"event":"eval"' "$work/whole/metrics.jsonl" | tail --lines=1) \
  <(grep '"event":"eval"' "$work/evaluated/metrics.jsonl") || fail 'evaluate: another record than at the end of training'

publish+=(--set=publish.path="$work/a_published")
must_train "8 ranks to step 100" 8 "$work/a" --set=training.max_steps=100 "${publish[@]}"
must_train "5 ranks to step 150" 5 "$work/a" --resume --set=training.max_steps=150 \
  --set=parallel.threads=2 --set=parallel.overlap=true --set=parallel.first_ids_first=true "${publish[@]}"
must_train "1 rank to the end" 1 "$work/a" --resume "${publish[@]}"
grep --quiet 'publish.path: 10 steps since number 7' "$work/log" || fail "no line on batches that are read again"
same_as_whole "$work/a" "8, 5, 1 ranks"
same_published "$work/a_published" "8, 5, 1 ranks"
# It stopped at steps where spectra are due, and measured others with the best weights put back.
diff <(grep '"event":"spectrum"' "$work/whole/metrics.jsonl") \
  <(grep '"event":"spectrum"' "$work/a/metrics.jsonl") >"$work/difference" ||
  fail "other spectra than the run that never stopped (<): $(head --lines=4 "$work/difference")"

must_train "row-wise to step 67" 4 "$work/b" --set=training.max_steps=67 $plan=ROW_WISE
must_train "table-wise to step 130" 3 "$work/b" --resume --set=training.max_steps=130 \
  $plan=TABLE_WISE --set=checkpoint.every_steps=25
must_train "replicated to the end" 8 "$work/b" --resume $plan=REPLICATED
same_as_whole "$work/b" "row-wise, table-wise, replicated"

# By the clock; and with a state that may not be copied, so that training waits for the writing.
must_train "checkpoints by the clock" 2 "$work/e" --set=checkpoint.every_minutes=1e-6 \
  --set=checkpoint.staging_bytes=1
same_as_whole "$work/e" "checkpoints by the clock"
written=$(grep --count '"event":"checkpoint"' "$work/e/metrics.jsonl")
[[ $written -gt 100 ]] || fail "by the clock: expected a checkpoint nearly every step, found $written"

# Deltas, which every two steps touch too many rows of these small tables for one full one to last:
# it goes on from one whose base stands beside it, from a full one, and from a delta of that.
deltas=(--set=checkpoint.delta_every_steps=2 --set=checkpoint.keep=2)
is_delta() { grep --quiet '^  "base"' "$work/f/checkpoints/step-0000000$1/manifest.json"; }
must_train "deltas to step 102" 3 "$work/f" --set=training.max_steps=102 "${deltas[@]}"
is_delta 102 || fail "expected a delta at step 102"
"$trainer" --mode=verify --model="$work/f/checkpoints/step-0000000102" >"$work/log" 2>&1 ||
  fail "verify a delta: $(cat "$work/log")"
must_train "on other ranks to step 103" 5 "$work/f" --resume --set=training.max_steps=103 \
  "${deltas[@]}" $plan=TABLE_WISE
must_train "by the clock to step 150" 2 "$work/f" --resume --set=training.max_steps=150 \
  --set=checkpoint.delta_every_minutes=1e-6 --set=parallel.threads=2
# The last one and its base as one folder, in the place of both.
last=$work/f/checkpoints/step-0000000150
compact() { on_ranks "$1" "$trainer" --mode=compact --model="$last" --output_dir="$work/compacted" "${@:2}"; }
compact 3 --set=parallel.threads=2 --set=parallel.deadline_seconds=600 >"$work/log" 2>&1 || fail "compact: $(cat "$work/log")"
expect_line 2 "compacted: holds 'dense.safetensors'; expected a new or empty directory" compact 2
expect_line 2 'writes no records' compact 1 --tensorboard
expect_line 2 'computes on the CPU' compact 1 --device=cuda
expect_line 2 'expected parallel.threads, start_seconds' compact 1 --set=training.seed=4
expect_line 2 'parallel.deadline_seconds: -1; expected a positive number' compact 1 \
  --set=parallel.deadline_seconds=-1
rm --recursive "$work"/f/checkpoints/step-*
mv "$work/compacted" "$last"
must_train "to the end without deltas" 4 "$work/f" --resume
same_as_whole "$work/f" "deltas"
full=$(grep '"event":"checkpoint"' "$work/f/metrics.jsonl" | grep --invert-match --count '"base":')
written=$(grep --count '"event":"checkpoint"' "$work/f/metrics.jsonl")
[[ $full -gt 5 && $written -gt $((3 * full / 2)) ]] ||
  fail "expected deltas between full checkpoints, found $written checkpoints, $full of them full"

# interrupt SIGNAL CODE RUN PATTERN ARGUMENT...: one rank, and the signal once metrics.jsonl has the
# pattern; must end with that exit code. Again when the run was faster.
interrupt() {
  local signal=$1 code=$2 run=$3 pattern=$4 status
  shift 4
  for _ in 1 2 3 4 5; do
    rm -rf "$run"
    "$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/data" \
      --output_dir="$run" "$@" >"$work/log" 2>&1 &
    until grep --quiet "$pattern" "$run/metrics.jsonl" 2>/dev/null || ! kill -0 $! 2>/dev/null; do
      sleep 0.01
    done
    kill -"$signal" $! 2>/dev/null
    wait $! 2>/dev/null
    status=$?
    [[ $status -eq $code ]] && return
  done
  fail "signal $signal: expected exit code $code, found $status"
}

# Killed between checkpoints, which are written while training goes on.
publish[-1]=--set=publish.path=$work/c_published
interrupt KILL 137 "$work/c" '"event":"checkpoint","step":60' --set=checkpoint.every_steps=30 "${publish[@]}"
must_train "after kill -9" 3 "$work/c" --resume "${publish[@]}"
same_as_whole "$work/c" "killed"
same_published "$work/c_published" "killed"
# Killed between the two folders of a number: the base comes when the run is at its step again.
rm --recursive "$work"/c_published/{base-0000000009,delta-0000000010,base-0000000011} "$work"/c/{model,summary.json}
rm --recursive "$work"/c/checkpoints/step-0000000{180,201}
must_train "after a base was not written" 1 "$work/c" --resume "${publish[@]}"
same_published "$work/c_published" "without a base"
# Killed after the last publication: the end is computed again, and compared.
rm --recursive "$work"/c/{model,summary.json,checkpoints/step-0000000201}
must_train "after the last publication" 1 "$work/c" --resume "${publish[@]}"
same_published "$work/c_published" "the end again"
expect_line 2 'holds the publications of another run' "$trainer" --experiment="$work/tiny.textproto" \
  --set=data.path="$work/data" --output_dir="$work/other" --set=training.seed=9 "${publish[@]}"
[[ $(find "$work/c/checkpoints" -name 'step-*' | wc --lines) -le 3 ]] || fail "more than 3 checkpoints"
[[ -z $(find "$work/c" -name '*.partial' -o -name '*.tmp') ]] || fail "something unfinished stays"

# Killed while a delta, or the base beside one, is not whole: no checkpoint of its step or a later one is, either.
publish[-1]=--set=publish.path=$work/h_published
# kill_without NAME STEP ARGUMENT...: after that step's evaluation; its publication never gets its name.
kill_without() {
  local name=$1 step=$2
  shift 2
  LD_PRELOAD=$slow_disk SLOW_RENAME=/$name "$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/data" \
    --output_dir="$work/h" --set=checkpoint.every_steps=5 "${publish[@]}" "$@" >"$work/log" 2>&1 &
  wait_until grep --quiet "\"event\":\"eval\",\"split\":\"validation\",\"step\":$step," "$work/h/metrics.jsonl"
  sleep 0.3
  kill -KILL $!
  wait $! 2>/dev/null
  [[ ! -e $work/h_published/$name ]] || fail "$name got its name"
}
kill_without delta-0000000002 40
mkdir "$work/h_published/base-0000000003.partial"
kill_without base-0000000005 100 --resume
must_train "after publications were not whole" 2 "$work/h" --resume "${publish[@]}"
same_as_whole "$work/h" "publications that were not whole"
same_published "$work/h_published" "publications that were not whole"

# Killed while old publications are removed: what is half there has not the name of a whole one.
LD_PRELOAD=$slow_disk SLOW_REMOVE=dense.safetensors "$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/data" \
  --output_dir="$work/o" --set=publish.every_steps=20 --set=publish.path="$work/o_published" \
  --set=publish.base_every=2 --set=publish.keep_bases=1 --set=training.monitor.best_weights=false >"$work/log" 2>&1 &
wait_until test -e "$work/o_published/base-0000000003"
sleep 0.5
kill -KILL $!
wait $! 2>/dev/null
[[ -e $work/o_published/base-0000000003 && ! -e $work/o_published/delta-0000000002 ]] ||
  fail "removed under the name of a whole one: $(ls "$work/o_published" "$work/o_published/delta-0000000002")"

# Stopped by a signal: a checkpoint, and exit code 75.
interrupt USR1 75 "$work/d" '"event":"train","step":30,'
must_train "after a signal" 2 "$work/d" --resume
same_as_whole "$work/d" "stopped by a signal"

# Stopped within an evaluation or a measurement of spectra, as both follow every step. It is made first when the run goes
# on, also where the run ends with that step, whose checkpoint is then written anew.
often=(--set=training.eval_every_steps=1 --set=training.epochs=1 --set=spectrum.every_steps=1)
interrupt TERM 75 "$work/g" '"event":"train","step":5,' "${often[@]}"
stop=$(echo "$work"/g/checkpoints/step-* | sed 's/.*step-0*//')
grep --quiet --extended-regexp '"(evaluation|spectrum)_pending": *true' "$work"/g/checkpoints/step-*/manifest.json ||
  fail "no measurement after step $stop was cut short"
must_train "the whole run" 1 "$work/often" --set=checkpoint.disabled=true "${often[@]}"
must_train "the run to step $stop" 1 "$work/often_to_stop" --set=checkpoint.disabled=true "${often[@]}" \
  --set=training.max_steps="$stop"
must_train "to the step of the stop" 3 "$work/g" --resume "${often[@]}" --set=training.max_steps="$stop"
[[ $(digest_of "$work/g") == "$(digest_of "$work/often_to_stop")" ]] || fail "stopped within an evaluation: another digest"
must_train "after a stopped evaluation" 2 "$work/g" --resume "${often[@]}"
diff <(decided_numbers "$work/often") <(decided_numbers "$work/g") >"$work/difference" ||
  fail "stopped within an evaluation: other numbers: $(head --lines=6 "$work/difference")"
diff <(grep '"event":"spectrum"' "$work/often/metrics.jsonl") <(grep '"event":"spectrum"' "$work/g/metrics.jsonl") \
  >"$work/difference" || fail "stopped within an evaluation: other spectra: $(head --lines=4 "$work/difference")"

# A new run goes on from a finished one: at a constant rate its weights, slots, losses and decisions are those of one
# long run, also with plateaus, dropout, best weights of the first run and a state that it found in mid-epoch.
steady=(--set=training.schedule.decay=CONSTANT --set=training.schedule.plateau_patience=3)
long=("${steady[@]}" --set=training.epochs=2)
must_train "one long run" 1 "$work/long" "${long[@]}"
must_train "one epoch" 2 "$work/short" "${steady[@]}" --set=training.epochs=1
must_train "stopped in mid-epoch" 1 "$work/middle" "${long[@]}" --set=training.max_steps=51
go_on() { on_ranks "$1" "$trainer" --continue="$2" --output_dir="$3" "${@:4}"; }
go_on 3 "$work/short" "$work/more" --set=training.epochs=2 --set=training.max_steps=100 >"$work/log" 2>&1 ||
  fail "go on: $(cat "$work/log")"
go_on 1 "$work/short" "$work/more" --set=training.epochs=2 --resume >"$work/log" 2>&1 || fail "stopped: $(cat "$work/log")"
go_on 1 "$work/middle" "$work/rest" --set=training.max_steps=0 >"$work/log" 2>&1 || fail "go on in mid-epoch: $(cat "$work/log")"
state=checkpoints/step-0000000134
# tensors_of RUN: all weights and slots of its last state, in one order whatever ranks wrote them.
tensors_of() {
  "$trainer" --mode=compact --model="$1/$state" --output_dir="$1.one" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
  (cd "$1.one" && sha256sum ./*.safetensors)
}
# decisions_of RUN STEP: of steps after that one.
decisions_of() {
  grep --extended-regexp '"(auc|logloss|best_step|best_metric|steps)":' "$1/summary.json"
  grep --extended-regexp '"event":"train"|"scheduled":true' "$1/metrics.jsonl" |
    sed 's/,"samples_per_s":.*//' | awk -F'"step":' -v last="$2" '$2 + 0 > last'
}
tensors_of "$work/long" >"$work/long.tensors"
for run in "more 67" "rest 51"; do
  read -r name after <<<"$run"
  diff "$work/long.tensors" <(tensors_of "$work/$name") >"$work/difference" ||
    fail "$name: other weights or slots than one long run: $(cat "$work/difference")"
  diff <(decisions_of "$work/long" "$after") <(decisions_of "$work/$name" "$after") >"$work/difference" ||
    fail "$name: other numbers than one long run: $(head --lines=6 "$work/difference")"
done
# Where nothing better comes, the end puts back the best weights of the run before, which may be gone by then.
go_on 2 "$work/short" "$work/worse" --set=training.epochs=2 --set=optimizer.learning_rate=5 >"$work/log" 2>&1 ||
  fail "go on at another rate: $(cat "$work/log")"
cmp "$work/short/model/dense.safetensors" "$work/worse/model/dense.safetensors" ||
  fail "the best weights of the run before were not put back"
# It is not to be taken for a long run.
before=$(digest_of "$work/short")
expect_other_digest "a run that went on" "$work/long" "$work/more"
grep --quiet "\"continued_digest\": \"$before\"" "$work/more/summary.json" || fail "the summary lacks the state before"
grep --quiet "\"name\": \".*-after-${before:0:8}\"" "$work/more/summary.json" || fail "the name lacks the state before"
grep --quiet "\"continued_digest\":\"$before\"" "$work/more/$state/manifest.json" || fail "the control record lacks the state before"
resume_longer() {
  "$trainer" --experiment="$work/tiny.textproto" --set=data.path="$work/data" "${long[@]}" --output_dir="$work/short" --resume
}
expect_line 2 'training.seed: 7; expected 0, as in the run before' go_on 1 "$work/short" "$work/no" --set=training.epochs=2 --set=training.seed=7
for wrong in training.batch_size=36 parallel.virtual_shards=32 model.blocks=2 optimizer.dense=SGD data.train_rows=99; do
  expect_line 2 'a run that goes on may change epochs' go_on 1 "$work/short" "$work/no" --set=training.epochs=2 --set="$wrong"
done
sed --in-place 's/seed: 1/seed: 2/' "$work/schema.textproto"
"$prepare" --schema="$work/schema.textproto" --output_dir="$work/other" >"$work/log" 2>&1
expect_line 2 'the data set of the checkpoint' go_on 1 "$work/short" "$work/no" --set=training.epochs=2 --set=data.path="$work/other"
expect_line 2 'training.schedule.decay_steps: 0 means all epochs' go_on 1 "$work/short" "$work/no" \
  --set=training.epochs=2 --set=training.schedule.decay=COSINE
expect_line 2 'training.epochs: 1; the run before has done 1, expected more' go_on 1 "$work/short" "$work/no"
expect_line 2 'training.max_steps: 51; the run before has done 51' go_on 1 "$work/middle" "$work/no"
expect_line 2 'has no checkpoint in checkpoints/' go_on 1 "$work/other" "$work/no"
expect_line 2 'a new run with another value goes on by --continue=RUN' resume_longer
expect_line 2 'changes by --set' go_on 1 "$work/short" "$work/no" --experiment="$work/tiny.textproto"
[[ -e $work/no ]] && fail "a refused run left a folder"

# A run that is complete stays what it is.
must_train "again" 2 "$work/d" --resume
same_as_whole "$work/d" "complete"
exit "$((failures > 0))"
