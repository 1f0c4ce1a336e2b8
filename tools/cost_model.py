#!/usr/bin/env python3
"""Compares predicted with measured times of a step, and writes the page docs/results/cost_model.md.

    tools/cost_model.py --data=DATA --output_dir=DIR [--points=few|all] [--page=FILE]
    tools/cost_model.py --published [--page=FILE]

The first command measures this machine. DATA is a prepared Criteo set. Every point, a model with ranks,
threads, batch, plan and overlap, is trained for some steps twice: in a pass forward and in a pass backward
over a model's points. The model is calibrated under mpirun before, between and after the passes, and a
pass is compared with the mean of the predictions by the calibrations around it. So a machine that gets
faster or slower moves both alike. What DIR holds already is not measured again: an interrupted command
goes on. Nothing else should run meanwhile. `few` is 44 points, `all` 198. The command tells how long
the points so far took and how long the others will take.

The second command predicts published results of MLPerf from configs/machines, without fitting to them.
Each command replaces its own part of the page and keeps the other's.
"""

import argparse
import datetime
import itertools
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

TRAINER = "bazel-bin/trainer/trainer"
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", "-np"]
MODELS = {
    "RankElastor": "configs/scale.textproto",
    "RankMixer": "configs/criteo/rank_mixer.textproto",
    "MLP": "configs/criteo/mlp.textproto",
    "DCNv2": "configs/criteo/dcn_v2.textproto",
    "xDeepFM": "configs/criteo/x_deep_fm.textproto",
    "AutoInt+": "configs/criteo/auto_int.textproto",
}
PLANS = ["AUTO", "ROW_WISE", "TABLE_WISE", "REPLICATED"]
PASSES = 2


def points(model, which):
    """Returns the points (model, ranks, threads, batch, plan, overlap) of a model."""
    found = []
    for batch in [256, 4096, 65536] if which == "all" else [1024, 8192]:
        for ranks, threads in [(1, 1), (1, 2), (2, 1)]:
            for plan in PLANS if ranks == 2 else PLANS[:1]:
                found.append((model, ranks, threads, batch, plan, False))
        found.append((model, 2, 1, batch, "AUTO", True))
    for batch, ranks in itertools.product([1024, 8192], [4, 8, 16] if which == "all" else [4, 16]):
        for plan in ["AUTO", "ROW_WISE"]:
            found.append((model, ranks, 1, batch, plan, False))
    return found


def run(command, folder):
    """Runs a command that fills a folder; what an interrupted one left there goes."""
    shutil.rmtree(folder, ignore_errors=True)
    log = f"{folder}.log"
    with open(log, "w") as out:
        if subprocess.run(command, stdout=out, stderr=subprocess.STDOUT).returncode != 0:
            sys.exit(f"failed: {' '.join(command)}\n{pathlib.Path(log).read_text()}")


def experiment(model, data, batch=4096):
    return [f"--experiment={MODELS[model]}", f"--set=data.path={data}",
            f"--set=training.batch_size={batch}", "--set=parallel.virtual_shards=16"]


def sets(point):
    _, _, threads, _, plan, overlap = point
    return [f"--set=parallel.threads={threads}", f"--set=parallel.plan={plan}",
            f"--set=parallel.overlap={str(overlap).lower()}"]


def calibrate(model, data, folder):
    path = folder / "machine.textproto"
    if not path.exists():
        run(MPIRUN + ["3", TRAINER, "--mode=calibrate", f"--output_dir={folder}"] + experiment(model, data),
            folder)
    return path


def measure(point, data, folder):
    """Returns the samples per second of the second half of the steps."""
    _, ranks, _, batch, _, _ = point
    steps = max(6, min(60, 200_000 // batch)) // 2 * 2
    if not (folder / "summary.json").exists():
        launch = MPIRUN + [str(ranks)] if ranks > 1 else []
        run(launch + [TRAINER, f"--output_dir={folder}"] + experiment(point[0], data, batch) + sets(point) +
            [f"--set=training.max_steps={steps}", "--set=training.epochs=100",
             f"--set=training.log_every_steps={steps // 2}", "--set=spectrum.disabled=true",
             "--set=checkpoint.disabled=true"], folder)
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [record for record in records if record["event"] == "train"][-1]["samples_per_s"]


def describe(arguments):
    command = [TRAINER, "--mode=describe"] + arguments
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)["prediction"]


def predict(point, data, machine, known):
    """Returns predicted samples per second. known: predictions so far; one command gives all plans."""
    model, ranks, threads, batch, plan, overlap = point
    key = (machine, ranks, threads, batch, overlap)
    if key not in known:
        known[key] = describe([f"--ranks={ranks}", f"--ranks_per_host={ranks}", f"--machine={machine}"] +
                              experiment(model, data, batch) + sets(point))
    return known[key]["batch_rows"] / known[key]["step_seconds_of_plans"][plan]


def mean(values):
    return statistics.geometric_mean(values)


def measure_model(model, options, folder, tell):
    """Returns rows (point, measured, predicted), and by how much the machine's calibrations differ."""
    todo = points(model, options.points)
    machines = [calibrate(model, options.data, folder / f"machine_{model}_0")]
    measured = {point: [] for point in todo}
    for number in range(PASSES):
        for point in todo if number % 2 == 0 else reversed(todo):
            name = "_".join(str(part) for part in point) + f"_{number}"
            measured[point].append(measure(point, options.data, folder / name))
            tell()
        machines.append(calibrate(model, options.data, folder / f"machine_{model}_{number + 1}"))
    known = {}
    rows = []
    for point in todo:
        predicted = [predict(point, options.data, machine, known) for machine in machines]
        around = [mean(pair) for pair in zip(predicted, predicted[1:])]
        rows.append((point, mean(measured[point]), mean(around)))
        print(*point, f"measured {rows[-1][1]:.0f}, predicted {rows[-1][2]:.0f}", flush=True)
    alone = [predict(todo[0], options.data, machine, known) for machine in machines]
    return rows, max(alone) / min(alone) - 1


def errors_of(rows):
    return [abs(measured / predicted - 1) for _, measured, predicted in rows]


def summary(name, rows):
    if not rows:
        return ""
    errors = errors_of(rows)
    worst = rows[errors.index(max(errors))][0]
    return (f"| {name} | {len(rows)} | {statistics.median(errors):.1%} | {max(errors):.1%} | "
            f"{worst[0]}, {worst[1]} × {worst[2]}, batch {worst[3]}, {worst[4]} |\n")


def plan_choices(rows):
    """How often the plan that is predicted to be fastest is within 3 % of the fastest measured one."""
    groups = {}
    for point, measured, predicted in rows:
        if point[1] > 1:
            groups.setdefault((point[:4], point[5]), []).append((measured, predicted))
    groups = [group for group in groups.values() if len(group) > 1]
    good = sum(max(group, key=lambda pair: pair[1])[0] >= 0.97 * max(group)[0] for group in groups)
    return good, len(groups)


def measured_part(rows, drift, which):
    cores = os.cpu_count()
    within = [row for row in rows if row[0][1] * row[0][2] <= cores]
    beyond = [row for row in rows if row[0][1] * row[0][2] > cores]
    good, groups = plan_choices(rows)
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    text = f"""## Measured on one machine

    tools/cost_model.py --data=DATA --output_dir=DIR --points={which}

| | points | median error | largest error | where |
|---|---|---|---|---|
"""
    text += summary(f"ranks × threads ≤ {cores} cores", within) + summary("beyond", beyond)
    text += f"""
The error is |measured / predicted − 1| of samples/s. Measured is the geometric mean of the later halves of {PASSES}
short runs; predicted is the step of the first batch. The plan that is predicted to be fastest was within 3 % of the
fastest measured one in {good} of {groups} cases. Calibrations of one model, made while its points were measured, differ
by up to {drift:.1%} in the step that they predict.

| model | ranks × threads | batch | plan | overlap | measured, samples/s | predicted | error |
|---|---|---|---|---|---|---|---|
"""
    for (model, ranks, threads, batch, plan, overlap), measured, predicted in rows:
        text += (f"| {model} | {ranks} × {threads} | {batch:,} | {plan} | {'yes' if overlap else 'no'} | "
                 f"{measured:,.0f} | {predicted:,.0f} | {measured / predicted - 1:+.1%} |\n")
    return text + f"\n({datetime.date.today()}, {cores} vCPU {cpu})\n"


def measure_all(options):
    folder = pathlib.Path(options.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    models = list(MODELS) if options.points == "all" else ["RankElastor", "DCNv2"]
    runs = PASSES * sum(len(points(model, options.points)) for model in models)
    begin, done = time.monotonic(), 0

    def tell():
        nonlocal done
        done += 1
        seconds = time.monotonic() - begin
        if done % 10 == 0:
            print(f"{done} of {runs} runs in {seconds / 60:.0f} min; "
                  f"the others will take {seconds / done * (runs - done) / 60:.0f} min", file=sys.stderr, flush=True)

    rows, drift = [], 0
    for model in models:
        of_model, differ = measure_model(model, options, folder, tell)
        rows += of_model
        drift = max(drift, differ)
    return measured_part(rows, drift, options.points)


# MLPerf Training's DLRM-DCNv2: GPUs, the machine's file, GPUs of a host, batch, and published million samples/s.
PUBLISHED = [
    ("A100", 64, "a100_node", 8, 65536, 22.84),
    ("H100", 8, "h100_node", 8, 55296, 13.74),
    ("H100, 2 hosts of 4", 8, "h100_node", 4, 55296, 8.94),
    ("H100", 64, "h100_node", 8, 135168, 47.97),
    ("H100", 128, "h100_node", 8, 135168, 65.85),
    ("H200", 8, "h200_node", 8, 65536, 15.52),
    ("H200", 16, "h200_node", 8, 65536, 16.31),
    ("H200", 32, "h200_node", 8, 131200, 30.87),
    ("B200", 8, "b200_node", 8, 55296, 20.96),
    ("B200", 16, "b200_node", 8, 55296, 22.32),
    ("GB200", 8, "gb200_rack", 72, 55296, 23.74),
    ("GB200", 64, "gb200_rack", 72, 65536, 83.86),
]
# Their batches are not known here: those of eight H200 are taken.
ASSUMED_BATCH = {("A100", 64), ("GB200", 8), ("GB200", 64)}
MEMORY = {"a100_node": 80e9, "h100_node": 80e9, "h200_node": 141e9, "b200_node": 180e9, "gb200_rack": 186e9}


PUBLISHED_NOTES = """
Vendors with the same hardware differ: eight B200 gave 16.7 to 23.0 M samples/s. The slowest is 27 % below the fastest.

These points compare two programs, so they do not show how well the model predicts either. The step that is played is
Elastor's: every different row of a batch goes, in 32 bits, to each GPU that asks for it, and its gradient comes back.
HugeCTR, which made the results, adds up the ids of a field where their rows are, so that one vector a field travels in
place of up to 100 rows. So predictions are lowest where GPUs are on several hosts.

What the model cannot know: the machines are peaks, which no kernel reaches. Launches of kernels, the reading of data
and congestion between hosts take no time here. The ids are uniform; frequent rows that HugeCTR may keep on every GPU
are not modelled, nor what it overlaps.
"""


def predict_published(gpus, machine, of_host, batch):
    shards = max(16, 1 << (gpus - 1).bit_length())
    return describe([f"--ranks={gpus}", f"--ranks_per_host={min(gpus, of_host)}",
                     f"--machine=configs/machines/{machine}.textproto",
                     "--experiment=configs/criteo/dlrm_mlperf.textproto", f"--set=training.batch_size={batch}",
                     "--set=training.precision=BFLOAT16", f"--set=parallel.virtual_shards={shards}",
                     f"--set=parallel.memory_budget_bytes={MEMORY[machine]:.0f}", "--set=parallel.plan=ROW_WISE"])


def published_part():
    text = """## Published points

    tools/cost_model.py --published

MLPerf Training's DLRM-DCNv2 (204 million rows of width 128, 214 ids a row) on hosts of `configs/machines`, products
and values between layers in bfloat16, under the fastest simple plan that fits into the GPUs. Nothing is fitted to the
results, which are HugeCTR's.

| GPUs | batch | published, M samples/s | predicted | predicted / published | plan |
|---|---|---|---|---|---|
"""
    for name, gpus, machine, of_host, batch, published in PUBLISHED:
        found = predict_published(gpus, machine, of_host, batch)
        plans = {plan: seconds for plan, seconds in found["step_seconds_of_plans"].items() if seconds}
        plan = min(plans, key=plans.get)
        predicted = found["batch_rows"] / plans[plan] / 1e6
        assumed = " (assumed)" if (name, gpus) in ASSUMED_BATCH else ""
        text += (f"| {gpus} × {name} | {batch:,}{assumed} | {published:.2f} | {predicted:.2f} | "
                 f"{predicted / published:.2f} | {plan} |\n")
        print(text.splitlines()[-1], flush=True)
    return text + PUBLISHED_NOTES


def replace_part(page, part):
    """Writes a part of the page, and keeps the others."""
    head = """# Predicted and measured times of a step

This page is for whoever wants to know how far a prediction ([costs.md](../use/costs.md)) is from the run.
"""
    old = page.read_text() if page.exists() else head
    parts = re.split(r"(?m)^(?=## )", old)
    title = part.splitlines()[0]
    others = [other.rstrip() + "\n" for other in parts[1:] if other.splitlines()[0] != title]
    page.write_text("\n".join([parts[0].rstrip() + "\n"] + sorted(others + [part.rstrip() + "\n"])))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--output_dir")
    parser.add_argument("--points", choices=["few", "all"], default="all")
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--page", default="docs/results/cost_model.md")
    options = parser.parse_args()
    if not options.published and not (options.data and options.output_dir):
        parser.error("expected --data and --output_dir, or --published")
    replace_part(pathlib.Path(options.page), published_part() if options.published else measure_all(options))


main()
