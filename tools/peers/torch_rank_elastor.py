#!/usr/bin/env python3
"""The training step of RankElastor in PyTorch, for comparison with tests/bench.

    python3 torch_rank_elastor.py --modes=eager,graph,compile --precisions=fp32,tf32,bf16 \
        --batches=4096,65536 [--device=cuda] [--seconds=200]
    python3 torch_rank_elastor.py --check        (against tests/golden/golden.py, on the CPU)

The paper's convention with its Criteo settings (docs/models.md, configs/scale.textproto): 13
numeric and 26 categorical fields, k 20, T 15, D 26, two blocks, r 3, loss, clipping at 10, Adam.
Batches lie in the device's memory before the clock starts, ids as in train_step_benchmark: P(id)
about (id + 1)^-1.05, 42,308 rows a table. All tables are one nn.Embedding, gathered once a step.

Modes:
  eager    as written, torch.optim.Adam(fused=True)
  graph    the same, the whole step captured in one CUDA graph
  compile  torch.compile(mode="max-autotune"), which uses CUDA graphs, of forward and backward
Embedding optimizers (--embedding_optimizers):
  sparse   torch.optim.SparseAdam on the rows of the batch: the one of configs/scale.textproto
           (LAZY_ADAM). Its shapes depend on the data, so that no CUDA graph can hold it: not in
           mode graph
  dense    torch.optim.Adam(fused=True) on the whole table at every step (DENSE_ADAM)

Prints one line of name=value pairs for each combination, and "left_out" for those that --seconds
leaves no time for.
"""

import argparse
import importlib.util
import itertools
import math
import os
import statistics
import sys
import time

if {"-h", "--help"} & set(sys.argv[1:]):
    sys.exit(print(__doc__.strip()))

import torch
import torch.nn.functional as F
from torch import nn

NUMERIC, CATEGORICAL = 13, 26
WIDTH, TOKENS, TOKEN_WIDTH, BLOCKS, EXPANSION = 20, 15, 26, 2, 3
LEARNING_RATE, CLIP_NORM = 1e-3, 10.0
LAYER_EPSILON, CLIP_EPSILON = 1e-5, 1e-6
ZIPF = 1.05


def xavier(*shape):
    """Normal, of variance 2 / (in + out), for [..., out, in]."""
    return nn.Parameter(torch.randn(shape) * math.sqrt(2 / (shape[-1] + shape[-2])))


class Block(nn.Module):
    """Mixing of all tokens, then a gated P-FFN of each (eq. 3 and 4 of the paper)."""

    def __init__(self):
        super().__init__()
        t, d, h = TOKENS, TOKEN_WIDTH, EXPANSION * TOKEN_WIDTH
        self.mixing = xavier(t * d, t * d)
        self.mixing_bias = nn.Parameter(torch.zeros(t * d))
        self.norm = nn.LayerNorm(d, eps=LAYER_EPSILON)
        self.lift = nn.Parameter(torch.stack([xavier(t, h, d), xavier(t, h, d)], 1).flatten(1, 2))
        self.down = xavier(t, d, h)
        self.residual = xavier(t, d, d)

    def forward(self, x):  # [B, T, D]
        mixed = F.linear(x.flatten(1), self.mixing, self.mixing_bias).reshape(x.shape)
        m = self.norm(x + mixed).transpose(0, 1)  # [T, B, D]
        p, q = torch.bmm(m, self.lift.transpose(1, 2)).chunk(2, 2)  # [T, B, H] each
        z = torch.bmm(F.gelu(p) * q, self.down.transpose(1, 2))
        return (z + torch.bmm(m, self.residual.transpose(1, 2))).transpose(0, 1)


class Dense(nn.Module):
    """From gathered rows [B, 26, k] and numeric values [B, 13] to the mean loss."""

    def __init__(self):
        super().__init__()
        fields = NUMERIC + CATEGORICAL
        self.group = math.ceil(fields * WIDTH / TOKENS)
        self.padding = self.group * TOKENS - fields * WIDTH
        self.vectors = nn.Parameter(torch.randn(NUMERIC, WIDTH) * 1e-4)
        self.missing = nn.Parameter(torch.randn(NUMERIC, WIDTH) * 1e-4)
        self.tokenizer = xavier(TOKENS, TOKEN_WIDTH, self.group)
        self.tokenizer_bias = nn.Parameter(torch.zeros(TOKENS, 1, TOKEN_WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.head = nn.Linear(TOKENS * TOKEN_WIDTH, 1)
        nn.init.xavier_normal_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, rows, numeric, labels):
        values = numeric.unsqueeze(2)
        known = torch.nan_to_num(values) * self.vectors
        e = torch.cat([torch.where(torch.isnan(values), self.missing, known), rows], 1).flatten(1)
        e = F.pad(e, (0, self.padding)).reshape(-1, TOKENS, self.group).transpose(0, 1)
        tokens = torch.bmm(e, self.tokenizer.transpose(1, 2)) + self.tokenizer_bias
        x = tokens.transpose(0, 1)
        for block in self.blocks:
            x = block(x)
        logits = self.head(x.flatten(1)).squeeze(1)
        return F.binary_cross_entropy_with_logits(logits.to(labels.dtype), labels)


class Batch:
    """Ids are rows of the fused table: field f's begin at f * rows."""

    def __init__(self, size, rows, device, generator):
        uniform = torch.rand(size, CATEGORICAL, generator=generator, dtype=torch.float64)
        exponent = 1 - ZIPF
        x = (uniform * ((rows + 1) ** exponent - 1) + 1) ** (1 / exponent)
        ids = (x.long() - 1).clamp(0, rows - 1) + torch.arange(CATEGORICAL) * rows
        self.ids = ids.to(device)
        self.numeric = torch.rand(size, NUMERIC, generator=generator).to(device)
        self.labels = (torch.rand(size, generator=generator) < 0.25).float().to(device)

    def copy_(self, other):
        self.ids.copy_(other.ids)
        self.numeric.copy_(other.numeric)
        self.labels.copy_(other.labels)


class Trainer:
    """One step: gather, forward, backward, clipping over everything, Adam."""

    def __init__(self, mode, precision, embedding_optimizer, rows, device):
        self.cuda = device.type == "cuda"
        self.sparse = embedding_optimizer == "sparse"
        self.bf16 = precision == "bf16"
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        self.table = nn.Embedding(CATEGORICAL * rows, WIDTH, sparse=self.sparse, device=device)
        nn.init.normal_(self.table.weight, std=1e-4)
        self.dense = Dense().to(device)
        self.loss = self.dense
        if mode == "compile":
            torch._dynamo.reset()
            self.loss = torch.compile(self.dense, mode="max-autotune", dynamic=False)
        parameters = list(self.dense.parameters())
        if not self.sparse:
            parameters.append(self.table.weight)
        options = {"fused": True, "capturable": True} if self.cuda else {}
        self.optimizers = [torch.optim.Adam(parameters, lr=LEARNING_RATE, **options)]
        if self.sparse:
            self.optimizers.append(torch.optim.SparseAdam([self.table.weight], lr=LEARNING_RATE))

    def step(self, batch):
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        with torch.autocast(batch.ids.device.type, torch.bfloat16, enabled=self.bf16):
            loss = self.loss(self.table(batch.ids), batch.numeric, batch.labels)
        loss.backward()
        self.clip()
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.detach()

    def clip(self):
        gradients = [p.grad for p in self.dense.parameters()]
        if self.sparse:
            self.table.weight.grad = self.table.weight.grad.coalesce()
            gradients.append(self.table.weight.grad._values())
        else:
            gradients.append(self.table.weight.grad)
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        torch._foreach_mul_(gradients, (CLIP_NORM / (norm + CLIP_EPSILON)).clamp(max=1.0))


def captured(trainer, batch):
    """The step on `batch`'s memory as one CUDA graph, replayed by the result."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            trainer.step(batch)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        trainer.step(batch)
    return graph.replay


def step_seconds(work, cuda):
    """Seconds of work() on the device (on the host without one)."""
    if not cuda:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    work()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / 1e3


def measure(mode, precision, embedding_optimizer, size, options):
    """Median over rounds of the time of a step, each round of all batches in turn, enqueued
    without a wait in between."""
    device = torch.device(options.device)
    generator = torch.Generator().manual_seed(2026)
    torch.manual_seed(2026)
    batches = [Batch(size, options.rows, device, generator) for _ in range(options.distinct)]
    trainer = Trainer(mode, precision, embedding_optimizer, options.rows, device)
    warm_start = time.perf_counter()
    if mode == "graph":
        place = Batch(size, options.rows, device, generator)
        replay = captured(trainer, place)

        def step(batch):
            place.copy_(batch)
            replay()
    else:
        step = trainer.step

    def round_of_steps():
        for batch in batches:
            step(batch)

    for _ in range(2):
        round_of_steps()
    if trainer.cuda:
        torch.cuda.synchronize()
    warm_seconds = time.perf_counter() - warm_start
    times = [step_seconds(round_of_steps, trainer.cuda) / len(batches)
             for _ in range(options.rounds)]
    loss = trainer.step(batches[0]).item()
    low, median, high = statistics.quantiles(times, n=4) if len(times) > 1 else times * 3
    memory = torch.cuda.max_memory_allocated() / 2**20 if trainer.cuda else 0
    print(f"mode={mode} precision={precision} embedding_optimizer={embedding_optimizer} "
          f"batch={size} ms_per_step={median * 1e3:.4f} quartiles_ms={low * 1e3:.4f}-"
          f"{high * 1e3:.4f} samples_per_s={size / median:.0f} warm_up_s={warm_seconds:.1f} "
          f"memory_mib={memory:.0f} loss={loss:.6f}", flush=True)


def run(options):
    start = time.perf_counter()
    print(f"torch={torch.__version__} device={options.device}"
          + (f" name={torch.cuda.get_device_name().replace(' ', '_')}"
             if options.device == "cuda" else ""), flush=True)
    failed = False
    for mode, precision, size, embedding_optimizer in itertools.product(
            options.modes.split(","), options.precisions.split(","),
            map(int, options.batches.split(",")), options.embedding_optimizers.split(",")):
        if mode == "graph" and embedding_optimizer == "sparse":
            continue
        what = (f"mode={mode} precision={precision} embedding_optimizer={embedding_optimizer} "
                f"batch={size}")
        if time.perf_counter() - start > options.seconds:
            print(f"left_out {what}", flush=True)
            continue
        try:
            measure(mode, precision, embedding_optimizer, size, options)
        except Exception as error:  # one combination's failure is not the others'
            failed = True
            print(f"failed {what}: {str(error).splitlines()[:1]}", flush=True)
        if options.device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    return 1 if failed else 0


def golden_model(dense, rows):
    """The same weights in the model of tests/golden/golden.py, whose mathematics the C++ tests
    hold to 1e-9."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/golden/golden.py")
    spec = importlib.util.spec_from_file_location("golden", path)
    golden = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(golden)
    tensors = {"numeric.vectors": dense.vectors, "numeric.missing": dense.missing,
               "tokenizer.output.weight": dense.tokenizer,
               "tokenizer.output.bias": dense.tokenizer_bias.squeeze(1),
               "head.output.weight": dense.head.weight, "head.output.bias": dense.head.bias}
    for i, block in enumerate(dense.blocks):
        tensors |= {f"block{i}.mixing.weight": block.mixing,
                    f"block{i}.mixing.bias": block.mixing_bias,
                    f"block{i}.mixing.norm.gain": block.norm.weight,
                    f"block{i}.mixing.norm.bias": block.norm.bias,
                    f"block{i}.ffn.lift": block.lift.unflatten(1, (2, -1)),
                    f"block{i}.ffn.down": block.down, f"block{i}.ffn.residual": block.residual}
    for field in range(CATEGORICAL):
        tensors[f"embedding/{field}"] = rows[:, field]  # sample i's row is row i
    weights = {name: {"shape": list(t.shape), "values": t.detach().flatten().tolist()}
               for name, t in tensors.items()}
    fields = [{"table": str(field), "pooling": "sum"} for field in range(CATEGORICAL)]
    model = {"kind": "rank_elastor", "convention": "paper", "tokens": TOKENS,
             "token_width": TOKEN_WIDTH, "blocks": BLOCKS, "tokenizer": "grouped",
             "head": "flatten_linear"}
    return golden.Model(model, fields, weights, leaves=1)


def check():
    """Loss and gradients in double against the golden model's."""
    torch.manual_seed(1)
    size = 6
    dense = Dense().double()
    for parameter in dense.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    rows = torch.randn(size, CATEGORICAL, WIDTH, dtype=torch.float64, requires_grad=True)
    numeric = torch.randn(size, NUMERIC, dtype=torch.float64)
    numeric[2, 3] = math.nan
    labels = torch.tensor([1.0, 0, 0, 1, 0, 1], dtype=torch.float64)
    loss = dense(rows, numeric, labels)
    loss.backward()

    model = golden_model(dense, rows)
    bag = (torch.arange(size), torch.arange(size))
    golden_loss = F.binary_cross_entropy_with_logits(model(numeric, [bag] * CATEGORICAL), labels)
    golden_loss.backward()
    gradients = {name: weight.grad for name, weight in model.weights().items()}
    differences = {
        "loss": (loss - golden_loss).abs(),
        "rows": max((rows.grad[:, f] - gradients[f"embedding/{f}"]).abs().max()
                    for f in range(CATEGORICAL)),
        "missing": (dense.missing.grad - gradients["numeric.missing"]).abs().max(),
        "lift": (dense.blocks[0].lift.grad.unflatten(1, (2, -1))
                 - gradients["block0.ffn.lift"]).abs().max(),
    }
    print(f"loss={loss.item():.12f} "
          + " ".join(f"{name}_difference={d.item():.3g}" for name, d in differences.items()))
    return 0 if all(d < 1e-10 for d in differences.values()) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--modes", default="eager,graph,compile")
    parser.add_argument("--precisions", default="fp32,tf32,bf16")
    parser.add_argument("--batches", default="4096,65536")
    parser.add_argument("--embedding_optimizers", default="sparse,dense")
    parser.add_argument("--rows", type=int, default=42308, help="of each table")
    parser.add_argument("--distinct", type=int, default=6, help="different batches, in turn")
    parser.add_argument("--rounds", type=int, default=10, help="measured, of all batches each")
    parser.add_argument("--seconds", type=float, default=1e9, help="start nothing after that")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    return check() if options.check else run(options)


if __name__ == "__main__":
    sys.exit(main())
