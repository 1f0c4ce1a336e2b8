#!/usr/bin/env python3
"""Prints what tests/core/ops/ops_test.cc (HstuTest.EqualsPyTorch) expects: an HSTU block in PyTorch,
float64, from its formula in docs/reference/models.md; gradients from autograd.

    python hstu.py

5 rows of 4 tokens of 3 features, of which 3 are there (two positions and the target); 2 heads, d = 3,
dv = 2.
"""

import torch
import torch.nn.functional as F

ROWS, TOKENS, WIDTH, HEADS, D, DV, LENGTH = 5, 4, 3, 2, 3, 2, 3
SHAPES = {
    "norm.gain": [WIDTH],
    "norm.bias": [WIDTH],
    "query.weight": [HEADS * D, WIDTH],
    "key.weight": [HEADS * D, WIDTH],
    "value.weight": [HEADS * DV, WIDTH],
    "gate.weight": [HEADS * DV, WIDTH],
    "position_bias": [TOKENS],
    "output_norm.gain": [HEADS * DV],
    "output_norm.bias": [HEADS * DV],
    "output.weight": [WIDTH, HEADS * DV],
    "output.bias": [WIDTH],
}

place = 0


def numbers(*shape):
    global place
    count = torch.Size(shape).numel()
    place += count
    values = torch.sin(0.7 * torch.arange(place - count + 1, place + 1, dtype=torch.float64))
    return values.reshape(shape)


def hstu(w, x):
    normal = F.layer_norm(x, [WIDTH], w["norm.gain"], w["norm.bias"])
    parts = (F.silu(F.linear(normal, w[n + ".weight"])) for n in ("query", "key", "value", "gate"))
    q, k, v, u = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
    distance = torch.arange(TOKENS)[:, None] - torch.arange(TOKENS)
    scores = q @ k.transpose(-1, -2) + w["position_bias"][distance.clamp(min=0)]
    seen = (distance >= 0) & (torch.arange(TOKENS)[:, None] < LENGTH)
    attended = (F.silu(scores) / TOKENS * seen) @ v
    merged = attended.transpose(1, 2).flatten(2)
    normal = F.layer_norm(merged, [HEADS * DV], w["output_norm.gain"], w["output_norm.bias"])
    return x + F.linear(normal * u.transpose(1, 2).flatten(2), w["output.weight"], w["output.bias"])


def main():
    w = {name: numbers(*shape).requires_grad_() for name, shape in SHAPES.items()}
    x = numbers(ROWS, TOKENS, WIDTH).requires_grad_()
    dy = numbers(ROWS, TOKENS, WIDTH)
    y = hstu(w, x)
    (y * dy).sum().backward()
    found = {"y": y, "dx": x.grad}
    found |= {"hstu." + name: value.grad for name, value in w.items()}
    for name, value in found.items():
        print(f'{{"{name}", {{{value.sum().item()!r}, {(value * value).sum().item()!r}}}}},')


if __name__ == "__main__":
    main()
