#!/usr/bin/env python3
"""Trains models with Elastor and with FuxiCTR in turn and prints the table of tools/peers/models.sh,
which calls it and says what the flags mean."""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
CONFIGS = os.path.join(FOLDER, "../../configs/criteo")
TITLES = {"mlp": "MLP", "dcn_v2": "DCNv2", "x_deep_fm": "xDeepFM", "auto_int": "AutoInt+"}
# Two-sided quantiles of Student's distribution at 95 %, by degrees of freedom.
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228]


def run(command, log):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True,
                          check=True).stdout


def train_elastor(model, seed, options, log):
    output = f"{options.work}/{model}-{seed}"
    run(["taskset", "-c", options.cpu, options.trainer,
         f"--experiment={CONFIGS}/{model}.textproto", "--split=test",
         f"--set=data.path={options.work}/data", f"--set=training.epochs={options.epochs}",
         f"--set=training.seed={seed}", "--set=parallel.threads=1",
         # Batch statistics are of the whole batch, as FuxiCTR's.
         "--set=parallel.virtual_shards=1", "--set=spectrum.disabled=true",
         "--set=checkpoint.disabled=true", f"--output_dir={output}"], log)
    with open(f"{output}/summary.json") as file:
        return json.load(file)


def train_fuxictr(model, seed, options, log):
    """With the hyper-parameters of Elastor's run."""
    return json.loads(run(
        ["taskset", "-c", options.cpu, sys.executable, f"{FOLDER}/fuxictr_run.py",
         f"{options.work}/data", f"{options.work}/{model}-{seed}/experiment.textproto"], log))


def shown(values, digits):
    text = f"{statistics.mean(values):.{digits}f}"
    return text + (f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else "")


def difference(ours, theirs):
    """Welch's interval, its degrees of freedom rounded down."""
    value = statistics.mean(ours) - statistics.mean(theirs)
    if len(ours) < 2:
        return f"{value:+.4f}"
    parts = [statistics.variance(each) / len(each) for each in (ours, theirs)]
    freedom = sum(parts) ** 2 / sum(part ** 2 / (len(ours) - 1) for part in parts)
    quantile = STUDENT[min(int(freedom), len(STUDENT)) - 1]
    half = quantile * math.sqrt(sum(parts))
    return f"{value:+.4f} [{value - half:+.4f}, {value + half:+.4f}]"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--models", default="mlp,dcn_v2,x_deep_fm,auto_int")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--cpu", default=str(os.cpu_count() - 1))
    options = parser.parse_args()
    print("| model | dense parameters, FuxiCTR's | test AUC | FuxiCTR | difference | samples/s | FuxiCTR "
          "| ratio | peak memory | FuxiCTR |\n|---|---|---|---|---|---|---|---|---|---|")
    for model in options.models.split(","):
        runs = {"ours": [], "theirs": []}
        with open(f"{options.work}/log.txt", "a+") as log:
            try:
                for seed in range(1, options.seeds + 1):
                    runs["ours"].append(train_elastor(model, seed, options, log))
                    runs["theirs"].append(train_fuxictr(model, seed, options, log))
            except subprocess.CalledProcessError as error:
                log.seek(0)
                last = (log.read().strip().splitlines() or [""])[-1]
                print(f"left out: {model}: {error.cmd[3]}: {last}", file=sys.stderr)
                continue
        of = lambda who, name: [each[name] for each in runs[who]]
        speeds = [statistics.median(of(who, "samples_per_s")) for who in runs]
        ratio = statistics.median(map(lambda a, b: a / b, of("ours", "samples_per_s"),
                                      of("theirs", "samples_per_s")))
        memory = [max(of(who, "peak_memory_bytes")) / 2**20 for who in runs]
        print(f"| {TITLES.get(model, model)} | {runs['ours'][0]['dense_parameters']}, "
              f"{runs['theirs'][0]['dense_parameters']} | {shown(of('ours', 'auc'), 4)} "
              f"| {shown(of('theirs', 'auc'), 4)} | {difference(of('ours', 'auc'), of('theirs', 'auc'))} "
              f"| {speeds[0]:,.0f} | {speeds[1]:,.0f} | {ratio:.2f} "
              f"| {memory[0]:.0f} MiB | {memory[1]:.0f} MiB |", flush=True)


if __name__ == "__main__":
    main()
