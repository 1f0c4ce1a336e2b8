#!/usr/bin/env python3
"""Embedding tables in PyTorch, for comparison with tests/bench: forward, and backward with the
update of an optimizer: row_wise_adagrad, or in fbgemm sgd, adagrad and adam too.

    python3 torch_embedding.py [--widths=128,16] [--bags=65536] [--pooling=1] [--rows=1000000] \
        [--zipf=0] [--peers=fbgemm,torch] [--device=cuda] [--optimizer=row_wise_adagrad]

26 tables, bags of `pooling` ids that are added up; P(id) ~ (id + 1)^-zipf, in embedding_benchmark's
places. Two peers:
  fbgemm  SplitTableBatchedEmbeddingBagsCodegen with an exact optimizer, where fbgemm_gpu is
          installed: update fused into the backward pass
  torch   F.embedding of one table of all rows; backward in PyTorch's own operations: unique ids,
          index_add_ of gradients, then the rows and their sums of squares

Bytes that count as useful: forward: ids, rows read, outputs written. Backward and update: ids,
output gradients read, and of every unique row weights and sum of squares, read and written.
fbgemm_convention counts the row bytes of all lookups once (forward) or twice (backward), as
FBGEMM's benchmark does. Prints one line of name=value pairs for each.

--serve, on the CPU, for one peer and one width: prints "ready", after that for every line on its
input, a number of batches, looks those up, updates their rows and prints the median of their
seconds, CPU time of the process or with --wall wall time.
"""

import argparse
import statistics
import sys
import time

if {"-h", "--help"} & set(sys.argv[1:]):
    sys.exit(print(__doc__.strip()))

import torch
import torch.nn.functional as F

TABLES = 26
LEARNING_RATE, EPSILON = 1e-2, 1e-8


class Torch:
    name = "torch"

    def __init__(self, rows, width, pooling, device, optimizer="row_wise_adagrad"):
        assert optimizer == "row_wise_adagrad", "torch: this optimizer alone"
        self.pooling = pooling
        self.weights = torch.randn(TABLES * rows, width, device=device)
        self.squares = torch.zeros(TABLES * rows, device=device)
        self.base = torch.arange(TABLES, device=device)[:, None] * rows

    def forward(self, ids):  # [tables, bags * pooling] -> [tables, bags, width]
        if self.pooling == 1:
            return F.embedding(ids + self.base, self.weights)
        bags = (ids + self.base).view(-1, self.pooling)
        return F.embedding_bag(bags, self.weights, mode="sum").unflatten(0, (TABLES, -1))

    def backward(self, ids, gradients):
        rows, place = torch.unique(ids + self.base, return_inverse=True)
        width = self.weights.shape[1]
        sums = torch.zeros(len(rows), width, device=ids.device)
        gradients = gradients.flatten(0, 1).repeat_interleave(self.pooling, 0)
        sums.index_add_(0, place.flatten(), gradients)
        squares = self.squares[rows] + sums.square().mean(1)
        self.squares[rows] = squares
        step = sums / (squares.sqrt() + EPSILON)[:, None]
        self.weights[rows] = self.weights[rows] - LEARNING_RATE * step


class Fbgemm:
    name = "fbgemm"

    def __init__(self, rows, width, pooling, device, optimizer="row_wise_adagrad"):
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import (
            EmbeddingLocation, PoolingMode)
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
            ComputeDevice, SplitTableBatchedEmbeddingBagsCodegen)

        place = (EmbeddingLocation.DEVICE, ComputeDevice.CUDA)
        if device.type == "cpu":
            place = (EmbeddingLocation.HOST, ComputeDevice.CPU)
        kinds = {"sgd": EmbOptimType.EXACT_SGD, "adagrad": EmbOptimType.EXACT_ADAGRAD,
                 "row_wise_adagrad": EmbOptimType.EXACT_ROWWISE_ADAGRAD, "adam": EmbOptimType.ADAM}
        self.tables = SplitTableBatchedEmbeddingBagsCodegen(
            [(rows, width, *place)] * TABLES, optimizer=kinds[optimizer],
            learning_rate=LEARNING_RATE, eps=EPSILON, pooling_mode=PoolingMode.SUM)
        self.pooling, self.offsets = pooling, None

    def forward(self, ids):
        if self.offsets is None:
            self.offsets = torch.arange(0, ids.numel() + 1, self.pooling, device=ids.device)
        self.output = self.tables(ids.flatten(), self.offsets)
        return self.output

    def backward(self, ids, gradients):
        # Uses the output of the forward pass before. The layout [samples, tables * width] takes the
        # same bytes.
        self.output.backward(gradients.reshape(self.output.shape), retain_graph=True)


def peers(options):
    chosen = [peer for peer in (Fbgemm, Torch) if peer.name in options.peers.split(",")]
    try:
        import fbgemm_gpu  # noqa: F401
    except Exception as error:
        reason = (str(error).splitlines() or ["?"])[0]
        print(f"left_out peer=fbgemm reason={reason.replace(' ', '_')}")
        chosen = [peer for peer in chosen if peer is not Fbgemm]
    return chosen


def draw_ids(options, device):
    """[tables, bags * pooling]"""
    shape = (TABLES, options.bags * options.pooling)
    if options.zipf == 0:
        return torch.randint(options.rows, shape, device=device)
    weights = torch.arange(1, options.rows + 1, dtype=torch.float64) ** -options.zipf
    cumulative = weights.cumsum(0)
    ids = torch.searchsorted(cumulative, torch.rand(shape, dtype=torch.float64) * cumulative[-1])
    return (ids * 30_011 % options.rows).to(device)


def seconds(work, device, repeats):
    """Median and quartiles over repeats of the time on the device."""
    times = []
    for i in range(repeats + 3):
        if device.type == "cuda":
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            work(i)
            last.record()
            last.synchronize()
            times.append(first.elapsed_time(last) / 1e3)
        else:
            start = time.perf_counter()
            work(i)
            times.append(time.perf_counter() - start)
    return statistics.quantiles(times[3:], n=4)


def measure_copy(device, repeats):
    size = 2**30 if device.type == "cuda" else 2**24
    source = torch.zeros(size // 4, device=device)
    target = torch.empty_like(source)
    median = seconds(lambda _: target.copy_(source), device, repeats)[1]
    print(f"copy_gb_per_s={2 * size / median / 1e9:.0f}", flush=True)


def measure(peer, width, options):
    device = torch.device(options.device)
    torch.manual_seed(2026)
    tables = peer(options.rows, width, options.pooling, device, options.optimizer)
    batches = [draw_ids(options, device) for _ in range(4)]
    gradients = torch.randn(TABLES, options.bags, width, device=device)
    bags = TABLES * options.bags
    lookups = bags * options.pooling
    unique = sum(len(torch.unique(table)) for table in batches[0])
    assert options.optimizer == "row_wise_adagrad", "--serve alone measures others"
    useful = {"forward": lookups * (8 + 4 * width) + bags * 4 * width,
              "backward_update": lookups * 8 + bags * 4 * width + unique * 8 * (width + 1)}
    forward = seconds(lambda i: tables.forward(batches[i % 4]), device, options.repeats)
    tables.forward(batches[0])
    if peer is Fbgemm:
        backward = seconds(lambda i: tables.backward(batches[0], gradients), device,
                           options.repeats)
    else:
        backward = seconds(lambda i: tables.backward(batches[i % 4], gradients), device,
                           options.repeats)
    for passes, (name, times) in enumerate((("forward", forward), ("backward_update", backward)),
                                           1):
        low, median, high = times
        print(f"peer={peer.name} pass={name} width={width} lookups={lookups} unique={unique} "
              f"ms={median * 1e3:.4f} quartiles_ms={low * 1e3:.4f}-{high * 1e3:.4f} "
              f"useful_gb_per_s={useful[name] / median / 1e9:.1f} fbgemm_convention_gb_per_s="
              f"{passes * lookups * width * 4 / median / 1e9:.1f}", flush=True)


def serve(options):
    """See the top of the file."""
    peer, = peers(options)
    device = torch.device("cpu")
    torch.manual_seed(2026)
    tables = peer(options.rows, int(options.widths), options.pooling, device, options.optimizer)
    batches = [draw_ids(options, device) for _ in range(4)]
    gradients = torch.randn(TABLES, options.bags, int(options.widths)) * 1e-3
    clock = time.perf_counter if options.wall else time.process_time

    def train(ids):
        start = clock()
        tables.forward(ids)
        tables.backward(ids, gradients)
        return clock() - start

    for ids in batches:
        train(ids)
    print("ready", flush=True)
    for line in sys.stdin:
        times = [train(batches[i % len(batches)]) for i in range(int(line))]
        print(f"seconds={statistics.median(times):.6f}", flush=True)
    return 0


def check():
    """Both peers' forward and update from the same weights, on a small case."""
    ids, gradients = torch.randint(50, (TABLES, 12 * 3)), torch.randn(TABLES, 12, 8)
    fbgemm, plain = (peer(50, 8, 3, torch.device("cpu")) for peer in (Fbgemm, Torch))
    torch.cat(fbgemm.tables.split_embedding_weights(), out=plain.weights)
    for _ in range(2):
        difference = fbgemm.forward(ids).unflatten(1, (TABLES, 8)).transpose(0, 1)
        difference = (difference - plain.forward(ids)).abs().max()
        layout = gradients.transpose(0, 1).reshape(12, TABLES * 8)
        fbgemm.output.backward(layout)
        plain.backward(ids, gradients)
    weights = torch.cat(fbgemm.tables.split_embedding_weights())
    update = (weights - plain.weights).abs().max()
    print(f"forward_difference={difference:.3g} weight_difference={update:.3g}")
    return 0 if difference < 1e-4 and update < 1e-5 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--widths", default="128,16")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of each table")
    parser.add_argument("--bags", type=int, default=65536, help="of each table")
    parser.add_argument("--pooling", type=int, default=1, help="ids of a bag")
    parser.add_argument("--zipf", type=float, default=0, help="exponent; 0: uniform ids")
    parser.add_argument("--peers", default="fbgemm,torch")
    parser.add_argument("--optimizer", default="row_wise_adagrad")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--wall", action="store_true")
    parser.add_argument("--check", action="store_true", help="the peers against each other")
    options = parser.parse_args()
    if options.serve or options.check:
        return serve(options) if options.serve else check()
    measure_copy(torch.device(options.device), options.repeats)
    failed = False
    for peer in peers(options):
        for width in map(int, options.widths.split(",")):
            try:
                measure(peer, width, options)
            except Exception as error:  # one peer's failure is not the other's
                failed = True
                print(f"failed peer={peer.name} width={width}: {str(error).splitlines()[:1]}",
                      flush=True)
            if options.device == "cuda":
                torch.cuda.empty_cache()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
