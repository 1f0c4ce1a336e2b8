"""Paired bootstrap of validation AUC between models, over rows, seeds averaged.

    python3 tools/paired_bootstrap.py OUTPUT MODEL [MODEL ...]

Reads OUTPUT/MODEL-SEED-predictions/predictions.csv. For every resample of the rows the AUC of each
run is computed on the same rows; a model's AUC is the mean over its seeds. Prints every model's AUC
by seed, and every pair's difference with its 95 % interval.
"""

import glob
import sys

if {"-h", "--help"} & set(sys.argv[1:]):
    sys.exit(print(__doc__.strip()))

import numpy as np

RESAMPLES = 1000


def ranks_of(scores):
    """Dense integer ranks: equal scores, equal rank."""
    return np.unique(scores, return_inverse=True)[1]


def auc(ranks, labels, weights):
    """AUC with each row counted `weights` times; ties count half."""
    n = ranks.max() + 1
    positive = np.bincount(ranks, weights * labels, n)
    negative = np.bincount(ranks, weights * (1 - labels), n)
    below = np.cumsum(negative) - negative
    return np.sum(positive * (below + negative / 2)) / (positive.sum() * negative.sum())


def main(output, models):
    random = np.random.default_rng(0)
    runs, labels = {}, None
    for model in models:
        runs[model] = []
        for path in sorted(glob.glob(f"{output}/{model}-*-predictions/predictions.csv")):
            rows = np.loadtxt(path, delimiter=",", skiprows=1)
            labels = rows[:, 1]
            runs[model].append(ranks_of(rows[:, 2]))
        ones = np.ones(len(labels))
        values = [auc(r, labels, ones) for r in runs[model]]
        print(f"{model}: mean {np.mean(values):.4f}  " + " ".join(f"{v:.4f}" for v in values))
    resampled = {model: [] for model in models}
    for _ in range(RESAMPLES):
        weights = np.bincount(random.integers(0, len(labels), len(labels)), minlength=len(labels))
        for model in models:
            resampled[model].append(np.mean([auc(r, labels, weights) for r in runs[model]]))
    for i, first in enumerate(models):
        for second in models[i + 1 :]:
            difference = np.array(resampled[first]) - np.array(resampled[second])
            low, high = np.percentile(difference, [2.5, 97.5])
            verdict = "no order claimed" if low <= 0 <= high else "ordered"
            print(f"{first} - {second}: {difference.mean():+.4f} [{low:+.4f}, {high:+.4f}] {verdict}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
