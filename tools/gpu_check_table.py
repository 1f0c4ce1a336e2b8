#!/usr/bin/env python3
"""The end of tools/gpu_check.sh: reads what a call left in its folder, adds what follows from it,
and prints all values and a verdict for everything that the call was expected to show.

    gpu_check_table.py CALL TOP_FOLDER LIST_OF_DEVICE_TESTS

What is expected is named here, so what never started counts as much as what failed. Exit code 0
when all of it is there and holds. Goals of speed are told beside it."""

import csv
import os
import re
import sys

if {"-h", "--help"} & set(sys.argv[1:]):
    sys.exit(print(__doc__.strip()))

PRECISIONS = {"FLOAT32": "fp32", "TF32": "tf32", "BFLOAT16": "bf16"}  # ours, PyTorch's name
BATCHES = ("4096", "65536")
STEPS = [f"step.{batch}.{precision}" for batch in BATCHES for precision in PRECISIONS]
FAST_STEPS = [f"fast.65536.FLOAT32.fused_{fused}.shards_{shards}"
              for shards in (1, 8, 64) for fused in ("true", "false")]
SANITIZERS = ["memcheck", "racecheck", "initcheck", "synccheck"]
# Racecheck makes cuBLAS's kernels fault (gpu_check.sh); no other kernels of this test share memory.
LEFT_OUT = {"racecheck": ("matmul_test",)}
PARTS = {
    "reference": ["reference"],
    "tests": ["test", "training", "nccl"],
    "speed": ["floor", "embedding", *STEPS, *FAST_STEPS, "torch_embedding", "torch_step"],
    **{tool: [tool] for tool in SANITIZERS},
}
TRAININGS = ["cuda", "cuda_predictions", "cuda_tf32", "cuda_bfloat16", "cuda_no_overlap",
             "cuda_2_ranks"]
PHASES = ("lookup", "compute", "reduce", "route_gradients", "scalars", "update")
AUC_TOLERANCE = 1e-4
# Absolute tolerance of a probability: a few roundings of its logit in float.
PREDICTION_TOLERANCE = 1e-5

# The layers of RankElastor with the paper's Criteo settings (docs/reference/models.md): how many there are,
# and of a sample multiply-adds, features in, features out. The head's one output is not a product
# of matrices.
LAYERS = {"tokenizer": (1, 20_280, 780, 390), "mixing": (2, 152_100, 390, 390),
          "up_proj": (2, 60_840, 390, 2340), "down_proj": (2, 30_420, 1170, 390),
          "shortcut": (2, 10_140, 390, 390)}
# Those that are one kernel forward and one backward, with the gate between them.
GATED_NETWORK = ("up_proj", "down_proj", "shortcut")
# Embeddings, a sample: 26 ids, rows of 20 read, activations written, and their gradients read.
EMBEDDING_BYTES = 26 * (4 + 3 * 4 * 20)


class Report:
    def __init__(self, call, folder, values):
        self.call = call
        self.folder = folder  # of all calls
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

    def expect(self, what, holds, found):
        """found: None when it is missing, which is a failure as any other."""
        good = found is not None and holds
        self.failed |= not good
        self.verdicts.append(f"{what}: {'yes' if good else 'NO'} "
                             f"({'missing' if found is None else found})")

    def goal(self, what, value, holds):
        found = "not measured" if value is None else \
            f"{'reached' if holds(value) else 'NOT reached'} ({value:.4g})"
        self.verdicts.append(f"goal: {what}: {found}")


def ratio(a, b):
    return None if a is None or b is None or b == 0 else a / b


def difference(a, b):
    return None if a is None or b is None else abs(a - b)


def expect_parts(report):
    for part in PARTS[report.call]:
        found = report.values.get(f"part.{part}")
        report.expect(f"part {part} ended well", found == "ok", found)


def expect_device_tests(report, names, prefixes):
    """Every device test of the release, by name, under every prefix."""
    report.expect("device tests are in the release", len(names) > 0, f"{len(names)} of them")
    ends = {"0": None, "77": "no test of it ran", "124": "did not end in its time",
            "137": "did not end in its time", None: "did not start"}
    for prefix in prefixes:
        good = 0
        for name in names:
            code = report.values.get(f"{prefix}.{name}")
            if code is None and os.path.exists(
                    os.path.join(report.folder, report.call, f"{prefix}.{name}.log")):
                code = "124"
            end = ends.get(code, f"failed with {code}")
            if end is None:
                good += 1
            else:
                report.verdicts.append(f"  {prefix}: {name} {end}")
        report.expect(f"{prefix}: every device test ran and passed", good == len(names),
                      f"{good} of {len(names)}")


def read_predictions(folder, *path):
    try:
        with open(os.path.join(folder, *path, "predictions.csv"), newline="") as file:
            return [(row["index"], float(row["probability"])) for row in csv.DictReader(file)]
    except (OSError, KeyError, TypeError, ValueError):  # not there, or of another form, or cut off
        return None


def expect_trainings(report):
    for name in TRAININGS:
        found = report.values.get(f"training.{name}.code")
        report.expect(f"training {name} ended well", found == "0", found)
    reference = read_values(os.path.join(report.folder, "reference", "results.txt"))
    for key in ("auc", "logloss", "state_digest"):
        if (value := reference.get(f"reference.cpu.{key}")) is not None:
            report.values[f"reference.cpu.{key}"] = value
    for name in ("cuda", "cuda_tf32", "cuda_bfloat16"):
        report.add(f"auc_difference.{name}", difference(report.number("reference.cpu.auc"),
                                                        report.number(f"training.{name}.auc")))
    found = report.number("auc_difference.cuda")
    report.expect(f"FP32: AUC within {AUC_TOLERANCE:g} of the CPU's",
                  found is not None and found <= AUC_TOLERANCE, found)
    expected = read_predictions(report.folder, "reference", "cpu_predictions")
    predicted = read_predictions(report.folder, "tests", "cuda_predictions")
    largest = None
    if expected and predicted and [i for i, _ in expected] == [i for i, _ in predicted]:
        gaps = [abs(a - b) for (_, a), (_, b) in zip(expected, predicted)]
        largest = max(gaps) if all(gap == gap for gap in gaps) else float("nan")
    report.expect(f"the CPU's model predicts within {PREDICTION_TOLERANCE:g} of the CPU",
                  largest is not None and largest <= PREDICTION_TOLERANCE, largest)
    for one, other in (("training.cuda", "training.cuda_no_overlap"),
                       ("training.cuda", "training.cuda_2_ranks"),
                       ("nccl.one_rank", "nccl.two_ranks")):
        digests = [report.values.get(f"{name}.state_digest") for name in (one, other)]
        report.expect(f"same bits: {one} and {other}", digests[0] == digests[1],
                      None if None in digests else " ".join(digests))
    for ranks in (2, 3):
        found = report.values.get(f"nccl.ranks{ranks}")
        report.expect(f"NCCL's tests on {ranks} ranks passed", found == "0", found)


def read_peers(folder):
    """{(mode, precision, batch): samples/s} and the embedding's lines."""
    steps, embedding = {}, {}
    for log in ("torch_step", "torch_embedding"):
        path = os.path.join(folder, log + ".log")
        if not os.path.exists(path):
            continue
        with open(path, errors="replace") as file:
            for line in file:
                pairs = dict(re.findall(r"(\w+)=(\S+)", line))
                if line.startswith("mode="):
                    key = (pairs["mode"], pairs["precision"], pairs["batch"])
                    steps[key] = float(pairs["samples_per_s"])
                elif line.startswith("peer="):
                    name = f"{pairs['peer']}.{pairs['pass']}.k{pairs['width']}"
                    embedding[name] = float(pairs["useful_gb_per_s"])
    return steps, embedding


def floor_ms(batch, tflops, gb_per_s, activation_bytes):
    """(dense, embeddings): every product, forward and both of backward, at the measured rate of
    products or at the time that reading its operands and writing its result once takes, whichever
    is longer; and the embeddings' bytes. Nothing for what lies between the products."""
    dense = 0
    for count, multiply_adds, features_in, features_out in LAYERS.values():
        bytes_moved = (features_in + features_out) * activation_bytes
        dense += 3 * count * max(2 * multiply_adds / (tflops * 1e12),
                                 bytes_moved / (gb_per_s * 1e9))
    return batch * dense * 1e3, batch * EMBEDDING_BYTES / (gb_per_s * 1e9) * 1e3


def product_times(report, precision, layers):
    """Total ms of forward, dX and dW of all layers named; None where one is missing."""
    times = [report.number(f"floor.{layer}_{kind}.{precision}_ms")
             for layer in layers for kind in ("forward", "dx", "dw")]
    counts = [LAYERS[layer][0] for layer in layers for _ in range(3)]
    return None if None in times else sum(count * ms for count, ms in zip(counts, times))


def by_products(report, precision):
    """Whether the device has no room for the per-token network as one kernel."""
    return report.values.get(f"floor.gated_network.{precision}") == "by_products"


def network_times(report, name, precision):
    """Total ms of forward and backward of every block's network or gate; None where one is missing."""
    times = [report.number(f"floor.{name}_{kind}.{precision}_ms")
             for kind in ("forward", "backward")]
    return None if None in times else LAYERS["up_proj"][0] * sum(times)


def explain_step(report, name, batch, precision):
    """Where a step's time goes, beside its floor."""
    step = report.number(f"{name}.ms_per_step")
    rate = report.number(f"floor.{precision.lower()}_tflops")
    copy = report.number("floor.device_copy_gb_per_s")
    phases = {phase: report.number(f"{name}.{phase}_ms") for phase in PHASES}
    if None in (step, rate, copy) or None in phases.values():
        return
    dense, embedding = floor_ms(int(batch), rate, copy, 2 if precision == "BFLOAT16" else 4)
    report.add(f"{name}.floor_ms", dense + embedding)
    report.add(f"{name}.times_floor", step / (dense + embedding))
    losses = {"compute": phases["compute"] - dense,
              "lookup, route_gradients and update":
                  phases["lookup"] + phases["route_gradients"] + phases["update"] - embedding,
              "reduce and scalars": phases["reduce"] + phases["scalars"],
              "waiting for the host and for ids": step - sum(phases.values())}
    if batch == "65536":
        if by_products(report, precision):
            parts = [product_times(report, precision, LAYERS)]
        else:
            parts = [product_times(report, precision,
                                   [layer for layer in LAYERS if layer not in GATED_NETWORK]),
                     network_times(report, "gated_network", precision)]
        if None not in parts:
            alone = sum(parts)
            report.add(f"{name}.products_ms", alone)
            losses["products above their floor"] = alone - dense
            losses["compute between products"] = phases["compute"] - alone
            del losses["compute"]
    told = ", ".join(f"{what} {ms:.3f}" for what, ms in
                     sorted(losses.items(), key=lambda item: -item[1]))
    report.verdicts.append(f"{name}: {step:.3f} ms, floor {dense + embedding:.3f}; "
                           f"above it, largest first: {told}")


def judge_speed(report):
    steps, embedding = read_peers(os.path.join(report.folder, "speed"))
    for key, rate in steps.items():
        report.values["torch." + ".".join(key) + ".samples_per_s"] = f"{rate:.0f}"
    copy = report.number("floor.device_copy_gb_per_s")
    for name, rate in embedding.items():
        report.add(f"torch_embedding.{name}.share", ratio(rate, copy))
    for name in (*STEPS, *FAST_STEPS):
        times = [report.number(f"{name}.{key}_ms") for key in PHASES]
        times.append(report.number(f"{name}.ms_per_step"))
        times.append(report.number(f"{name}.samples_per_s"))
        report.expect(f"{name} has its times", True, None if None in times else "all")
    for precision in PRECISIONS:
        if by_products(report, precision):
            report.verdicts.append(f"{precision}: the device has no room for the per-token network "
                                   "as one kernel")
            continue
        network = network_times(report, "gated_network", precision)
        report.expect(f"the {precision} per-token network was timed", True, network)
        parts = [product_times(report, precision, GATED_NETWORK),
                 network_times(report, "gate", precision)]
        gate_and_products = None if None in parts else sum(parts)
        report.expect(f"its {precision} products and gate were timed", True, gate_and_products)
        report.add(f"gated_network.{precision}.times_its_products",
                   ratio(network, gate_and_products))
    for mode in ("eager", "compile"):
        for ours, theirs in PRECISIONS.items():
            rate = steps.get((mode, theirs, "4096"))
            report.expect(f"PyTorch {mode} {theirs} at 4,096 was measured", True, rate)
            report.add(f"step.4096.{ours}.times_torch_{mode}",
                       ratio(report.number(f"step.4096.{ours}.samples_per_s"), rate))
    for batch in BATCHES:
        for precision in PRECISIONS:
            explain_step(report, f"step.{batch}.{precision}", batch, precision)
    for precision in PRECISIONS:
        for mode, times in (("eager", 10), ("compile", 2.5)):
            report.goal(f"batch 4,096 {precision}: at least {times} times PyTorch {mode}",
                        report.number(f"step.4096.{precision}.times_torch_{mode}"),
                        lambda r, times=times: r >= times)
        report.goal(f"batch 65,536 {precision}: at most 1.5 times the floor",
                    report.number(f"step.65536.{precision}.times_floor"), lambda r: r <= 1.5)
    fast = [report.number(f"{name}.samples_per_s") for name in FAST_STEPS]
    report.add("step.65536.reproducible_costs",
               None if None in fast
               else ratio(max(fast), report.number("step.65536.FLOAT32.samples_per_s")))
    report.goal("batch 65,536: reproducible at most 5 % slower than the best fast mode",
                report.number("step.65536.reproducible_costs"), lambda r: r <= 1.05)
    for width, goals in (("128", (0.65, 0.57)), ("16", (0.45, 0.35))):
        for part, share in zip(("forward", "backward"), goals):
            report.goal(f"embedding k {width} {part}: at least {share:.0%} of the copy's bandwidth",
                        report.number(f"embedding.float32_width_{width}_{part}_useful_share"),
                        lambda found, share=share: found >= share)


def read_values(path):
    values = {}
    with open(path) as file:
        for line in file:
            name, separator, value = line.strip().partition("=")
            if separator:
                values[name] = value
    return values


def read_names(path):
    try:
        with open(path) as file:
            return file.read().split()
    except OSError:
        return []


def main(call, folder, tests):
    path = os.path.join(folder, call, "results.txt")
    report = Report(call, folder, read_values(path))
    expect_parts(report)
    if call == "reference":
        for name in ("cpu", "cpu_predictions"):
            found = report.values.get(f"reference.{name}.code")
            report.expect(f"{name} ended well", found == "0", found)
    elif call == "tests":
        expect_device_tests(report, read_names(tests), ["test"])
        expect_trainings(report)
    elif call == "speed":
        judge_speed(report)
    else:
        left_out = LEFT_OUT.get(call, ())
        expect_device_tests(report, [name for name in read_names(tests) if name not in left_out],
                            [call])
    lines = [f"{name}={value}" for name, value in report.values.items()] + report.verdicts
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
