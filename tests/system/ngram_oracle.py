#!/usr/bin/env python3
"""Bits per byte of n-grams on a prepared text, by hand with numpy: ngram_oracle.py SET

Counts the training bytes, adds 0.01 to every count, and scores the bytes of the other splits. Positions
behind the text's end, which fill up the last window, have no label and count nowhere.
"""

import json
import sys

import numpy as np

ORDERS, ADDED, BYTES = range(5), 0.01, 256


def labels_of(folder, meta, split):
    """The split's labels in order, NaN where there is none, and the byte before the first."""
    rows, block_rows = meta["splits"][split]["rows"], meta["rows_per_block"]
    length = len(meta["labels"])
    with open(f"{folder}/{split}.rows", "rb") as file:
        data = file.read()
    blocks = -(-rows // block_rows)
    index = np.frombuffer(data, "<u8")[-3 * blocks:].reshape(blocks, 3)
    parts = []
    for block, (offset, _, _) in enumerate(index):
        count = min(block_rows, rows - block * block_rows) * length
        parts.append(np.frombuffer(data, "<f4", count, int(offset)))
        if block == 0:
            first = np.frombuffer(data, "<u4", 1, int(offset) + (4 * count + 7) // 8 * 8)[0]
    return np.concatenate(parts), first


def contexts(text, at, order):
    """The `order` bytes before each place as one number."""
    number = np.zeros(len(at), np.int64)
    for back in range(order, 0, -1):
        number = number * BYTES + text[at - back]
    return number


def main(folder):
    with open(f"{folder}/meta.json") as file:
        meta = json.load(file)
    splits = {name: labels_of(folder, meta, name) for name in ("train", "validation", "test")}
    labels = np.concatenate([[splits["train"][1]]] + [splits[name][0] for name in splits])
    text = np.nan_to_num(labels).astype(np.int64)
    end = 1 + len(splits["train"][0])
    for order in ORDERS:
        at = np.arange(max(order, 1), end)
        context = contexts(text, at, order)
        seen, times = np.unique(context, return_counts=True)
        pairs, pair_times = np.unique(context * BYTES + text[at], return_counts=True)

        def count(keys, counts, wanted):
            place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            return np.where(keys[place] == wanted, counts[place], 0)

        found, begin = [], end
        for name in ("validation", "test"):
            at = np.arange(begin, begin + len(splits[name][0]))
            begin += len(at)
            at = at[~np.isnan(labels[at])]
            context = contexts(text, at, order)
            bits = -np.log2((count(pairs, pair_times, context * BYTES + text[at]) + ADDED)
                            / (count(seen, times, context) + ADDED * BYTES))
            found.append("%s %.3f (%d bytes)" % (name, bits.mean(), len(at)))
        print("order", order, *found)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
