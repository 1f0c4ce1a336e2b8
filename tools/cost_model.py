#!/usr/bin/env python3
"""Compares predicted with measured times of a step, and writes the page docs/results/cost_model.md.

    tools/cost_model.py --data=DATA --output_dir=DIR [--points=few|all] [--page=FILE]

DATA is a prepared Criteo set. Each model is calibrated once under mpirun, then every point is trained
for some steps and predicted by --mode=describe. Points that DIR holds already are not measured again.
Nothing else should run meanwhile. `all` takes some 200 points, `few` some 40.
"""

import argparse
import datetime
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys

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


def points(which):
    """Yields (model, ranks, threads, batch, plan, overlap)."""
    models = list(MODELS) if which == "all" else ["RankElastor", "DCNv2"]
    batches = [256, 4096, 65536] if which == "all" else [1024, 8192]
    for model, batch in itertools.product(models, batches):
        for ranks, threads in [(1, 1), (1, 2), (2, 1)]:
            for plan in PLANS if ranks == 2 else PLANS[:1]:
                yield model, ranks, threads, batch, plan, False
        yield model, 2, 1, batch, "AUTO", True
    for model, batch in itertools.product(models, [1024, 8192]):
        for ranks in [4, 8, 16] if which == "all" else [4, 16]:
            for plan in ["AUTO", "ROW_WISE"]:
                yield model, ranks, 1, batch, plan, False


def run(command, log):
    with open(log, "w") as out:
        if subprocess.run(command, stdout=out, stderr=subprocess.STDOUT).returncode != 0:
            sys.exit(f"failed: {' '.join(command)}\n{pathlib.Path(log).read_text()}")


def experiment(model, data, batch=4096):
    return [f"--experiment={MODELS[model]}", f"--set=data.path={data}",
            f"--set=training.batch_size={batch}", "--set=parallel.virtual_shards=16"]


def calibrate(model, data, folder):
    path = folder / "machine.textproto"
    if not path.exists():
        run(MPIRUN + ["3", TRAINER, "--mode=calibrate", f"--output_dir={folder}"] + experiment(model, data),
            f"{folder}.log")
    return path


def measure(point, data, folder):
    """Samples per second of the second half of the steps."""
    model, ranks, threads, batch, plan, overlap = point
    steps = max(6, min(60, 200_000 // batch)) // 2 * 2
    result = folder / "metrics.jsonl"
    if not (folder / "summary.json").exists():
        launch = MPIRUN + [str(ranks)] if ranks > 1 else []
        run(launch + [TRAINER, f"--output_dir={folder}"] + experiment(model, data, batch) + sets(point) +
            [f"--set=training.max_steps={steps}", "--set=training.epochs=100",
             f"--set=training.log_every_steps={steps // 2}", "--set=spectrum.disabled=true",
             "--set=checkpoint.disabled=true"], f"{folder}.log")
    records = [json.loads(line) for line in result.read_text().splitlines()]
    return [record for record in records if record["event"] == "train"][-1]["samples_per_s"]


def sets(point):
    _, _, threads, _, plan, overlap = point
    return [f"--set=parallel.threads={threads}", f"--set=parallel.plan={plan}",
            f"--set=parallel.overlap={str(overlap).lower()}"]


def predict(point, data, machine):
    model, ranks, _, batch, _, _ = point
    command = ([TRAINER, "--mode=describe", f"--ranks={ranks}", f"--ranks_per_host={ranks}",
                f"--machine={machine}"] + experiment(model, data, batch) + sets(point))
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)["prediction"]["samples_per_s"]


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


def page(rows, command):
    cores = os.cpu_count()
    within = [row for row in rows if row[0][1] * row[0][2] <= cores]
    beyond = [row for row in rows if row[0][1] * row[0][2] > cores]
    good, groups = plan_choices(rows)
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    text = f"""# Predicted and measured times of a step

This page is for whoever wants to know how far a prediction ([costs.md](../use/costs.md)) is from the run. One command
made it:

    {command}

| | points | median error | largest error | where |
|---|---|---|---|---|
"""
    text += summary(f"ranks × threads ≤ {cores} cores", within) + summary("beyond", beyond)
    text += f"""
The error is |measured / predicted − 1| of samples/s. Measured are the later half of a short run's steps; predicted is
the step of the first batch. The plan that is predicted to be fastest was within 3 % of the fastest measured one in
{good} of {groups} cases.

| model | ranks × threads | batch | plan | overlap | measured, samples/s | predicted | error |
|---|---|---|---|---|---|---|---|
"""
    for (model, ranks, threads, batch, plan, overlap), measured, predicted in rows:
        text += (f"| {model} | {ranks} × {threads} | {batch:,} | {plan} | {'yes' if overlap else 'no'} | "
                 f"{measured:,.0f} | {predicted:,.0f} | {measured / predicted - 1:+.1%} |\n")
    return text + f"\n({datetime.date.today()}, {cores} vCPU {cpu})\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--output_dir", required=True)
    parser.add_argument("--points", choices=["few", "all"], default="all")
    parser.add_argument("--page", default="docs/results/cost_model.md")
    options = parser.parse_args()
    folder = pathlib.Path(options.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for point in points(options.points):
        machine = calibrate(point[0], options.data, folder / f"machine_{point[0]}")
        name = "_".join(str(part) for part in point)
        measured = measure(point, options.data, folder / name)
        rows.append((point, measured, predict(point, options.data, machine)))
        print(*point, f"measured {measured:.0f}, predicted {rows[-1][2]:.0f}", flush=True)
    pathlib.Path(options.page).write_text(
        page(rows, f"tools/cost_model.py --data=DATA --output_dir=DIR --points={options.points}"))


main()
