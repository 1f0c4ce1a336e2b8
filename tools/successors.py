#!/usr/bin/env python3
"""Tables of effective ranks from sweeps of configs/sweeps/successors.textproto.

    tools/successors.py NAME=FOLDER[:MEASURED] ...

FOLDER is a sweep's folder and NAME its data's. A run's rank of a stage is the mean over rows at the
run's last measurement; with MEASURED it is that of mode spectra, whose output folders stand there
by the names of the runs' folders. Prints, for the stable and the entropy rank, all comparisons of three families,
with 95 % intervals by Student's t over seeds and p corrected by Holm within the family, over all
folders and both ranks; then what mixing and networks do, and the ranks over training. numpy alone.
"""

import collections
import csv
import json
import math
import os
import sys

import numpy as np

KINDS = ("stable", "entropy")
BASE = "RankMixer_paper"


def ranks_of(folder, wanted=None):
    """{kind: {stage: rank}} of a run at its last measured step, or at the step `wanted`."""
    found = collections.defaultdict(dict)
    with open(os.path.join(folder, "metrics.jsonl")) as file:
        for line in file:
            event = json.loads(line)
            if event["event"] == "spectrum":
                found[event["step"]][event["stage"]] = event
    step = max(found) if wanted is None else wanted
    return {kind: {stage: event[f"{kind}_rank_mean"] for stage, event in found[step].items()}
            for kind in KINDS}, sorted(found)


def read_sweep(folder, measured):
    """{(model, blocks): [(seed, folder of measurements)]} of finished final runs."""
    runs = collections.defaultdict(list)
    places = measured or os.path.join(folder, "runs")
    table = os.path.join(folder, "runs.csv")
    if not os.path.isfile(table):
        sys.exit(f"{table}: no such file; expected the folder of a sweep")
    with open(table, newline="") as file:
        for row in csv.DictReader(file):
            path = os.path.join(places, row["folder"])
            if row["stage"] != "tune" and row["state"] == "done" and os.path.isdir(path):
                runs[row["model"], int(row["model.blocks"])].append((int(row["training.seed"]), path))
    if not runs:
        sys.exit(f"{places}: none of the sweep's final runs is there")
    return {key: sorted(value) for key, value in runs.items()}


def t_tail(t, freedom):
    """P(|T| > t): the density is integrated by Simpson's rule over x = tan(angle)."""
    angle = np.linspace(math.atan(abs(t)), math.pi / 2, 20001)[:-1]
    x = np.tan(angle)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    y = scale / math.sqrt(freedom * math.pi) * (1 + x * x / freedom) ** (-(freedom + 1) / 2) * (1 + x * x)
    y = np.append(y, 0.0)  # at infinity, for freedom above 1
    step = (math.pi / 2 - math.atan(abs(t))) / 20000
    return 2 * step / 3 * (y[0] + 4 * y[1:-1:2].sum() + 2 * y[2:-1:2].sum() + y[-1])


def t_interval(values):
    """(mean, half of the 95 % interval, p of a mean of 0)."""
    values = np.asarray(values, float)
    error = values.std(ddof=1) / math.sqrt(len(values))
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, len(values) - 1) > 0.05 else (low, middle)
    return values.mean(), low * error, t_tail(values.mean() / error, len(values) - 1)


def holm(family):
    """Adds the corrected p to every (label, mean, half, p)."""
    corrected, worst = {}, 0.0
    for place, i in enumerate(sorted(range(len(family)), key=lambda i: family[i][3])):
        worst = max(worst, min(1.0, (len(family) - place) * family[i][3]))
        corrected[i] = worst
    return [(*entry, corrected[i]) for i, entry in enumerate(family)]


def print_family(title, family):
    print(f"\n{title}\n\n| | mean | 95 % interval | p, Holm |\n|---|---|---|---|")
    for label, mean, half, _, p in holm(family):
        print(f"| {label} | {mean:+.3f} | [{mean - half:+.3f}, {mean + half:+.3f}] | {p:.2g} |")


def main():
    if len(sys.argv) < 2 or any("=" not in argument for argument in sys.argv[1:]):
        sys.exit(__doc__)
    ends, begins, seeds = {}, {}, {}  # (data, model, blocks, kind): ranks in the order of seeds
    changes = collections.defaultdict(list)
    courses = {}
    for argument in sys.argv[1:]:
        data, folder = argument.split("=", 1)
        folder, _, measured = folder.partition(":")
        for (model, blocks), runs in read_sweep(folder, measured).items():
            found = [ranks_of(path) for _, path in runs]
            for kind in KINDS:
                key = data, model, blocks, kind
                seeds[key] = [seed for seed, _ in runs]
                stages = list(found[0][0][kind])
                table = np.array([[ranks[kind][stage] for stage in stages] for ranks, _ in found])
                begins[key] = table[:, stages.index("tokens")]
                ends[key] = table[:, -1]
                for what in ("mixing", "attention", "ffn"):
                    places = [i for i, stage in enumerate(stages) if stage.endswith("." + what)]
                    if places:
                        changes[key].append((what, [np.mean([row[i] - row[i - 1] for i in places])
                                                    for row in table]))
                courses[key] = [(step, np.mean([list(ranks_of(path, step)[0][kind].values())[-1]
                                                for _, path in runs])) for step in found[0][1]]
    deepest = max(blocks for _, _, blocks, _ in ends)
    shallowest = min(blocks for _, _, blocks, _ in ends)
    fall, against, depth = [], [], []
    for (data, model, blocks, kind), end in ends.items():
        if blocks != deepest:
            continue
        label = f"{data}, {kind}, {model}"
        fall.append((label, *t_interval(end - begins[data, model, blocks, kind])))
        for family, other in ((against, (data, BASE, blocks, kind)), (depth, (data, model, shallowest, kind))):
            if other != (data, model, blocks, kind):
                assert seeds[other] == seeds[data, model, blocks, kind], other
                family.append((label, *t_interval(end - ends[other])))
    print_family(f"From `tokens` to the end of {deepest} blocks", fall)
    print_family(f"At the end of {deepest} blocks, less {BASE}'s", against)
    print_family(f"At the end of {deepest} blocks, less at the end of {shallowest}", depth)
    print("\n| | tokens | end | a stage of mixing or attention | a network |\n|---|---|---|---|---|")
    for key, stages in changes.items():
        cells = ["{:+.3f} ± {:.3f}".format(*t_interval(values)[:2]) for _, values in stages]
        print(f"| {', '.join(map(str, key))} | {begins[key].mean():.3f} | {ends[key].mean():.3f} | "
              + " | ".join(cells) + " |")
    print("\nThe end's rank over training:")
    for key, course in courses.items():
        print(", ".join(map(str, key)), " ".join(f"{step}: {rank:.2f}" for step, rank in course))


if __name__ == "__main__":
    main()
