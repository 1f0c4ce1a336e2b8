#!/usr/bin/env bash
# Tables without a vocabulary whose rows come, leave and return: a run that is killed between deltas, at any step, goes
# on with other ranks, plans, threads and instruction sets, and has the bits of one that nothing disturbed.
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
checkpoint { every_steps: 30 delta_every_steps: 3 }
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
      :
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
expect_other_digest 'another policy' "$work/time" "$work/lfu"
exit "$((failures > 0))"
