#!/usr/bin/env python3
"""Kernels that golden_test expects of the golden cases' initial weights, in PyTorch, float64.

    python ntk.py start.json ntk.json

start.json is export_weights' (README.md). Weights are rounded to float32, as a model keeps them; rows
are those of the first batch whose bags hold at most one id, which nothing pools. Every row's gradient
of the logit with respect to all weights, embeddings included, comes from torch.func.
"""

import json
import sys

import torch
from golden import Model, tensors

CASES = ("rank_elastor_paper", "rank_mixer_public_code", "mlp", "dcn_v2_low_rank", "x_deep_fm")


def kernel(case, start):
    """The lower triangle, row after row."""
    model = Model(case["model"], start["fields"], case["weights"], case["leaves"]).float().double()
    weights = dict(model.named_parameters())
    batch = start["batches"][0]
    gradients = []
    for row in range(len(batch["ids"])):
        if any(len(bag) > 1 for bag in batch["ids"][row]):
            continue
        one = {name: values[row : row + 1] for name, values in batch.items()}
        _, _, numeric, bags = tensors(one, start["fields"])
        numeric = numeric.float().double()

        def logit(weights):
            return torch.func.functional_call(model, weights, (numeric, bags)).sum()

        gradient = torch.func.grad(logit)(weights)
        gradients.append(torch.cat([value.flatten() for value in gradient.values()]))
    jacobian = torch.stack(gradients)
    found = jacobian @ jacobian.T
    return [found[i, j].item() for i in range(len(found)) for j in range(i + 1)]


def main(start_path, kernels_path):
    with open(start_path) as file:
        start = json.load(file)
    kernels = {name: kernel(start["cases"][name], start) for name in CASES}
    with open(kernels_path, "w") as file:
        json.dump(kernels, file, indent=0)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
