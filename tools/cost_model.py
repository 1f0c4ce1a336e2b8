#!/usr/bin/env python3
"""Compares predicted with measured times of a step, and writes the page docs/results/cost_model.md.

    tools/cost_model.py --data=DATA --output_dir=DIR [--seconds=4] [--models=A,B] [--page=FILE]
    tools/cost_model.py --hosts --data=DATA --output_dir=DIR [--seconds=4] [--page=FILE]
    tools/cost_model.py --published [--page=FILE]
    tools/cost_model.py --advice [--output_dir=DIR] [--page=FILE]

The first command measures this machine. DATA is a prepared Criteo set. Every point, a model with ranks,
threads, batch, plan and overlap, is trained for about so many seconds. The model is calibrated under
mpirun before and after every few of its points, and a point is compared with the mean of the predictions
by the calibrations around it. So a machine that gets faster or slower moves both alike. DIR/points.jsonl
and the machines' files hold all that was measured. What is there is not measured again: an interrupted
command goes on, and a changed model of costs is compared with the old measurements by the same command.
Nothing else should run while it measures. --measure leaves the predictions to another command, which is
the same with --predict.

The second command measures two hosts, as root: each is a network namespace (tests/faults/virtual_hosts.sh)
with one rank, which is bound to a core of its own, and their link has a set rate. It begins anew each time.
The third predicts published results of MLPerf from configs/machines, without fitting to them.
The fourth asks --mode=describe --advise how to use 16 to 1,024 cores and GPUs of configs/machines; what
DIR holds is not asked again.
Each command replaces its own part of the page and keeps the others'.
"""

import argparse
import atexit
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time

trainer = "bazel-bin/trainer/trainer"
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", "-np"]
MODELS = {
    "RankElastor": "configs/scale.textproto",
    "RankMixer": "configs/criteo/rank_mixer.textproto",
    "MLP": "configs/criteo/mlp.textproto",
    "DCNv2": "configs/criteo/dcn_v2.textproto",
    "xDeepFM": "configs/criteo/x_deep_fm.textproto",
    "AutoInt+": "configs/criteo/auto_int.textproto",
}
HOST_MODELS = {"RankElastor": MODELS["RankElastor"], "MLP": MODELS["MLP"], "DLRM": "configs/criteo/dlrm.textproto"}
PLANS = ["AUTO", "ROW_WISE", "TABLE_WISE", "REPLICATED"]
# Slow models have no larger batch: a step of one would take many seconds.
LARGEST_BATCH = {"RankMixer": 16384, "DCNv2": 16384, "AutoInt+": 4096}
LEAST_GAIN = 0.02  # kLeastGain, trainer/cost/prediction.h
SHARDS = 16
BETWEEN_CALIBRATIONS = 7  # points
# A run's windows of the log. The first ones make rows and fill caches, and are left out.
WINDOWS, LEFT_OUT = 6, 1


def points(model):
    """Returns the points (model, ranks, threads, batch, plan, overlap) of a model. The first one tells
    how fast the model is."""
    found = [(1, 1, batch, "AUTO", False) for batch in [1024, 256, 4096]]
    found += [(1, 2, batch, "AUTO", False) for batch in [1024, 16384, 65536]]
    found += [(2, 1, batch, plan, False) for batch in [1024, 16384] for plan in PLANS]
    found += [(2, 1, 4096, "AUTO", True)]
    found += [(4, 1, 4096, plan, False) for plan in PLANS]
    found += [(16, 1, 4096, plan, False) for plan in PLANS]
    found += [(8, 1, 1024, plan, False) for plan in ["AUTO", "ROW_WISE"]]
    found += [(4, 2, 16384, "AUTO", True), (4, 1, 256, "AUTO", False)]
    largest = LARGEST_BATCH.get(model, 65536)
    return list(dict.fromkeys((model, ranks, threads, min(batch, largest), plan, overlap)
                              for ranks, threads, batch, plan, overlap in found))


def run(command, folder):
    """Runs a command that fills a folder; what an interrupted one left there goes."""
    shutil.rmtree(folder, ignore_errors=True)
    log = f"{folder}.log"
    with open(log, "w") as out:
        if subprocess.run(command, stdout=out, stderr=subprocess.STDOUT).returncode != 0:
            sys.exit(f"failed: {' '.join(command)}\n{pathlib.Path(log).read_text()}")


def experiment(model, data, batch=4096):
    return [f"--experiment={(MODELS | HOST_MODELS)[model]}", f"--set=data.path={data}",
            f"--set=training.batch_size={batch}", f"--set=parallel.virtual_shards={SHARDS}"]


def sets(point):
    _, _, threads, _, plan, overlap = point
    return [f"--set=parallel.threads={threads}", f"--set=parallel.plan={plan}",
            f"--set=parallel.overlap={str(overlap).lower()}"]


def machine_of(model, number, folder):
    return folder / f"machine_{model}_{number}" / "machine.textproto"


def calibrate(model, number, data, folder, launch=MPIRUN + ["8"]):
    path = machine_of(model, number, folder)
    if not path.exists():
        run(launch + [trainer, "--mode=calibrate", f"--output_dir={path.parent}"] + experiment(model, data),
            path.parent)


def measure(point, speed, seconds, data, folder, launch=None):
    """Returns the training records, one for each window of the log, of a run of about so many seconds.
    speed: the model's samples per second on one core, or None. launch: what starts the ranks."""
    model, ranks, threads, batch, _, _ = point
    speed = (speed or 10_000) * min(ranks * threads, os.cpu_count())
    steps = max(WINDOWS, min(1000, round(seconds * speed / batch))) // WINDOWS * WINDOWS
    if launch is None:
        launch = MPIRUN + [str(ranks)] if ranks > 1 else []
    run(launch + [trainer, f"--output_dir={folder}"] + experiment(model, data, batch) + sets(point) +
        [f"--set=training.max_steps={steps}", "--set=training.epochs=1000",
         f"--set=training.log_every_steps={steps // WINDOWS}", "--set=spectrum.disabled=true",
         "--set=checkpoint.disabled=true"], folder)
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    shutil.rmtree(folder)
    return [{"samples_per_s": record["samples_per_s"], "phase_s": record["phase_s"]}
            for record in records if record["event"] == "train"]


def speeds_of(records):
    return [record["samples_per_s"] for record in records[LEFT_OUT:]]


def measure_model(model, options, folder, known, tell):
    """Measures what is not known of a model, and adds it to DIR/points.jsonl."""
    todo = points(model)
    for number, point in enumerate(todo):
        if number % BETWEEN_CALIBRATIONS == 0:
            calibrate(model, number // BETWEEN_CALIBRATIONS, options.data, folder)
        if point not in known:
            speed = statistics.median(speeds_of(known[todo[0]])) if todo[0] in known else None
            known[point] = measure(point, speed, options.seconds, options.data, folder / "run")
            with open(folder / "points.jsonl", "a") as out:
                out.write(json.dumps({"point": point, "windows": known[point]}) + "\n")
        tell()
    calibrate(model, (len(todo) - 1) // BETWEEN_CALIBRATIONS + 1, options.data, folder)


def describe(arguments):
    command = [trainer, "--mode=describe"] + arguments
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)["prediction"]


def predict(group, data, folder, ranks_per_host=None):
    """Returns predicted samples per second by plan. group: a point without its plan, and the number of the
    machine's calibration; one command predicts all plans."""
    model, ranks, threads, batch, overlap, number = group
    found = describe([f"--ranks={ranks}", f"--ranks_per_host={ranks_per_host or ranks}",
                      f"--machine={machine_of(model, number, folder)}"] + experiment(model, data, batch) +
                     sets((model, ranks, threads, batch, "AUTO", overlap)))
    return {plan: found["batch_rows"] / found["step_seconds_of_plans"][plan] for plan in PLANS}


def predict_all(todo, data, folder):
    """Returns rows (point, predictions by the calibrations before and after it)."""
    def groups_of(model, number):
        first = number // BETWEEN_CALIBRATIONS
        point = points(model)[number]
        return [(*point[:4], point[5], near) for near in (first, first + 1) if machine_of(model, near, folder).exists()]

    asked = {}
    for model in dict.fromkeys(point[0] for point in todo):
        for number, point in enumerate(points(model)):
            if point in todo:
                asked[point] = groups_of(model, number)
    groups = sorted({group for pair in asked.values() for group in pair})
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(groups, pool.map(lambda group: predict(group, data, folder), groups)))
    return [(point, [found[group][point[4]] for group in asked[point]]) for point in todo]


def errors_of(rows):
    return [abs(measured / predicted - 1) for _, measured, predicted in rows]


def summary(name, rows):
    if not rows:
        return ""
    errors = errors_of(rows)
    worst = rows[errors.index(max(errors))][0]
    return (f"| {name} | {len(rows)} | {statistics.median(errors):.1%} | {max(errors):.1%} | "
            f"{worst[0]}, {worst[1]} × {worst[2]}, batch {worst[3]:,}, {worst[4]} |\n")


def plan_choices(rows):
    """By case, the measured speed of the plan that PLANNED takes of the simple ones, over that of the
    fastest measured one. It takes AUTO unless another is predicted to be LEAST_GAIN faster."""
    cases = {}
    for point, measured, predicted in rows:
        if point[1] > 1:
            cases.setdefault((point[:4], point[5]), {})[point[4]] = (measured, predicted)
    shares = []
    for ((model, *group), overlap), plans in cases.items():
        all_plans = [point for point in points(model) if point[:4] == (model, *group) and point[5] == overlap]
        if len(plans) == 1 or len(plans) < len(all_plans):
            continue
        best = max(plans, key=lambda plan: plans[plan][1])
        if plans[best][1] < (1 + LEAST_GAIN) * plans["AUTO"][1]:
            best = "AUTO"
        shares.append(plans[best][0] / max(measured for measured, _ in plans.values()))
    return shares


def machine_line():
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    return f"({datetime.date.today()}, {os.cpu_count()} vCPU {cpu})"


def measured_part(rows, drift, spread):
    cores = os.cpu_count()
    within = [row for row in rows if row[0][1] * row[0][2] <= cores]
    beyond = [row for row in rows if row[0][1] * row[0][2] > cores]
    counts = {model: sum(row[0][0] == model for row in rows) for model in MODELS}
    short = [f"{model} ({count} of {len(points(model))} points)" for model, count in counts.items()
             if count < len(points(model))]
    shares = plan_choices(rows)
    within_shares = [sum(share >= 1 - loss for share in shares) for loss in (0.03, 0.05, 0.1)]
    text = """## Measured on one machine

    tools/cost_model.py --data=DATA --output_dir=DIR

| | points | median error | largest error | where |
|---|---|---|---|---|
"""
    text += summary(f"ranks × threads ≤ {cores} cores", within) + summary("beyond", beyond)
    for model in MODELS:
        text += summary(f"{model}, all", [row for row in rows if row[0][0] == model])
    text += f"""
The error is |measured / predicted − 1| of samples/s. Measured is the median of the last {WINDOWS - LEFT_OUT} of
{WINDOWS} windows of a short run; their interquartile range is {spread:.1%} of it in the median of the points. Predicted
is the step of the first batch, the mean by two calibrations, one before {BETWEEN_CALIBRATIONS} points and one after
them. These two differ by {statistics.median(drift):.1%} in the median, and by {max(drift):.1%} at most.

A case is a model with ranks, threads and batch under several plans. The plan that PLANNED takes of them was within 3 %
of the fastest measured one in {within_shares[0]} of {len(shares)} cases, within 5 % in {within_shares[1]}, and within
10 % in {within_shares[2]}. The worst choice was {1 - min(shares):.1%} slower. Most plans differ by less than a run
differs from itself, so the fastest of several is partly chance.

All runs have {SHARDS} virtual shards. Left out: larger batches of {", ".join(LARGEST_BATCH)}, whose steps take many
seconds, and plan PLANNED.{" Not measured to the end: " + ", ".join(short) + "." if short else ""}

| model | ranks × threads | batch | plan | overlap | measured, samples/s | predicted | error |
|---|---|---|---|---|---|---|---|
"""
    for (model, ranks, threads, batch, plan, overlap), measured, predicted in rows:
        text += (f"| {model} | {ranks} × {threads} | {batch:,} | {plan} | {'yes' if overlap else 'no'} | "
                 f"{measured:,.0f} | {predicted:,.0f} | {measured / predicted - 1:+.1%} |\n")
    return text + f"\n{machine_line()}\n"


def relative_range(values):
    quartiles = statistics.quantiles(values, n=4)
    return (quartiles[2] - quartiles[0]) / statistics.median(values)


def measure_all(options):
    folder = pathlib.Path(options.output_dir)
    models = options.models.split(",") if options.models else list(MODELS)
    file = folder / "points.jsonl"
    known = {}
    for line in file.read_text().splitlines() if file.exists() else []:
        record = json.loads(line)
        known[tuple(record["point"])] = record["windows"]
    todo = [point for model in models for point in points(model)]
    begin, done, before = time.monotonic(), 0, len(set(todo) & set(known))

    def tell():
        nonlocal done
        done += 1
        seconds = time.monotonic() - begin
        if done % 10 == 0 and done > before:
            print(f"{done} of {len(todo)} points in {seconds / 60:.0f} min; "
                  f"the others will take {seconds / (done - before) * (len(todo) - done) / 60:.0f} min",
                  file=sys.stderr, flush=True)

    for model in [] if options.predict else models:
        measure_model(model, options, folder, known, tell)
    if options.measure:
        return None
    todo = [point for point in todo if point in known]
    rows, drift = [], []
    for point, predicted in predict_all(todo, options.data, folder):
        rows.append((point, statistics.median(speeds_of(known[point])), statistics.geometric_mean(predicted)))
        drift.append(max(predicted) / min(predicted) - 1)
    return measured_part(rows, drift, statistics.median(relative_range(speeds_of(known[point])) for point in todo))


HOST_RATES = [0, 1000, 100]  # Mbit/s; 0: as fast as the devices are
HOST_BATCHES = [4096, 16384]
HOST_PLANS = [("AUTO", False), ("ROW_WISE", False), ("AUTO", True)]  # and overlap
HOST_LAUNCH = ["mpirun", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", "FOLDER/on_host", "--host",
               "elastor1:1,elastor2:1", "--mca", "oob_tcp_if_include", "10.79.0.0/24", "--mca", "btl_tcp_if_include",
               "10.79.0.0/24", "--bind-to", "none", "bash", "-c",
               "exec taskset --cpu-list $OMPI_COMM_WORLD_RANK \"$@\"", "rank"]


def hosts_part(options):
    folder = pathlib.Path(options.output_dir).resolve()

    def hosts(*command):
        subprocess.run(["tests/faults/virtual_hosts.sh", folder, *map(str, command)], check=True)

    launch = [str(folder / "on_host"), "elastor1"] + [
        shlex.quote(word.replace("FOLDER", str(folder))) for word in HOST_LAUNCH]
    rows, drift = [], []

    atexit.register(hosts, "down")

    def speed_of(point, guess, launch):
        records = measure(point, guess, options.seconds, options.data, folder / "run", launch)
        return statistics.median(speeds_of(records))

    for model in HOST_MODELS:
        hosts("up")  # with a free link
        alone = {batch: speed_of((model, 1, 1, batch, "AUTO", False), None, ["taskset", "--cpu-list", "0"])
                 for batch in HOST_BATCHES}
        for rate in HOST_RATES:
            if rate:
                hosts("throttle", rate)
            place = folder / str(rate)
            place.mkdir(exist_ok=True)
            for number in (0, 1):
                shutil.rmtree(machine_of(model, number, place).parent, ignore_errors=True)
            calibrate(model, 0, options.data, place, launch)
            # A slow link makes the step several times as long.
            found = {(batch, plan, overlap): speed_of((model, 2, 1, batch, plan, overlap),
                                                      alone[batch] * min(1, (rate or 1000) / 1000), launch)
                     for batch in HOST_BATCHES for plan, overlap in HOST_PLANS}
            calibrate(model, 1, options.data, place, launch)
            for (batch, plan, overlap), measured in found.items():
                predicted = [predict((model, 2, 1, batch, overlap, number), options.data, place, 1)[plan]
                             for number in (0, 1)]
                drift.append(max(predicted) / min(predicted) - 1)
                rows.append(((model, rate or "free", batch, plan, overlap), measured,
                             statistics.geometric_mean(predicted), alone[batch]))
                print(*rows[-1], flush=True)
    errors = errors_of([row[:3] for row in rows])
    worst = rows[errors.index(max(errors))][0]
    text = f"""## Measured on two hosts

    tools/cost_model.py --hosts --data=DATA --output_dir=DIR

Two network namespaces of one machine with one rank each, which is bound to a core of its own. Their link is a pair of
virtual devices with the rate that stands in the table. {len(rows)} points: median error {statistics.median(errors):.1%},
largest {max(errors):.1%} ({worst[0]}, Mbit/s {worst[1]}, batch {worst[2]:,}, {worst[3]}). The predictions by the two
calibrations around a point differ by {statistics.median(drift):.1%} in the median, and by {max(drift):.1%} at most.
The last column is the speed over that of one rank alone at the same global batch. The model does not know what the
link's own work takes of these two cores.

| model | Mbit/s | batch | plan | overlap | measured, samples/s | predicted | error | of one host |
|---|---|---|---|---|---|---|---|---|
"""
    for (model, rate, batch, plan, overlap), measured, predicted, alone in rows:
        text += (f"| {model} | {rate} | {batch:,} | {plan} | {'yes' if overlap else 'no'} | {measured:,.0f} | "
                 f"{predicted:,.0f} | {measured / predicted - 1:+.1%} | {measured / alone:.2f} |\n")
    return text + f"\n{machine_line()}\n"


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
results. They are HugeCTR's, from MLCommons' tables "MLPerf Training", benchmark DLRM-DCNv2, as NVIDIA, HPE and Dell
submitted them; those of GB200 are of round 5.1.

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


# What the advice is asked for: the machine's file, further settings, and words for the table.
ADVISED_MACHINES = [("epyc_100g", "EPYC, cores"), ("h100_node", "H100, GPUs")]
ADVISED_MODELS = {"RankElastor": "configs/scale.textproto", "RankMixer": "configs/criteo/rank_mixer.textproto"}
ADVISED_UNITS = [16, 64, 256, 1024]
ROWS_A_UNIT = 128  # of the batch from which the advice begins


def advice_part(folder):
    text = f"""## Advice for many ranks

    tools/cost_model.py --advice

Mode describe with `--advise` ([costs.md](../use/costs.md#ask-for-advice)) on machines of `configs/machines`, which are
peaks. Ids are uniform over 80,000 a field. The search begins with one thread a rank and a batch of {ROWS_A_UNIT} rows a
core or GPU, and tries a quarter to four times as many.

| model | machine | cores or GPUs | ranks × threads | batch | virtual shards | plan | predicted, samples/s | of linear |
|---|---|---|---|---|---|---|---|---|
"""
    cases = [(model, machine, units) for model in ADVISED_MODELS for machine in ADVISED_MACHINES
             for units in ADVISED_UNITS]

    def advise(case):
        model, (machine, _), units = case
        kept = folder / f"advice_{model}_{machine}_{units}.json" if folder else None
        if kept and kept.exists():
            return json.loads(kept.read_text())
        found = describe([f"--machine=configs/machines/{machine}.textproto", f"--ranks={units}", "--advise",
                         f"--experiment={ADVISED_MODELS[model]}", f"--set=training.batch_size={ROWS_A_UNIT * units}",
                         f"--set=parallel.virtual_shards={units}", "--set=parallel.threads=1"])["advice"]
        if kept:
            kept.write_text(json.dumps(found))
        return found

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(advise, cases))
    for (model, (machine, name), units), advice in zip(cases, found):
        if units == ADVISED_UNITS[0]:
            linear = advice["samples_per_s"] / units
        text += (f"| {model} | {name} | {units:,} | {advice['ranks']} × {advice['threads']} | "
                 f"{advice['batch_size']:,} | {advice['virtual_shards']:,} | {advice['plan']} | "
                 f"{advice['samples_per_s']:,.0f} | {advice['samples_per_s'] / units / linear:.0%} |\n")
    return text + f"""
Linear is the speed of a core or GPU at {ADVISED_UNITS[0]} of them.
"""


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
    global trainer
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--output_dir")
    parser.add_argument("--seconds", type=float, default=4, help="of a point")
    parser.add_argument("--models", help="only these, separated by commas")
    parser.add_argument("--measure", action="store_true", help="measures, and writes no page")
    parser.add_argument("--predict", action="store_true", help="measures nothing; takes the points that DIR has")
    parser.add_argument("--hosts", action="store_true")
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--advice", action="store_true")
    parser.add_argument("--trainer", default=trainer, help="the program")
    parser.add_argument("--page", default="docs/results/cost_model.md")
    options = parser.parse_args()
    if not options.published and not options.advice and not (options.data and options.output_dir):
        parser.error("expected --data and --output_dir, or --published, or --advice")
    trainer = options.trainer
    folder = pathlib.Path(options.output_dir) if options.output_dir else None
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    if options.published:
        part = published_part()
    elif options.advice:
        part = advice_part(folder)
    else:
        part = hosts_part(options) if options.hosts else measure_all(options)
    if part:
        replace_part(pathlib.Path(options.page), part)


main()
