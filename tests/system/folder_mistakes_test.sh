#!/usr/bin/env bash
# Folders and streams that are not what a run needs: an output folder that holds other things, is
# taken by another process, or goes away in mid-run; stdout that is full, closed, or read by nobody;
# names that are not UTF-8; paths that mean something else elsewhere. Each ends in one line or in a
# whole run, and a refused command leaves nothing behind. Also: every script answers --help.
# Arguments: the trainer, prepare.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
sources=$PWD
source "$(dirname "$0")/spread_run.sh"
cd "$TEST_TMPDIR" || exit 1
work=.
make_tiny_data 2000
cat >tiny.textproto <<'EXPERIMENT'
model { rank_elastor { tokens: 4 token_width: 8 blocks: 1 } }
embedding { width: 4 }
training { batch_size: 64 max_steps: 5 }
spectrum { disabled: true }
EXPERIMENT
tiny=("$trainer" --experiment=tiny.textproto --set=data.path=data)
model=--model=run/model

# must COMMAND...
must() {
  "$@" >log 2>&1 && return
  fail "$*"
  cat log
}
# expect_end CODE PATTERN WHAT: the last command's exit code, and its last line in `log`.
expect_end() {
  local status=$?
  [[ $status -eq $1 && $(tail --lines=1 log) == *"$2"* ]] ||
    fail "$3: expected exit code $1 and '$2', found $status and: $(tail --lines=2 log)"
}
must "${tiny[@]}" --output_dir=run
grep --quiet 'RANK_ELASTOR: 5 steps on 1 rank in' log || fail "expected '5 steps on 1 rank': $(cat log)"

# A folder that holds other things stays as it is.
mkdir used
for file in predictions.csv plan.txt; do echo mine >used/$file; done
for mode in train "evaluate $model" "predict $model" "spectra $model"; do
  # shellcheck disable=SC2086 # words
  expect_line 2 "--output_dir=used: holds 'plan.txt'; expected a new or empty directory" \
    "${tiny[@]}" --output_dir=used --mode=$mode
done
expect_line 2 "used: holds 'plan.txt' and no run; expected a run that --resume can continue" \
  on_ranks 2 "${tiny[@]}" --output_dir=used --resume
[[ $(cd used && echo * && cat *) == $'plan.txt predictions.csv\nmine\nmine' ]] ||
  fail "used/ has changed: $(head used/*)"
expect_line 2 "data: holds 'meta.json'" "${tiny[@]}" --output_dir=data
expect_line 2 'run: holds a run already (experiment.textproto); expected a new or empty directory' \
  "${tiny[@]}" --mode=evaluate $model --output_dir=run
expect_line 2 'tiny.textproto/x: cannot be made' "${tiny[@]}" --output_dir=tiny.textproto/x
# Another experiment's run that has no checkpoint yet.
mkdir begun && cp run/experiment.textproto begun/
expect_line 2 'training.seed: 4; expected 0, as in begun/experiment.textproto' \
  "${tiny[@]}" --output_dir=begun --resume --set=training.seed=4

# A refused command leaves nothing behind, and the corrected one is not refused.
evaluate=(--output_dir=new/deep --mode=evaluate)
expect_line 2 'nowhere/manifest.json' on_ranks 3 "${tiny[@]}" "${evaluate[@]}" --model=nowhere
expect_line 2 '--model=run: is a run'"'"'s folder; expected the model in it, run/model' \
  "${tiny[@]}" "${evaluate[@]}" --model=run
expect_line 2 'training.seed: 4; expected 0' "${tiny[@]}" "${evaluate[@]}" $model --set=training.seed=4
expect_line 2 'no_such' "${tiny[@]}" --output_dir=new/deep --set=training.warm_start.path=no_such
[[ ! -e new ]] || fail "a refused command left $(find new)"
must "${tiny[@]}" "${evaluate[@]}" $model --split=test
line='evaluated 200 rows of the test split on 1 rank in'
[[ $(head --lines=1 log) == *"$line"* ]] || fail "expected '$line': $(cat log)"
# Nor does one that finds no room for its results, here for files of more than 2 KiB.
no_room() {
  ulimit -f 2
  exec "${tiny[@]}" --output_dir=cramped --mode=predict $model
}
expect_line 3 'cramped/predictions.csv.tmp: write: File too large' no_room
[[ ! -e cramped ]] || fail "a predict without room left $(find cramped)"
cp --recursive run damaged
truncate --size=-8 damaged/checkpoints/step-*/dense.safetensors
expect_line 2 'dense.safetensors' "${tiny[@]}" --output_dir=damaged --resume
cmp run/summary.json damaged/summary.json || fail "a refused --resume has changed the run"

# Of two processes with one folder, one is refused.
for process in 1 2 3; do
  "${tiny[@]}" --output_dir=one >log.$process 2>&1 &
done
taken=0
for process in 1 2 3; do
  wait -n
  case $? in 0) ;; 2) taken=$((taken + 1)) ;; *) taken=9 ;; esac
done
[[ $taken -eq 2 && -e one/summary.json ]] || fail "three processes, one folder: $(cat log.?)"

# --resume looks for a checkpoint once it has the folder: until then another process may write there. Here this
# script holds the lock, and takes away the newest checkpoint meanwhile.
must "${tiny[@]}" --output_dir=parts --set=checkpoint.every_steps=2 --set=checkpoint.keep=3
cp parts/summary.json whole.json
exec 9<parts
resume_parts() { # begins it, and waits until it waits for the lock
  flock 9
  "${tiny[@]}" --output_dir=parts --resume >log 2>&1 9<&- &
  until grep --quiet 'parts: another process is writing there; waiting for its end' log; do
    kill -0 $! 2>/dev/null || break
    sleep 0.01
  done
}
resume_parts
kill -TERM $!
wait $!
expect_end 75 'trainer: stopped by SIGTERM; the work is not done' 'SIGTERM while a run is set up'
resume_parts
mv parts/checkpoints/step-0000000005 newest
flock --unlock 9
wait $!
expect_end 0 '' '--resume behind another process'
grep --quiet 'continuing at step 4 from' log || fail "decided before it held the folder: $(cat log)"
[[ $(digest_of parts) == "$(sed --quiet 's/.*"state_digest": "\(.*\)",/\1/p' whole.json)" ]] ||
  fail 'another digest than of the whole run'
exec 9<&-

# An export or a compaction takes up its folder after a death, whose remains are its own, but removes nobody's
# files; of two at once, one is refused.
compact="compact --model=parts/checkpoints/step-0000000004"
for mode in "export $model" "$compact"; do
  out=made_by_${mode%% *}
  mkdir --parents $out $out.partial/vocabulary
  if [[ $mode == "$compact" ]]; then left=manifest.json.tmp; else left=features.json.tmp; fi
  echo half >$out.partial/$left
  # shellcheck disable=SC2206 # words
  command=("$trainer" --mode=$mode --output_dir=$out)
  exec 9<$out
  flock 9
  expect_line 2 "--output_dir=$out: another process is writing there" "${command[@]}"
  exec 9<&-
  touch $out.partial/thesis.tex
  expect_line 2 "$out.partial: holds 'thesis.tex', and would be removed; expected another --output_dir" \
    "${command[@]}"
  [[ $(cat $out.partial/$left) == half ]] || fail "mode $mode: refused, and cleared its folder"
  rm $out.partial/thesis.tex
  must "${command[@]}"
  [[ -s $out/model.onnx || -s $out/manifest.json ]] && [[ ! -e $out.partial ]] ||
    fail "mode $mode after a death: $(find $out*)"
  expect_line 2 "--output_dir=$out: holds '" "${command[@]}"
done

# Pipes in the place of files: nobody waits for the other end.
mkfifo pipe
mkdir piped && mkfifo piped/meta.json piped/manifest.json
cp --recursive parts piped_run && rm piped_run/metrics.jsonl && mkfifo piped_run/metrics.jsonl
# expect_refused FILE COMMAND...
expect_refused() { expect_line 2 "$1: a named pipe; expected a file" timeout $hang_seconds "${@:2}"; }
expect_refused pipe "$trainer" --experiment=pipe --set=data.path=data --output_dir=scored
expect_refused pipe "${tiny[@]}" --flagfile=pipe --output_dir=scored
expect_refused piped/meta.json "${tiny[@]}" --set=data.path=piped --output_dir=scored
expect_refused piped/manifest.json "${tiny[@]}" --set=training.warm_start.path=piped --output_dir=scored
expect_refused piped_run/metrics.jsonl "${tiny[@]}" --output_dir=piped_run --resume
for mode in verify "export --output_dir=scored" "predict --input=test.csv --output_dir=scored"; do
  # shellcheck disable=SC2086 # words
  expect_refused piped/manifest.json "$trainer" --model=piped --mode=$mode
done
expect_refused piped_run/metrics.jsonl "$trainer" --mode=plot piped_run
expect_refused pipe "$prepare" --schema=pipe --output_dir=scored
expect_line 2 'pipe: is a pipe or a device, expected a file' timeout $hang_seconds "$prepare" --guess=pipe
[[ ! -e scored ]] || fail "refused pipes left $(find scored)"

# A path that the shell left alone, and one that is right from here only.
# shellcheck disable=SC2088 # as people type it
expect_line 2 '--output_dir=~/run: the shell leaves this ~ as it is; expected $HOME/run' \
  "${tiny[@]}" '--output_dir=~/run'
[[ ! -e '~' ]] || fail "a folder called ~"
mkdir elsewhere
(cd elsewhere && must "$trainer" --experiment=../run/experiment.textproto --mode=predict \
  --model=../run/model --output_dir=predicted && exit "$failures") || failures=$((failures + 1))
grep --quiet '^predictions: predicted/predictions.csv' elsewhere/log ||
  fail "no word of the file: $(cat elsewhere/log)"

# interrupt_with COMMAND FLAGS...: a long run to `gone` in which the command is done after a while.
interrupt_with() {
  local command=$1
  shift
  rm -rf gone moved
  timeout $hang_seconds "${tiny[@]}" --output_dir=gone --set=training.max_steps=0 --set=training.epochs=1000000 \
    --set=training.log_every_steps=10 "$@" >log 2>&1 &
  until [[ -s gone/metrics.jsonl ]] || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
  $command 2>/dev/null
  wait $!
}
lost='--output_dir=gone: was removed or moved while this run was writing there'
interrupt_with 'mv gone moved'
expect_end 3 "$lost" 'a folder that was moved'
[[ ! -e gone ]] || fail "the folder was made again: $(find gone)"
# What is missed first, while rm goes through the folder, may be any of its files.
interrupt_with 'rm -rf gone' --set=checkpoint.every_steps=20 --set=training.log_every_steps=19
expect_end 3 'gone' 'a folder that was removed, with checkpoints'
interrupt_with 'touch gone/checkpoints' --set=checkpoint.every_steps=1000
expect_end 3 'gone/checkpoints: mkdir: File exists' 'a file in the place of checkpoints'
# Only root can plant a link of another user's here.
plant_link() {
  mkdir --parents others && ln --symbolic ../others planted && chown --no-dereference 65534 planted &&
    mv --no-target-directory planted gone/checkpoints
}
if [[ $(id --user) -eq 0 ]]; then
  interrupt_with plant_link --set=checkpoint.every_steps=1000
  expect_end 3 'gone/checkpoints: a symbolic link of another user; expected a folder, or nothing' 'a planted link'
  [[ -z $(ls others) ]] || fail "a planted link was followed: $(find others)"
fi
interrupt_with 'rm gone/metrics.jsonl'
expect_end 3 'gone/metrics.jsonl: was removed or replaced' 'metrics.jsonl removed'

expect_line 2 'data.shape: no field, or none with ids; expected numeric_fields, or' \
  "$trainer" --mode=describe --experiment=tiny.textproto

# stdout: full, read by nobody, closed.
"${tiny[@]}" --output_dir=full >/dev/full 2>log
expect_end 3 'stdout: cannot write: No space left on device; the run is whole, its results are in full/summary.json' \
  'a full stdout'
[[ -s full/summary.json ]] || fail 'a full stdout: no summary.json'
for arguments in --help "--mode=verify $model" "--mode=describe --experiment=tiny.textproto --set=data.shape.numeric_fields=3"; do
  # shellcheck disable=SC2086 # words
  "$trainer" $arguments >/dev/full 2>log
  expect_end 3 'stdout: cannot write: No space left on device' "$arguments, a full stdout"
done
"${tiny[@]}" --output_dir=unread --set=training.log_every_steps=1 2>&1 | head --lines=1 >log
[[ ${PIPESTATUS[0]} -eq 0 && -s unread/summary.json ]] || fail "| head: $(cat log)"
"${tiny[@]}" --output_dir=closed >&- 2>log
expect_end 0 '' 'a closed stdout'
cmp <(sed 's/,"samples_per_s":.*//' run/metrics.jsonl | grep --invert-match checkpoint) \
  <(sed 's/,"samples_per_s":.*//' closed/metrics.jsonl | grep --invert-match checkpoint) ||
  fail 'a closed stdout: other metrics'

# What a run writes is UTF-8, so what it is given must be.
bad=$'caf\xe9'
told="is not UTF-8; expected UTF-8 text"
expect_line 2 "byte 15 of '--set=name=caf\\xe9' $told" "${tiny[@]}" --output_dir=text "--set=name=$bad"
expect_line 2 "byte 17 of '--output_dir=caf\\xe9' $told" "${tiny[@]}" "--output_dir=$bad"
printf -- '--resume\n--set=name=%s\n' "$bad" >bad.flags
expect_line 2 "bad.flags:2: byte 15 of '--set=name=caf\\xe9' $told" \
  "${tiny[@]}" --output_dir=text --flagfile=bad.flags
sed 's/^spectrum/name: "caf\\351" &/' tiny.textproto >bad.textproto
expect_line 2 "$told" "$trainer" --experiment=bad.textproto --set=data.path=data --output_dir=text
mkdir "$bad" && ln --symbolic ../data ../tiny.textproto "$bad/"
(cd "$bad" && expect_line 2 "data.path: byte" "${tiny[@]}" --output_dir="$TEST_TMPDIR/text" && exit "$failures") ||
  failures=$((failures + 1))
[[ ! -e text && ! -e $bad/text ]] || fail 'a refused name left a folder'
rm -rf "$bad"

# A data set without validation rows is trained on, and the run says what will be missing.
sed --in-place 's/validation: 0.1 test: 0.1/test: 0.2/' schema.textproto
must "$prepare" --schema=schema.textproto --output_dir=no_validation
line='warning: no_validation: the validation split has no rows: no effective ranks are measured, and no AUC and logloss'
# expect_warning END FLAGS...
expect_warning() {
  local end=$1
  shift
  rm -rf unmeasured
  must on_ranks 2 "${tiny[@]}" --output_dir=unmeasured --set=data.path=no_validation "$@"
  [[ $(grep --count '^warning' log) -eq 1 ]] || fail "expected one warning: $(cat log)"
  grep --quiet "^$line$end$" log || fail "expected '$line$end': $(cat log)"
}
expect_warning '; the summary has none'
expect_warning ' before the end' --split=test

# Every script says what it is for, and does nothing else: neither installs nor builds nor removes.
mkdir --parents scripts/programs scripts/runs/quickstart/mine
for program in apt-get bazel dpkg-query mpirun srun sudo; do
  printf '#!/bin/sh\ntouch "%s/ran"\nexit 1\n' "$PWD" >scripts/programs/$program
  chmod +x scripts/programs/$program
done
for script in quickstart.sh run_tests.sh .ci/run configs/slurm/{train,supervised}.sbatch tests/system/full_bits.sh \
  tools/{check_symbols,environment,gpu_check,install_arrow,install_packages,other_builds,release,release_run,reproduce,stamp}.sh \
  tools/workspace_status.sh; do
  mkdir --parents "scripts/$(dirname $script)"
  cp --dereference "$sources/$script" scripts/$script
  for flag in --help -h; do
    (cd scripts && PATH=$PWD/programs:$PATH bash $script $flag >../log 2>&1)
    expect_end 0 '' "$script $flag"
    [[ $(wc --lines <log) -ge 3 && ! -e ran ]] || fail "$script $flag: $(cat log)"
    rm -f ran
  done
done
(cd scripts && PATH=$PWD/programs:$PATH bash quickstart.sh >../log 2>&1)
expect_end 2 'runs/quickstart/mine is not of an earlier quickstart' 'a quickstart folder that is somebody else'"'"'s'
[[ -d scripts/runs/quickstart/mine && ! -e ran ]] || fail "quickstart.sh: $(cat log)"
exit "$((failures > 0))"
