#!/usr/bin/env python3
"""The training step of torch_models.py's models in PyTorch, for comparison with tests/bench.

    python3 torch_train_step.py --models=rank_elastor --modes=eager,graph,compile \
        --precisions=fp32,tf32,bf16 --batches=4096,65536 [--device=cuda] [--seconds=200]

The models of torch_models.py, clipping at 10, Adam. Batches lie in the device's memory before the
clock starts, ids as in train_step_benchmark: P(id) about (id + 1)^-1.05, 42,308 rows a table. All
tables are one nn.Embedding, gathered once a step.

Modes:
  eager    as written, torch.optim.Adam(fused=True)
  graph    the same, the whole step captured in one CUDA graph
  compile  torch.compile of forward and backward; on a GPU with mode "max-autotune", which uses
           CUDA graphs
  fuxictr  on the CPU: FuxiCTR's train_step (fuxictr_trainer.py), always dense
  torchrec on the CPU: TorchRec's embeddings (torchrec_trainer.py), always row-wise Adagrad
Embedding optimizers (--embedding_optimizers):
  sparse   torch.optim.SparseAdam on the rows of the batch: the one of configs/scale.textproto
           (LAZY_ADAM). Its shapes depend on the data, so that no CUDA graph can hold it: not in
           mode graph
  dense    torch.optim.Adam(fused=True) on the whole table at every step (DENSE_ADAM)

A step's time is the device's, on the CPU wall time. Prints one line of name=value pairs for each
combination, and "left_out" for those that --seconds leaves no time for.

--serve, for one combination: prints "ready" and the line's pairs after warm-up; then for every line
on its input, a number of steps, runs those and prints the median of their seconds and the loss.
The seconds are CPU time of the process, with --wall wall time.
"""

import argparse
import itertools
import statistics
import sys
import time

if {"-h", "--help"} & set(sys.argv[1:]):
    sys.exit(print(__doc__.strip()))

import torch
import torch._inductor.config
from torch import nn

from torch_models import CATEGORICAL, NETWORKS, NUMERIC, Dense, count

LEARNING_RATE, CLIP_NORM, CLIP_EPSILON = 1e-3, 10.0, 1e-6
ZIPF = 1.05


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

    def __init__(self, model, mode, precision, embedding_optimizer, rows, device):
        self.sparse = embedding_optimizer == "sparse"
        self.bf16 = precision == "bf16"
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        self.table = nn.Embedding(CATEGORICAL * rows, NETWORKS[model].row_width(), sparse=self.sparse,
                                  device=device)
        nn.init.normal_(self.table.weight, std=1e-4)
        self.dense = Dense(model)
        self.counts = count(self.dense)
        self.dense.to(device)
        self.loss = self.dense
        if mode == "compile":
            torch._dynamo.reset()
            # Dropout by PyTorch's own generator: on the CPU the compiler's takes longer than a
            # whole layer.
            torch._inductor.config.fallback_random = device.type == "cpu"
            how = "max-autotune" if device.type == "cuda" else "default"
            self.loss = torch.compile(self.dense, mode=how, dynamic=False)
        parameters = list(self.dense.parameters())
        if not self.sparse:
            parameters.append(self.table.weight)
        self.optimizers = [torch.optim.Adam(parameters, lr=LEARNING_RATE, fused=True,
                                            capturable=device.type == "cuda")]
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


def step_seconds(work, device):
    """Seconds of work(), on the device."""
    if device.type == "cpu":
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    work()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / 1e3


class Measurement:
    """A trainer, warmed up, and the batches that it takes in turn."""

    def __init__(self, model, mode, precision, embedding_optimizer, size, options):
        self.what = (f"mode={mode} model={model} precision={precision} "
                     f"embedding_optimizer={embedding_optimizer} batch={size}")
        self.size = size
        self.device = device = torch.device(options.device)
        generator = torch.Generator().manual_seed(2026)
        torch.manual_seed(2026)
        self.batches = [Batch(size, options.rows, device, generator)
                        for _ in range(options.distinct)]
        start = time.perf_counter()
        if mode == "fuxictr":
            import fuxictr_trainer
            self.trainer = fuxictr_trainer.Trainer(model, options.rows)
        elif mode == "torchrec":
            import torchrec_trainer
            self.trainer = torchrec_trainer.Trainer(model, options.rows, LEARNING_RATE)
        else:
            self.trainer = Trainer(model, mode, precision, embedding_optimizer, options.rows, device)
        self.first_loss = self.loss()
        self.step = self.trainer.step
        if mode == "graph":
            place = Batch(size, options.rows, device, generator)
            replay = captured(self.trainer, place)

            def copy_and_replay(batch):
                place.copy_(batch)
                replay()

            self.step = copy_and_replay
        self.steps(2 * options.distinct)
        if device.type == "cuda":
            torch.cuda.synchronize()
        self.warm_up_seconds = time.perf_counter() - start

    def loss(self):
        return self.trainer.step(self.batches[0]).item()

    def steps(self, count):
        for i in range(count):
            self.step(self.batches[i % len(self.batches)])

    def round_seconds(self):
        """Seconds per step, over all batches in turn, enqueued without a wait in between."""
        return step_seconds(lambda: self.steps(len(self.batches)), self.device) / len(self.batches)

    def turn(self, count, clock):
        """Seconds of each of `count` steps, and the loss of the last."""
        times = []
        for i in range(count):
            start = clock()
            loss = self.step(self.batches[i % len(self.batches)]).item()
            times.append(clock() - start)
        return times, loss


def measure(measurement, options):
    """Median over rounds of the time of a step."""
    times = [measurement.round_seconds() for _ in range(options.rounds)]
    low, median, high = statistics.quantiles(times, n=4) if len(times) > 1 else times * 3
    cuda = options.device == "cuda"
    memory = torch.cuda.max_memory_allocated() / 2**20 if cuda else 0
    print(f"{measurement.what} ms_per_step={median * 1e3:.4f} quartiles_ms={low * 1e3:.4f}-"
          f"{high * 1e3:.4f} samples_per_s={measurement.size / median:.0f} "
          f"warm_up_s={measurement.warm_up_seconds:.1f} memory_mib={memory:.0f} "
          f"loss={measurement.loss():.6f}", flush=True)


def combinations(options):
    for combination in itertools.product(
            options.models.split(","), options.modes.split(","), options.precisions.split(","),
            options.embedding_optimizers.split(","), map(int, options.batches.split(","))):
        if combination[1] != "graph" or combination[3] != "sparse":
            yield combination


def serve(options):
    """Rounds of steps on request: see the top of the file."""
    combination, = combinations(options)
    measurement = Measurement(*combination, options)
    parameters, multiply_adds = measurement.trainer.counts
    print(f"ready {measurement.what} dense_parameters={parameters} multiply_adds={multiply_adds} "
          f"torch={torch.__version__} loss={measurement.first_loss:.6f}", flush=True)
    clock = time.perf_counter if options.wall else time.process_time
    for line in sys.stdin:
        times, loss = measurement.turn(int(line), clock)
        print(f"seconds={statistics.median(times):.6f} loss={loss:.6f}", flush=True)
    return 0


def run(options):
    start = time.perf_counter()
    print(f"torch={torch.__version__} device={options.device}"
          + (f" name={torch.cuda.get_device_name().replace(' ', '_')}"
             if options.device == "cuda" else ""), flush=True)
    failed = False
    for combination in combinations(options):
        names = ("model", "mode", "precision", "embedding_optimizer", "batch")
        what = " ".join(f"{name}={value}" for name, value in zip(names, combination))
        if time.perf_counter() - start > options.seconds:
            print(f"left_out {what}", flush=True)
            continue
        try:
            measure(Measurement(*combination, options), options)
        except Exception as error:  # one combination's failure is not the others'
            failed = True
            print(f"failed {what}: {str(error).splitlines()[:1]}", flush=True)
        if options.device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--models", default="rank_elastor", help=",".join(NETWORKS))
    parser.add_argument("--modes", default="eager,graph,compile")
    parser.add_argument("--precisions", default="fp32,tf32,bf16")
    parser.add_argument("--batches", default="4096,65536")
    parser.add_argument("--embedding_optimizers", default="sparse,dense")
    parser.add_argument("--rows", type=int, default=42308, help="of each table")
    parser.add_argument("--distinct", type=int, default=6, help="different batches, in turn")
    parser.add_argument("--rounds", type=int, default=10, help="measured, of all batches each")
    parser.add_argument("--seconds", type=float, default=1e9, help="start nothing after that")
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--wall", action="store_true")
    options = parser.parse_args()
    torch.set_flush_denormal(True)
    return serve(options) if options.serve else run(options)


if __name__ == "__main__":
    sys.exit(main())
