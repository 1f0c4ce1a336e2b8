#!/usr/bin/env python3
"""Recomputes generalisation gaps and effective ranks of two arms from files of rows alone, by hand.

    verdicts_oracle.py gap   --first TRAIN HELD [TRAIN HELD ...] --second TRAIN HELD [TRAIN HELD ...]
    verdicts_oracle.py ranks --first SAMPLES [SAMPLES ...] --second SAMPLES [SAMPLES ...] [--rank=entropy]
    verdicts_oracle.py self

TRAIN and HELD are predictions.csv of one model: of --mode=predict with --split=train and with
--split=validation or test. SAMPLES are spectra_samples.csv of --mode=spectra --per_sample. Seeds stand
in the same order in both arms. --comparisons=N counts all comparisons that were looked at: intervals
then have the level 1 - 0.05 / N. `self` tries the script's own arithmetic on known values.

Numbers: float64 and numpy alone. Nothing here reads a metric that Elastor computed.
"""

import argparse
import csv
import itertools
import math
import sys

import numpy as np


def t_quantile(probability, freedom):
    """Quantile of Student's t: the root of its distribution, integrated by Simpson's rule."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    scale /= math.sqrt(freedom * math.pi)

    def above_zero(t):
        x = np.linspace(0, t, 20001)
        y = scale * (1 + x * x / freedom) ** (-(freedom + 1) / 2)
        return (y[0] + y[-1] + 4 * y[1:-1:2].sum() + 2 * y[2:-1:2].sum()) * t / 60000

    low, high = 0.0, 1.0
    while above_zero(high) < probability - 0.5:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if above_zero(middle) < probability - 0.5 else (low, middle)
    return low


def t_interval(values, level):
    """(mean, low, high) of a mean over seeds."""
    values = np.asarray(values, float)
    half = t_quantile((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return values.mean(), values.mean() - half, values.mean() + half


def permutation_interval(first, second, level):
    """Differences of means, second less first, that no labelling of the runs rejects at the level."""
    first, second = np.asarray(first, float), np.asarray(second, float)
    count, chosen = len(first) + len(second), list(range(len(first)))
    labellings = list(itertools.combinations(range(count), len(first)))
    if len(labellings) > 20000:
        random = np.random.default_rng(1)
        labellings = [chosen] + [random.permutation(count)[: len(first)] for _ in range(9999)]
    weights = np.full((len(labellings), count), 1 / len(second))
    for row, labels in zip(weights, labellings):
        row[list(labels)] = -1 / len(first)
    own = second.mean() - first.mean()
    unit = max(np.abs(first).max(), np.abs(second).max()) or 1.0

    def rejects(shift):
        values = np.concatenate([first, second - shift])
        statistics = np.abs(weights @ values)
        mine = abs(own - shift)
        return (statistics >= mine - 1e-9 * unit).mean() <= 1 - level

    def end(direction):
        inside, outside = 0.0, unit
        while not rejects(own + direction * outside):
            inside, outside = outside, 2 * outside
            if outside > 1e6 * unit:
                return direction * math.inf
        for _ in range(40):
            middle = (inside + outside) / 2
            if rejects(own + direction * middle):
                outside = middle
            else:
                inside = middle
        return own + direction * inside

    return own, end(-1), end(1)


def logloss(path):
    """Mean cross-entropy of the labelled rows of a predictions.csv."""
    with open(path, newline="") as file:
        rows = [(row["label"], row["probability"]) for row in csv.DictReader(file) if row["label"]]
    label, probability = np.array(rows, float).T
    return -np.mean(np.log(np.where(label == 1, probability, 1 - probability)))


def rank_changes(path, rank):
    """Stages, and the mean over rows of each stage's rank less that of the stage before."""
    with open(path, newline="") as file:
        names = next(csv.reader(file))
    columns = [i for i, name in enumerate(names) if name.endswith("." + rank)]
    values = np.loadtxt(path, delimiter=",", skiprows=1, usecols=columns, ndmin=2)
    stages = [names[i].rsplit(".", 1)[0] for i in columns]
    return stages, values.mean(axis=0)


def interval_text(found):
    return "%+.4f [%+.4f, %+.4f]" % found


def verdict(low, high):
    if low > 0:
        return "second is larger"
    return "second is smaller" if high < 0 else "not told apart"


def compare(name, first, second, level):
    paired = ""
    if len(first) == len(second):
        found = t_interval(np.subtract(second, first), level)
        paired = "; paired by seed %s, %s" % (interval_text(found), verdict(*found[1:]))
    found = permutation_interval(first, second, level)
    print(f"{name}: second - first {interval_text(found)}, {verdict(*found[1:])}{paired}")


def pairs(paths):
    if len(paths) % 2:
        sys.exit("gap: expected TRAIN HELD pairs; found %d files" % len(paths))
    return list(zip(paths[::2], paths[1::2]))


def gap(arguments, level):
    losses, gaps = [], []
    for arm in (arguments.first, arguments.second):
        measured = np.array([(logloss(train), logloss(held)) for train, held in pairs(arm)])
        losses.append(measured[:, 0])
        gaps.append(measured[:, 1] - measured[:, 0])
        for loss, difference in zip(losses[-1], gaps[-1]):
            print("training loss %.6f  gap %+.6f" % (loss, difference))
        print()
    compare("training loss", *losses, level)
    compare("gap", *gaps, level)


def ranks(arguments, level):
    arms = []
    for arm in (arguments.first, arguments.second):
        read = [rank_changes(path, arguments.rank) for path in arm]
        if any(stages != read[0][0] for stages, _ in read):
            sys.exit("ranks: the files of an arm have other stages")
        arms.append((read[0][0], np.array([means for _, means in read])))
    for name, (stages, means) in zip(("first", "second"), arms):
        for stage, change in zip(stages[1:], np.diff(means, axis=1).T):
            same = max((change > 0).sum(), (change < 0).sum())
            sign = "sign" if same >= 0.8 * len(change) else "no sign"
            print(f"{name} {stage}: {interval_text(t_interval(change, level))}, "
                  f"{same} of {len(change)} seeds: {sign}")
    if arms[0][0] != arms[1][0]:
        sys.exit("ranks: the arms have other stages; their changes are not compared")
    changes = [np.diff(means, axis=1).T for _, means in arms]
    for stage, first, second in zip(arms[0][0][1:], *changes):
        compare(stage, first, second, level)
    # What the blocks do, behind the tokenizer where there is one.
    begin = arms[0][0].index("tokens") if "tokens" in arms[0][0] else 0
    compare("whole", *(means[:, -1] - means[:, begin] for _, means in arms), level)


def check_self():
    """Tables of Student's t, and a permutation interval by its definition."""
    for probability, freedom, expected in ((0.975, 9, 2.262157), (0.975, 1, 12.706205),
                                           (0.995, 7, 3.499483)):
        assert abs(t_quantile(probability, freedom) - expected) < 1e-5, (freedom, expected)
    mean, low, high = t_interval([1, 2, 3, 4], 0.95)
    assert abs(mean - 2.5) < 1e-12 and abs(high - 2.5 - 2.054260) < 1e-5 and low + high == 2 * mean
    # Four and four runs without overlap: only the own and the exchanged of 70 labellings reach 2/70.
    own, low, high = permutation_interval([0, 1, 2, 3], [10, 11, 12, 13], 0.95)
    assert own == 10 and abs(low - 7) < 1e-6 and abs(high - 13) < 1e-6, (own, low, high)
    assert permutation_interval([0, 1, 2], [10, 11, 12], 0.95)[2] == math.inf
    print("self: ok")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("gap", "ranks", "self"))
    parser.add_argument("--first", nargs="+")
    parser.add_argument("--second", nargs="+")
    parser.add_argument("--rank", choices=("stable", "entropy"), default="stable")
    parser.add_argument("--comparisons", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.what == "self":
        return check_self()
    if not arguments.first or not arguments.second:
        parser.error("expected --first and --second")
    level = 1 - 0.05 / arguments.comparisons
    return (gap if arguments.what == "gap" else ranks)(arguments, level)


if __name__ == "__main__":
    main()
