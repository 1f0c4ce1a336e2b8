#!/usr/bin/env python3
"""The end of tools/gpu_check.sh: reads results.txt and the logs of the PyTorch peers in the folder
it is given, adds what follows from them, and prints all values and a verdict for every goal. A goal
whose figures are missing has the verdict 'not measured'. Exit code 0 when parity, sanitizer and AUC
hold."""

import os
import re
import sys

if {"-h", "--help"} & set(sys.argv[1:]):
    sys.exit(print(__doc__.strip()))

# The products of RankElastor with the paper's Criteo settings (docs/models.md), a sample:
# multiply-adds, features in, features out.
PRODUCTS = [(20_280, 780, 390), (390, 390, 1)] + 2 * [
    (152_100, 390, 390), (60_840, 390, 2340), (30_420, 1170, 390), (10_140, 390, 390)]
# Embeddings, a sample: 26 ids, rows of 20 read, activations written, and their gradients read.
EMBEDDING_BYTES = 26 * (8 + 3 * 4 * 20)
TORCH_PRECISIONS = {"FLOAT32": "fp32", "TF32": "tf32", "BFLOAT16": "bf16"}


def read_values(path):
    values = {}
    with open(path) as file:
        for line in file:
            name, separator, value = line.strip().partition("=")
            if separator:
                values[name] = value
    return values


def read_peers(folder):
    """{(mode, precision, embedding optimizer, batch): samples/s} and the embedding's lines."""
    steps, embedding = {}, {}
    for log in ("torch_step", "torch_compile", "torch_embedding"):
        path = os.path.join(folder, log + ".log")
        if not os.path.exists(path):
            continue
        with open(path, errors="replace") as file:
            for line in file:
                pairs = dict(re.findall(r"(\w+)=(\S+)", line))
                if line.startswith("mode="):
                    key = (pairs["mode"], pairs["precision"], pairs["embedding_optimizer"],
                           pairs["batch"])
                    steps[key] = float(pairs["samples_per_s"])
                elif line.startswith("peer="):
                    name = f"{pairs['peer']}.{pairs['pass']}.k{pairs['width']}"
                    embedding[name] = float(pairs["useful_gb_per_s"])
    return steps, embedding


class Report:
    def __init__(self, values):
        self.values = values
        self.verdicts = []
        self.failed = False

    def number(self, name):
        try:
            return float(self.values[name])
        except (KeyError, ValueError):
            return None

    def add(self, name, value, digits=4):
        if value is not None:
            self.values[name] = f"{value:.{digits}g}"

    def judge(self, goal, value, holds, required=False):
        if value is None:
            self.verdicts.append(f"{goal}: not measured")
            self.failed |= required
            return
        verdict = holds(value)
        self.verdicts.append(f"{goal}: {'yes' if verdict else 'NO'} ({value:.4g})")
        self.failed |= required and not verdict


def ratio(a, b):
    return None if a is None or b is None or b == 0 else a / b


def judge_tests(report):
    for tool in ("test", "memcheck", "racecheck"):
        codes = {name: value for name, value in report.values.items()
                 if re.fullmatch(rf"check\.{tool}\.\w+", name)}
        bad = [name.split(".")[2] for name, value in codes.items() if value not in ("0", "124")]
        late = [name.split(".")[2] for name, value in codes.items() if value == "124"]
        skipped = [name for name in report.values if re.match(rf"check\.{tool}\..*\.skipped", name)]
        for name in bad:
            report.verdicts.append(f"  {tool}: {name} failed")
        for name in late:
            report.verdicts.append(f"  {tool}: {name} did not end in its time")
        done = len(codes) - len(late) - len(skipped)
        report.judge(f"{tool}: programs that failed, of {done} that ended",
                     len(bad) if done > 0 else None, lambda n: n == 0, required=True)
    failures = [report.number(f"check.nccl.ranks{n}") for n in (2, 3)]
    report.judge("NCCL on 2 and 3 ranks: exit codes",
                 None if None in failures else sum(failures), lambda n: n == 0)


def judge_training(report):
    auc = report.number("check.train.cpu.auc")
    for name in ("cuda", "cuda_tf32", "cuda_bfloat16"):
        own = report.number(f"check.train.{name}.auc")
        difference = None if auc is None or own is None else abs(own - auc)
        if name == "cuda":
            report.judge("FP32: AUC within 1e-4 of the CPU's", difference, lambda d: d <= 1e-4,
                         required=True)
        else:
            report.add(f"auc_difference.{name}", difference)
    digest = report.values.get("check.train.cuda.state_digest")
    for name in ("cuda_no_overlap", "cuda_2_ranks", "cuda_2_ranks_nccl"):
        other = report.values.get(f"check.train.{name}.state_digest")
        same = None if digest is None or other is None else float(digest != other)
        report.judge(f"same bits: {name} (0 is the same)", same, lambda d: d == 0)


def floor_ms(batch, tflops, gb_per_s, activation_bytes):
    """Every product, forward and both of backward, at the measured rate of products or at the time
    that reading its operands and writing its result once takes, whichever is longer; and the
    embeddings' bytes. Nothing for what lies between the products."""
    seconds = EMBEDDING_BYTES / (gb_per_s * 1e9)
    for multiply_adds, features_in, features_out in PRODUCTS:
        bytes_moved = (features_in + features_out) * activation_bytes
        seconds += 3 * max(2 * multiply_adds / (tflops * 1e12), bytes_moved / (gb_per_s * 1e9))
    return batch * seconds * 1e3


def judge_steps(report, peers):
    copy = report.number("floor.device_copy_gb_per_s")
    for batch in ("4096", "65536"):
        for precision, torch_precision in TORCH_PRECISIONS.items():
            name = f"step.{batch}.{precision}"
            own = report.number(f"{name}.samples_per_s")
            rate = report.number(f"floor.{precision.lower()}_tflops")
            if own and rate and copy:
                activation_bytes = 2 if precision == "BFLOAT16" else 4
                floor = floor_ms(int(batch), rate, copy, activation_bytes)
                report.add(f"{name}.floor_ms", floor)
                report.add(f"{name}.times_floor", 1e3 * int(batch) / own / floor)
            for mode in ("eager", "graph", "compile"):
                for optimizer in ("sparse", "dense"):
                    other = peers.get((mode, torch_precision, optimizer, batch))
                    report.add(f"{name}.times_torch_{mode}_{optimizer}", ratio(own, other))
        fast = report.number(f"step.{batch}.FLOAT32.fast.samples_per_s")
        report.add(f"step.{batch}.reproducible_costs",
                   ratio(fast, report.number(f"step.{batch}.FLOAT32.samples_per_s")))
    for precision in TORCH_PRECISIONS:
        report.judge(f"batch 4,096 {precision}: at least 10 times eager PyTorch",
                     report.number(f"step.4096.{precision}.times_torch_eager_sparse"),
                     lambda r: r >= 10)
    for precision in TORCH_PRECISIONS:
        report.judge(f"batch 65,536 {precision}: at most 1.5 times the floor",
                     report.number(f"step.65536.{precision}.times_floor"), lambda r: r <= 1.5)
    report.judge("batch 65,536: reproducible at most 5 % slower than fast mode",
                 report.number("step.65536.reproducible_costs"), lambda r: r <= 1.05)


def judge_embedding(report, peers):
    copy = report.number("floor.device_copy_gb_per_s")
    for name, rate in peers.items():
        report.add(f"torch_embedding.{name}.share", ratio(rate, copy))
    for width in ("128", "16"):
        for part, goal in (("forward", 0.65), ("backward", 0.40)):
            report.judge(f"embedding k {width} {part}: at least {goal:.0%} of the copy's bandwidth",
                         report.number(f"embedding.float32_width_{width}_{part}_useful_share"),
                         lambda share, goal=goal: share >= goal)


def main(folder):
    path = os.path.join(folder, "results.txt")
    report = Report(read_values(path))
    step_peers, embedding_peers = read_peers(folder)
    for key, rate in step_peers.items():
        report.values["torch." + ".".join(key) + ".samples_per_s"] = f"{rate:.0f}"
    judge_tests(report)
    judge_training(report)
    judge_steps(report, step_peers)
    judge_embedding(report, embedding_peers)
    lines = [f"{name}={value}" for name, value in report.values.items()] + report.verdicts
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
