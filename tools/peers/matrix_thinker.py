#!/usr/bin/env python3
"""Training speed of Matrix Thinker beside the same model in eager PyTorch, one thread each, in turn:

    tools/peers/matrix_thinker.py --trainer=bazel-bin/trainer/trainer --data=DATASET \\
        [--experiment=configs/matrix_thinker/small.textproto] [--set=FIELD=VALUE ...] [--steps=10]

A round is one turn of each, in an order that is reversed from round to round; a ratio is that of the
two turns of a round. A step is forward, backward, clipping and AdamW; the first one does not count.
Tokens are those of a second of processor time, so that other work on the machine counts as little as
may be. DATASET should have few validation rows. Dropout is left out on both sides.
"""

import argparse
import json
import math
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn.functional as F
from torch import nn


class Projection(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.row = nn.Parameter(torch.eye(d) + 0.02 * torch.randn(d, d))
        self.column = nn.Parameter(torch.eye(d) + 0.02 * torch.randn(d, d))

    def forward(self, m):
        return F.silu(self.row @ m) @ self.column


class MatrixNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d, d))

    def forward(self, m):
        return m * torch.rsqrt(m.square().mean((-1, -2), keepdim=True) + 1e-12) * self.gain


class Layer(nn.Module):
    def __init__(self, d, heads, matrix_product):
        super().__init__()
        self.heads, self.matrix_product = heads, matrix_product
        self.query, self.key, self.value, self.output = (Projection(d) for _ in range(4))
        self.delta_gate, self.delta_up, self.gamma_gate, self.gamma_up = (
            Projection(d) for _ in range(4))
        self.attention_norm, self.update_norm = MatrixNorm(d), MatrixNorm(d)
        self.scale = nn.Parameter(torch.tensor(0.1))
        self.gates = nn.Linear(d * d, 2)
        self.a, self.b = (nn.Parameter(torch.randn(d, 1) / math.sqrt(d)) for _ in range(2))

    def attention(self, n):
        rows, length, d, _ = n.shape
        q, k, v = (f(n).reshape(rows, length, self.heads, -1).transpose(1, 2)
                   for f in (self.query, self.key, self.value))
        if not self.matrix_product:
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            blocks = lambda x: x.unflatten(-1, (-1, d))
            products = (blocks(k).transpose(-1, -2) @ blocks(v)).flatten(-2)
            seen = F.scaled_dot_product_attention(q, k, products, is_causal=True)
            seen = (blocks(q) @ seen.unflatten(-1, (d, d))).flatten(-2)
        return self.output(seen.transpose(1, 2).reshape(n.shape))

    def update(self, n):
        delta = self.scale * (F.silu(self.delta_gate(n)) * self.delta_up(n))
        gamma = self.scale * (F.silu(self.gamma_gate(n)) * self.gamma_up(n))
        left = delta @ n
        change = left + (n + left) @ gamma
        gates = torch.sigmoid(self.gates(n.flatten(2)))[..., None, None]
        return gates[:, :, 0] * change + gates[:, :, 1] * ((n @ self.a) @ (n @ self.b).transpose(-1, -2))

    def forward(self, m):
        m = m + self.attention(self.attention_norm(m))
        return m + self.update(self.update_norm(m))


class MatrixThinker(nn.Module):
    def __init__(self, length, d, layers, iterations, heads, probes, matrix_product, collapse):
        super().__init__()
        self.d, self.iterations, self.collapse = d, iterations, collapse
        self.bytes = nn.Embedding(256, 2 * d)
        self.positions = nn.Parameter(0.1 * torch.randn(length, 2 * d))
        self.layers = nn.ModuleList(Layer(d, heads, matrix_product) for _ in range(layers))
        self.norm = MatrixNorm(d)
        if collapse:
            self.weight = nn.Parameter(torch.randn(d, d) / math.sqrt(d))
        else:
            self.left = nn.Parameter(torch.randn(probes, d) / math.sqrt(d))
            self.right = nn.Linear(d, probes, bias=False)
        self.head = nn.Linear(d if collapse else probes, 256, bias=False)

    def forward(self, x):
        e, p, d = self.bytes(x), self.positions, self.d
        m = e[..., :d, None] * e[..., None, d:] + 0.1 * p[:, :d, None] * p[:, None, d:]
        for _ in range(self.iterations):
            for layer in self.layers:
                m = layer(m)
        m = self.norm(m)
        read = (self.weight * m).sum(-1) if self.collapse else (self.right(m) * self.left.T).sum(-2)
        return self.head(read)


def number(text, name, default):
    found = re.findall(rf"\b{name}: (\d+)", text)
    return int(found[-1]) if found else default


def torch_tokens_per_s(model, optimizer, rows, length, steps):
    for step in range(steps + 1):
        if step == 1:
            begin = time.process_time()
        x, y = (torch.randint(256, (rows, length)) for _ in range(2))
        optimizer.zero_grad()
        F.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
    return rows * length * steps / (time.process_time() - begin)


def seconds_of_run(args, steps):
    """Returns the processor time, in seconds, of a run of `steps` steps."""
    with tempfile.TemporaryDirectory() as folder:
        command = [args.trainer, f"--experiment={args.experiment}", f"--output_dir={folder}/run",
                   f"--set=data.path={os.path.abspath(args.data)}",
                   "--set=model.matrix_thinker.dropout=0", "--set=spectrum.disabled=true",
                   "--set=checkpoint.disabled=true", f"--set=training.max_steps={steps}",
                   "--set=parallel.threads=1", "--set=training.epochs=1000"]
        command += [f"--set={value}" for value in args.set]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def our_tokens_per_s(args, rows, length, steps):
    begin = seconds_of_run(args, 1)
    return rows * length * steps / (seconds_of_run(args, 1 + steps) - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--experiment", default="configs/matrix_thinker/small.textproto")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    with open(args.experiment) as file:
        text = file.read()
    text += "\n".join(value.rsplit(".", 1)[-1].replace("=", ": ") for value in args.set)
    with open(os.path.join(args.data, "meta.json")) as file:
        length = len(json.load(file)["categorical"])
    rows = number(text, "batch_size", 64)
    model = MatrixThinker(length, number(text, "width", 32) // 2, number(text, "layers", 2),
                          number(text, "iterations", 8), number(text, "heads", 4),
                          number(text, "probes", 16), "MATRIX_PRODUCT" in text,
                          "VECTOR_COLLAPSE" in text)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01)
    ratios = []
    for turn in range(args.rounds):
        turns = [lambda: our_tokens_per_s(args, rows, length, args.steps),
                 lambda: torch_tokens_per_s(model, optimizer, rows, length, args.steps)]
        if turn % 2:
            theirs, ours = turns[1](), turns[0]()
        else:
            ours, theirs = turns[0](), turns[1]()
        ratios.append(ours / theirs)
        print(f"round {turn + 1}: {ours:.0f} tokens a second, PyTorch {torch.__version__} {theirs:.0f}, "
              f"ratio {ratios[-1]:.2f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    sys.exit(main())
