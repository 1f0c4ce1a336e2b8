#!/usr/bin/env bash
# A tuned sweep that an earlier build made is done, has the same results and goes on. stored_sweep/
# holds the sweep as its launcher left it, but for drawings, TensorBoard's files, and the models and
# checkpoints of most runs. Its gap test finds no training rows in these runs, as gaps.csv says. The
# data are there, and the figures that comparison and scaling_law had from it.
# It was made with the same paths as here, which begin at the working directory. Arguments: the
# trainer, the launcher, comparison, scaling_law.
set -uo pipefail

trainer=$PWD/$1
launcher=$PWD/$2
comparison=$PWD/$3
scaling_law=$PWD/$4
source "$(dirname "$0")/spread_run.sh"
cp --recursive --dereference --no-preserve=mode "$(dirname "$0")/stored_sweep" "$TEST_TMPDIR/stored"
cp --recursive "$TEST_TMPDIR/stored" "$TEST_TMPDIR/today"
cd "$TEST_TMPDIR/today" || exit 1
readonly stored=$TEST_TMPDIR/stored output=/proc/self/cwd/sweep
runs=$(find "$stored/sweep/runs" -mindepth 1 -maxdepth 1 | wc --lines)
[[ $runs -eq 24 ]] || fail "expected 24 stored runs, found $runs"

# must COMMAND...: must succeed; its output is in the file log.
must() {
  timeout $hang_seconds "$@" >log 2>&1 && return
  fail "$*"
  cat log
}
sweep() { must "$launcher" --trainer="$trainer" --sweep=tuned.textproto --output_dir="$output"; }

# says PATTERN: the last command did.
says() { grep --quiet --extended-regexp -- "$1" log || fail "expected '$1', found: $(<log)"; }

# same FILE: it has the bytes of the stored one.
same() { diff "$stored/$1" "$1" || fail "$1: other figures than the stored ones (<)"; }

# facts_of HTML: its figures, without the words around them: the cells of its tables and the points
# of its drawings.
facts_of() {
  grep --only-matching '<td[^>]*>[^<]*' "$1"
  grep --only-matching '<script type="application/json" id="data">.*</script>' "$1"
}

# same_table: runs.csv but for wall_s, samples_per_s, peak_memory_bytes and attempts.
same_table() {
  diff <(sed 's/\(,[^,]*\)\{4\}$//' "$stored/sweep/runs.csv") \
    <(sed 's/\(,[^,]*\)\{4\}$//' sweep/runs.csv) || fail "$1: another table than the stored one (<)"
}

# As it is told, before anything is written.
must "$launcher" --status --output_dir="$output"
says ' 24 runs, 24 done, 0 running, 0 failed; no launcher is at work'
declare -A row
rows=0
while IFS=, read -r -a cells; do
  if [[ ${cells[0]} == folder ]]; then
    columns=("${cells[@]}")
    continue
  fi
  for i in "${!columns[@]}"; do row[${columns[i]}]=${cells[i]}; done
  says "^${row[folder]} +done +${row[dense_parameters]} +${row[steps]}/${row[steps]} \
+$(printf '%.4f +%.4f' "${row[auc]}" "${row[logloss]}") "
  rows=$((rows + 1))
done <sweep/runs.csv
[[ $rows -eq $runs ]] || fail "runs.csv: expected $runs rows, found $rows"

# The same command line starts nothing and comes to the same table and report.
rm --recursive sweep/report
: >sweep/runs.csv
sweep
says ' 24 runs, 24 done, 0 failed, 0 to do'
says 'warning: gap_test: base.evaluation.train_rows: 0;'
grep --extended-regexp ' (start|resume) |kept| new' log && fail "a finished sweep: $(<log)"
for tuned in elastor2:0.0125 elastor4:0.05 elastor6:0.0125 mixer4:0.05; do
  says "^tuned ${tuned%:*}: optimizer.learning_rate=${tuned#*:}$"
done
for file in runs.csv report/{points,fits,spectra,gaps}.csv; do same "sweep/$file"; done
facts=$(facts_of "$stored/sweep/report/report.html")
[[ $(wc --lines <<<"$facts") -ge 100 ]] || fail 'report.html: its figures are not found'
# The page of today says more, in another order, and nothing else about the same things.
missing=$(comm -23 <(sort <<<"$facts") <(facts_of sweep/report/report.html | sort))
[[ -z $missing ]] || fail "report.html: other figures than the stored ones: $missing"
diff --recursive --brief "$stored/sweep" sweep --exclude=launcher.lock --exclude=report ||
  fail 'a finished sweep: files of runs were changed'

# The programs that read its runs.
must "$comparison" sweep --resamples=100 --csv=comparison.csv
# Intervals over seeds, and over rows and seeds, are made by another rule now.
without_seeds() { cut --delimiter=, --fields=1-8 "$1"; }
diff <(without_seeds "$stored/comparison.csv") <(without_seeds comparison.csv) ||
  fail 'comparison.csv: other figures than the stored ones (<)'
must "$scaling_law" sweep/runs/elastor* --replicates=100 --json=scaling_law.json
same scaling_law.json

# run_of PREFIX: the only run of a name that begins so.
run_of() { basename "$(echo sweep/runs/"$1"*)"; }

# value_of FIELD RUN: as its summary has it.
value_of() { grep "^  \"$1\": " "$2/summary.json" || echo "no $1 of $2"; }

# Runs of it are used, and go on.
# goes_on PREFIX DIGEST: that of 12 steps more, as the earlier build had it.
goes_on() {
  local run digest
  run=$(run_of "$1")
  digest=$2
  use() { must "$trainer" --experiment="sweep/experiments/$run.textproto" --split=test "$@"; }
  use --mode=predict --model="sweep/runs/$run/model" --output_dir="$1.predicted"
  cmp "sweep/runs/$run/predictions.csv" "$1.predicted/predictions.csv" || fail "$1: other predictions"
  use --mode=evaluate --model="sweep/runs/$run/model" --output_dir="$1.evaluated"
  for metric in auc logloss state_digest; do
    [[ $(value_of $metric "$1.evaluated") == "$(value_of $metric "sweep/runs/$run")" ]] ||
      fail "$1: another $metric: $(<"$1.evaluated/summary.json")"
  done
  cp --recursive "sweep/runs/$run" "$1"
  use --output_dir="$1" --resume --set=training.max_steps=30
  says '^continuing at step 18 '
  grep '^[WE]' log && fail "$1: a warning"
  [[ $(digest_of "$1") == "$digest" ]] ||
    fail "$1: expected the digest $digest, found $(digest_of "$1")"
}
goes_on elastor4_seed1 86ad76296c68e2fe4e3bfab151da1a3c
goes_on mixer4_seed1 a26f229613414968599aa00ab079610d

# What is missing of a configuration is done again, its trials from the rung that is there.
for run in "$(run_of tune_elastor4_learning_rate0.0125_rung2)" \
  "$(run_of tune_elastor4_learning_rate0.05_rung2)" "$(run_of elastor4_seed1)"; do
  rm --recursive "sweep/runs/$run" "sweep/attempts/$run.jsonl" "sweep/logs/$run.log"
done
sweep
[[ $(grep --count ' resume tune_elastor4_.*_rung2_' log) -eq 2 &&
  $(grep --count ' start ' log) -eq 1 ]] || fail "expected two resumed trials and a run: $(<log)"
says ' done   elastor4_seed1-.* 24/24 done'
same_table 'trained again'
exit "$((failures > 0))"
