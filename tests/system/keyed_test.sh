#!/usr/bin/env bash
# Tables without a vocabulary whose rows come, leave and return: a run that is killed between deltas, at any step, goes
# on with other ranks, plans, threads and instruction sets, and has the bits of one that nothing disturbed. Nor do rows
# in files change a bit.
# Arguments: the trainer, prepare.
set -uo pipefail

trainer=$PWD/$1
prepare=$PWD/$2
work=$TEST_TMPDIR
source "$(dirname "$0")/spread_run.sh"

cat >"$work/schema.textproto" <<'SCHEMA'
name: "stream"
layout: SYNTHETIC
split { train: 0.9 validation: 0.1 }
synthetic { rows: 8000 seed: 1 categorical_fields: 2 ids_per_field: 60 zipf_exponent: 1.1 teacher: LOW_RANK rank: 2 drift: 9 }
SCHEMA
"$prepare" --schema="$work/schema.textproto" --output_dir="$work/data" >/dev/null || exit 1

# make_experiment NAME EVICTION ADMISSION: 150 steps; a table takes 70 of some 600 keys.
make_experiment() {
  cat >"$work/$1.textproto" <<EXPERIMENT
model { fm { } }
embedding {
  width: 4
  init_stddev: 0.1
  tables {
    fields: ["C1", "C2"]
    capacity: 70
    on_full: EVICT
    evict_every_steps: 40
    eviction { $2 evict_to: 50 }
    $3
  }
}
data { path: "$work/data" order: FILE_ORDER }
optimizer { learning_rate: 0.02 sparse: LAZY_ADAM }
training { batch_size: 48 epochs: 1 log_every_steps: 1 eval_every_steps: 50 monitor { best_weights: true } }
spectrum { disabled: true }
checkpoint { every_steps: 30 delta_every_steps: 6 }
parallel { virtual_shards: 8 }
EXPERIMENT
}
make_experiment time 'policy: TTL_EVENT_TIME ttl_seconds: 900' 'admission { min_count: 3 count_ttl_steps: 16 }'
make_experiment lfu 'policy: DECAYED_LFU half_life_steps: 25' \
  'admission { min_count: 3 counter: COUNT_MIN } unadmitted: SHARED_ROW'

# train RANKS EXPERIMENT RUN ARGUMENT...
train() {
  on_ranks "$1" "$trainer" --experiment="$work/$2.textproto" --output_dir="$work/$3" "${@:4}" >"$work/log" 2>&1
}
must_train() { train "$@" || fail "$*: $(cat "$work/log")"; }

# kill_at STEP EXPERIMENT RUN: one rank, by SIGKILL once the step is logged. Again when the run was faster.
kill_at() {
  for _ in 1 2 3 4 5; do
    rm -rf "$work/$3"
    "$trainer" --experiment="$work/$2.textproto" --output_dir="$work/$3" >"$work/log" 2>&1 &
    until grep --quiet "\"event\":\"train\",\"step\":$1," "$work/$3/metrics.jsonl" 2>/dev/null ||
      ! kill -0 $! 2>/dev/null; do
      sleep 0.01
    done
    kill -KILL $! 2>/dev/null
    wait $! 2>/dev/null
    [[ $? -ne 137 ]] || return
  done
  fail "$3: expected a run that ends by SIGKILL: $(cat "$work/log")"
}
# same RUN WHOLE
same() {
  is_digest "$(digest_of "$work/$1")" && [[ $(digest_of "$work/$1") == "$(digest_of "$work/$2")" ]] ||
    fail "$1: $(digest_of "$work/$1"); expected $(digest_of "$work/$2")"
}

plan=--set=parallel.plan
for policy in time lfu; do
  must_train 1 $policy $policy
  passes=$(grep --count '"event":"tables".*"evicted":[1-9]' "$work/$policy/metrics.jsonl")
  [[ $passes -ge 3 ]] || fail "$policy: expected passes that evict, found $passes"
  grep --quiet '"unadmitted_share":0\.[1-9]' "$work/$policy/metrics.jsonl" || fail "$policy: every key was admitted"
  kill_at 50 $policy $policy-killed
  must_train 3 $policy $policy-killed --resume --set=training.max_steps=80 $plan=REPLICATED
  ELASTOR_ISA=${isas[0]} must_train 2 $policy $policy-killed --resume $plan=TABLE_WISE --set=parallel.threads=2
  same $policy-killed $policy
done

# More epochs: in one run, in a run that goes on, and in one that begins from the first one's state, whose steps count
# from 1. passes_of RUN STEP: losses and passes of the steps behind that one, which is step 0.
passes_of() {
  sed --quiet 's/.*"event":"train","step":\([0-9]*\),.*\("loss":[^,]*\),.*/\1 train \2/p
    s/.*"event":"tables","step":\([0-9]*\),/\1 tables /p' "$work/$1/metrics.jsonl" |
    awk -v step="$2" '$1 > step { $1 -= step; print }'
}
for policy in time lfu; do
  must_train 1 $policy $policy-long --set=training.epochs=2
  ! grep --quiet 'was full' "$work/log" || fail "passes are told: $(cat "$work/log")"
  on_ranks 3 "$trainer" --continue="$work/$policy" --output_dir="$work/$policy-more" --set=training.epochs=2 \
    >"$work/log" 2>&1 || fail "$policy goes on: $(cat "$work/log")"
  must_train 2 $policy $policy-warm $plan=REPLICATED --set=training.warm_start.optimizer_state=true \
    --set=training.warm_start.path="$work/$policy/checkpoints/step-0000000150"
  [[ $(passes_of $policy-long 150 | grep --count train) -eq 150 ]] || fail "$policy-long: expected 150 more steps"
  diff <(passes_of $policy-long 150) <(passes_of $policy-more 150) >"$work/log" || fail "$policy goes on: $(cat "$work/log")"
  diff <(passes_of $policy-long 150) <(passes_of $policy-warm 0) >"$work/log" || fail "$policy, warm: $(cat "$work/log")"
done

# A pass at nearly every step is told once.
sed 's/evict_to: 50/evict_to: 70/' "$work/time.textproto" >"$work/often.textproto"
must_train 2 often often
[[ $(grep --count "^warning: embedding.tables: table 'C1' was full, and lost rows, at 48 of the last 64 steps" "$work/log") -eq 1 ]] ||
  fail "passes at nearly every step: $(cat "$work/log")"

# A batch's rows are in some 90 pages, all rows in some 1000.
files=(--set=embedding.tier.path="$work" --set=embedding.tier.memory_bytes=1000000)
if [[ $(stat --file-system --format=%T "$work") == tmpfs ]]; then
  echo 'skipped: rows in files; the folder of tests lies in memory'
else
  must_train 1 lfu files-lfu "${files[@]}"
  # Lines of checkpoints come when their files are written.
  diff <(numbers_of "$work/lfu" | sort) <(numbers_of "$work/files-lfu" | sort) >/dev/null ||
    fail 'rows in files: other numbers'
  # In files, then in memory; and the other way round.
  must_train 3 time files3 "${files[@]}" --set=training.max_steps=90 --set=parallel.overlap=true \
    --set=parallel.first_ids_first=true
  must_train 1 time files3 --resume
  must_train 2 time files4 --set=training.max_steps=40
  must_train 4 time files4 --resume "${files[@]}" $plan=REPLICATED
  same files3 time
  same files4 time
  [[ -z $(find "$work" -maxdepth 1 -name 'rows-*') ]] || fail 'rows in files: files are left'
fi

# mistake CODE LINE ARGUMENT...
mistake() {
  expect_line "$1" "$2" "$trainer" --experiment="$work/time.textproto" --output_dir="$work/mistake" "${@:3}"
  rm -rf "$work/mistake"
}
tier=--set=embedding.tier
mistake 2 'embedding.tier.path: ""; expected a folder on a local disk' $tier.memory_bytes=1000000
mistake 2 'embedding.tier.memory_bytes: 0; expected bytes of rows in memory' $tier.path="$work"
mistake 2 'embedding.tier.memory_bytes: -1' $tier.path="$work" $tier.memory_bytes=-1
mistake 2 "embedding.tier.path: $work/none: No such file or directory; expected a folder" \
  $tier.path="$work/none" $tier.memory_bytes=1000000
mistake 2 "embedding.tier.path: $work/time.textproto: not a folder" \
  $tier.path="$work/time.textproto" $tier.memory_bytes=1000000
mistake 2 'embedding.tier.path: /dev/shm: its files lie in memory' $tier.path=/dev/shm $tier.memory_bytes=1000000
mistake 2 "DENSE_ADAM" $tier.path="$work" $tier.memory_bytes=1000000 --set=optimizer.sparse=DENSE_ADAM
[[ $(stat --file-system --format=%T "$work") == tmpfs ]] ||
  mistake 2 'embedding.tier.memory_bytes: too few at step 2; the rows of a batch lie in pages of' \
    $tier.path="$work" $tier.memory_bytes=40000
expect_other_digest 'another policy' "$work/time" "$work/lfu"
exit "$((failures > 0))"
