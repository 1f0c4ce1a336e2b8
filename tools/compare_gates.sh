#!/usr/bin/env bash
# Do gates condition the neural tangent kernel of CTR models, and do better conditioned models learn in
# fewer steps? Gated and plain P-FFNs of equal weights (and the papers' plain ones, a fifth as large) on
# prepared Criteo rows: the learning rate of each is tuned, then runs over seeds measure the kernel before
# the first step and after the last, and the validation logloss meanwhile. docs/results/reproduce_ntk_models.md
# has the figures. From the top of the repository:
#
#   tools/compare_gates.sh --data=runs/data/criteo --output=runs/gates [--seeds=10] [--first_seed=1] [--rows=1024]
#       [--rates=1e-3] [--arms=ARM,ARM,...] [--targets=LOSS,LOSS,...]
#
# ARM: MODEL_FFN, of elastor, identity (without mixing; not small, not with ReLU) and mixer; gated, plain,
#     small and with ReLU in the place of GELU relu_gated, relu_plain. Default: all.
# --targets: the runs are compared at the first steps with these validation loglosses. The default was set
#     before the runs. The p of steps are corrected for all targets and pairs of arms of the command: of all
#     ways to swap the arms of seeds (beyond 12 seeds of 4,096), the share whose largest |t| of any comparison
#     is no smaller. A target that not every run of a pair reaches is not compared.
# --rates: no tuning: one learning rate of all, or one an arm in the order of --arms.
# --rows: validation rows of the kernels; 0: no kernels.
# The same command again goes on where it was. ELASTOR_PROGRAMS: where the programs are; default:
# bazel-bin, built first.
set -euo pipefail
data='' output='' seeds=10 first_seed=1 rows=1024 targets=0.51,0.505,0.5,0.495,0.49,0.485,0.4825
tried_rates=(2.5e-4 5e-4 1e-3 2e-3 4e-3 8e-3)
rates=()
all=({elastor,mixer}_{gated,plain,small,relu_gated,relu_plain} identity_{gated,plain})
arms=("${all[@]}")
for argument in "$@"; do
  case $argument in
    --data=*) data=${argument#*=} ;;
    --output=*) output=${argument#*=} ;;
    --seeds=*) seeds=${argument#*=} ;;
    --first_seed=*) first_seed=${argument#*=} ;;
    --targets=*) targets=${argument#*=} ;;
    --rows=*) rows=${argument#*=} ;;
    --rates=*) IFS=, read -ra rates <<<"${argument#*=}" ;;
    --arms=*) IFS=, read -ra arms <<<"${argument#*=}" ;;
    *) sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"; [[ $argument == --help ]] && exit || exit 2 ;;
  esac
done
[[ -e $data/meta.json && -n $output ]] ||
  { echo "compare_gates: expected --data=PREPARED and --output=FOLDER" >&2; exit 2; }
for arm in "${arms[@]}"; do
  [[ $arm != *[[:space:]]* && " ${all[*]} " == *" $arm "* ]] ||
    { echo "compare_gates: --arms: found '$arm'; expected some of ${all[*]}" >&2; exit 2; }
done
case ${#rates[@]} in
  0 | "${#arms[@]}") ;;
  1) for ((i = 1; i < ${#arms[@]}; ++i)); do rates+=("${rates[0]}"); done ;;
  *) echo "compare_gates: --rates: expected one, or ${#arms[@]}, one an arm" >&2; exit 2 ;;
esac
if [[ -z ${ELASTOR_PROGRAMS:-} ]]; then
  source tools/environment.sh
  bazel build //trainer:trainer
fi
trainer=${ELASTOR_PROGRAMS:-bazel-bin}/trainer/trainer
tuning_seeds=(101 102 103)

# Flags of an arm. A gated P-FFN of expansion 3 has 10 D^2 weights a token, a plain one of 5 as many.
flags() {
  local plain='--set=model.feed_forward.kind=TWO_LAYER --set=model.feed_forward.expansion'
  case $1 in
    identity_*) echo '--set=model.mixing.kind=IDENTITY' ;;
    mixer_*) echo '--set=model.kind=RANK_MIXER' ;;
  esac
  case $1 in
    *_plain) echo "$plain=5" ;;
    *_small) echo "$plain=1" ;;
  esac
  case $1 in
    *_relu_*) echo '--set=model.feed_forward.activation=RELU' ;;
  esac
}

# train FOLDER ARM RATE SEED FLAG...
train() {
  local folder=$output/$1
  [[ -e $folder/summary.json ]] && return
  rm -rf "$folder"
  # shellcheck disable=SC2046
  "$trainer" --experiment=configs/criteo/rank_elastor.textproto --set=data.path="$data" \
    --set=model.tokens=13 --set=optimizer.sparse=LAZY_ADAM --set=optimizer.embedding_l2=0 \
    --set=training.batch_size=1024 --set=parallel.virtual_shards=4 --set=checkpoint.disabled=true \
    $(flags "$2") --set=optimizer.learning_rate="$3" --set=training.seed="$4" --set=name="$2" \
    --output_dir="$folder" "${@:5}" >/dev/null 2>"$output/error" ||
    { cat "$output/error" >&2; exit 1; }
}
# The logloss at the end of a run.
logloss() { sed --quiet 's/^  "logloss": \([0-9.e-]*\),*$/\1/p' "$output/$1/summary.json"; }

mkdir -p "$output"
chosen=''
for i in "${!arms[@]}"; do
  arm=${arms[i]}
  rate=${rates[i]:-}
  best=''
  for tried in "${tried_rates[@]}"; do
    [[ ${#rates[@]} -eq 0 ]] || break
    losses=()
    for seed in "${tuning_seeds[@]}"; do
      train "tuning-$arm-$tried-$seed" "$arm" "$tried" "$seed" --set=spectrum.disabled=true
      losses+=("$(logloss "tuning-$arm-$tried-$seed")")
    done
    mean=$(printf '%s\n' "${losses[@]}" | awk '{ s += $1 } END { printf "%.6f", s / NR }')
    best+="$mean $tried"$'\n'
    rate=$(sort --general-numeric-sort <<<"${best%$'\n'}" | awk 'NR == 1 { print $2 }')
  done
  chosen+="$arm $rate"$'\n'
  for ((seed = first_seed; seed < first_seed + seeds; ++seed)); do
    train "$arm-$rate-$seed" "$arm" "$rate" "$seed" --set=spectrum.at_start=true \
      --set=spectrum.every_steps=1000000 --set=spectrum.samples=16 --set=spectrum.ntk_rows="$rows" \
      --set=training.eval_every_steps=3
  done
done
printf '%s' "$chosen" >"$output/rates.txt"

# One line a run: arm, seed from 1 on, then log10 of the condition numbers, then step:logloss pairs.
while read -r arm rate; do
  for ((seed = first_seed; seed < first_seed + seeds; ++seed)); do
    awk -v arm="$arm" -v seed="$((seed - first_seed + 1))" '
      function field(name) {
        if (!match($0, "\"" name "\":[^,}]*")) return ""
        value = substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
        gsub("\"", "", value)
        return value
      }
      /"event":"ntk"/ {
        layer = field("layer"); kappa = field("condition_number")
        when = field("step") == 0 ? "initial" : "trained"
        if (layer ~ /ffn|whole/) {
          text = text " " when "." layer "=" (kappa == "null" ? "unresolved" : log(kappa) / log(10))
        }
      }
      /"event":"eval"/ { losses = losses " " field("step") ":" field("logloss") }
      END { print arm, seed, text, losses }' "$output/$arm-$rate-$seed/metrics.jsonl"
  done
done <"$output/rates.txt" >"$output/runs.txt"

awk -v targets="$targets" '
  # 97.5 % quantiles of Student t with n - 1 degrees of freedom.
  function quantile(n) {
    split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145", t, " ")
    return n - 1 > 14 ? 2 : t[n - 1]
  }
  # mean and half width of values[1..n].
  function summarize(values, n,    i, sum, squares) {
    sum = squares = 0
    for (i = 1; i <= n; ++i) sum += values[i]
    mean = sum / n
    for (i = 1; i <= n; ++i) squares += (values[i] - mean) ^ 2
    half = n > 1 ? quantile(n) * sqrt(squares / (n - 1) / n) : 0
  }
  # The step at which a run first has the target or less; 0: never.
  function steps_to(arm, seed, target,    i) {
    for (i = 1; i <= evaluations[arm, seed]; ++i) if (loss[arm, seed, i] <= target) return step[arm, seed, i]
    return 0
  }
  # Adds a pair and target to the compared steps, if every run of both arms reaches it. scaled[c, s] are
  # the differences over the root of their sum of squares, whose |sum| grows with |t|.
  function add_steps(gated, plain, target,    s, name, squares) {
    name = "steps to " target
    for (s = 1; s <= seeds; ++s) if (!steps_to(gated, s, target) || !steps_to(plain, s, target)) return
    ++comparisons
    number[gated, plain, target] = comparisons
    for (s = 1; s <= seeds; ++s) {
      value[gated, s, name] = steps_to(gated, s, target)
      value[plain, s, name] = steps_to(plain, s, target)
      scaled[comparisons, s] = value[gated, s, name] - value[plain, s, name]
      squares += scaled[comparisons, s] ^ 2
    }
    for (s = 1; s <= seeds; ++s) scaled[comparisons, s] /= squares > 0 ? sqrt(squares) : 1
  }
  # Fills largest[1..swaps]: the largest |sum| of any comparison when the arms of some seeds are swapped.
  # The first swaps none.
  function swap_arms(    w, s, c, sum, sign, rest) {
    swaps = seeds <= 12 ? 2 ^ seeds : 4096
    srand(1)
    for (w = 1; w <= swaps; ++w) {
      rest = w - 1
      for (s = 1; s <= seeds; ++s) {
        if (seeds <= 12) { sign[s] = rest % 2 ? -1 : 1; rest = int(rest / 2) }
        else sign[s] = w > 1 && rand() < 0.5 ? -1 : 1
      }
      largest[w] = 0
      for (c = 1; c <= comparisons; ++c) {
        sum = 0
        for (s = 1; s <= seeds; ++s) sum += sign[s] * scaled[c, s]
        if (sum < 0) sum = -sum
        if (w == 1) own[c] = sum
        if (sum > largest[w]) largest[w] = sum
      }
    }
  }
  function corrected(c,    w, count) {
    for (w = 1; w <= swaps; ++w) count += largest[w] >= own[c] - 1e-9
    return count / swaps
  }
  # A line of one quantity: gated, plain, and over the seeds gated - plain. With a p that decides.
  function compare(name, gated, plain, p,    s, n, a, b, d) {
    n = 0
    for (s = 1; s <= seeds; ++s) {
      if (!((gated SUBSEP s SUBSEP name) in value)) continue
      if (!((plain SUBSEP s SUBSEP name) in value)) continue
      ++n; a[n] = value[gated, s, name]; b[n] = value[plain, s, name]; d[n] = a[n] - b[n]
    }
    if (n < 2) { printf "  %-24s unresolved\n", name; return }
    summarize(a, n); printf "  %-24s %9.4f +- %-8.4f", name, mean, half
    summarize(b, n); printf " %9.4f +- %-8.4f", mean, half
    summarize(d, n)
    if (p == "" ? mean - half <= 0 && mean + half >= 0 : p > 0.05) verdict = "not told apart"
    else verdict = mean > 0 ? "gated larger" : "gated smaller"
    printf " %9.4f +- %-8.4f %s (%d seeds%s)\n", mean, half, verdict, n, p == "" ? "" : sprintf(", p %.4f", p)
  }
  {
    arm = $1; seed = $2
    if (seed > seeds) seeds = seed
    low = 1e9
    for (i = 3; i <= NF; ++i) {
      if (split($i, part, "=") == 2) {
        if (part[2] != "unresolved") value[arm, seed, "log10 " part[1]] = part[2]
        names["log10 " part[1]] = 1
      } else {
        split($i, part, ":")
        ++evaluations[arm, seed]
        step[arm, seed, evaluations[arm, seed]] = part[1]
        loss[arm, seed, evaluations[arm, seed]] = part[2]
        if (part[2] < low) low = part[2]
      }
    }
    value[arm, seed, "best logloss"] = low
  }
  END {
    target_count = split(targets, target, ",")
    count = split("elastor_gated elastor_plain elastor_gated elastor_small elastor_relu_gated elastor_relu_plain " \
      "identity_gated identity_plain mixer_gated mixer_plain mixer_gated mixer_small " \
      "mixer_relu_gated mixer_relu_plain", pair, " ")
    order = split("initial.whole initial.block0.ffn initial.block1.ffn trained.whole trained.block0.ffn trained.block1.ffn", layer, " ")
    for (p = 1; p < count; p += 2) {
      here[p] = ((pair[p] SUBSEP 1) in evaluations) && ((pair[p + 1] SUBSEP 1) in evaluations)
      for (i = 1; here[p] && i <= target_count; ++i) add_steps(pair[p], pair[p + 1], target[i])
    }
    swap_arms()
    printf "steps: p corrected for %d comparisons; targets were set before the runs\n", comparisons
    for (p = 1; p < count; p += 2) {
      if (!here[p]) continue
      printf "%s, %s, difference over the seeds\n", pair[p], pair[p + 1]
      for (i = 1; i <= order; ++i) compare("log10 " layer[i], pair[p], pair[p + 1])
      for (i = 1; i <= target_count; ++i) {
        if (!((pair[p] SUBSEP pair[p + 1] SUBSEP target[i]) in number)) {
          printf "  %-24s not reached by all runs\n", "steps to " target[i]
          continue
        }
        compare("steps to " target[i], pair[p], pair[p + 1],
          corrected(number[pair[p], pair[p + 1], target[i]]))
      }
      compare("best logloss", pair[p], pair[p + 1])
    }
  }' "$output/runs.txt" | tee "$output/gates.txt"
