#!/usr/bin/env python3
"""Measures this program's training step and its peers' in turn and prints the tables of
tools/peers/cpu.sh, which calls it and says what the flags mean.

Every peer is a process that waits for its turn (--serve of torch_train_step.py and
torch_embedding.py); ours is a run of its benchmark for every turn. A round is one turn of each, in
an order that is reversed from round to round. A ratio is that of two turns of the same round.
"""

import argparse
import collections
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
CONFIGS = os.path.join(FOLDER, "../../configs/criteo")
# What a recipe puts into the optimizer of an experiment of configs/criteo, in place of such lines.
RECIPES = {
    "dense": "sparse: DENSE_ADAM embedding_l2: 1e-5 clip_norm: 10",
    "lazy": "sparse: LAZY_ADAM clip_norm: 10",
    "row_wise": "sparse: ROW_WISE_ADAGRAD"}
# The recipe that a peer's step follows; torch_train_step.py's help says how.
STEP_PEERS = {"eager": "lazy", "compile": "lazy", "fuxictr": "dense", "torchrec": "row_wise"}
TITLES = {"rank_elastor": "RankElastor", "rank_mixer": "RankMixer", "mlp": "MLP", "dcn_v2": "DCNv2",
          "x_deep_fm": "xDeepFM", "auto_int": "AutoInt", "wukong": "Wukong", "dlrm": "DLRM",
          "lr": "LR", "fm": "FM", "fw_fm": "FwFM", "wide_and_deep": "Wide and Deep",
          "deep_fm": "DeepFM", "nfm": "NFM", "ipnn": "IPNN", "dcn": "DCN", "mask_net": "MaskNet",
          "final_mlp": "FinalMLP", "token_mixer_large": "TokenMixer-Large",
          "uni_mixer": "UniMixer", "one_trans": "OneTrans"}
DEFAULT_MODELS = list(TITLES)[:8]
FRAMEWORK_MODELS = list(TITLES)[:4]  # that stand beside FuxiCTR and TorchRec, too
# 26 tables of 77,000 rows and 4,096 samples a batch; WIDTHxIDS_OF_A_BAG.
EMBEDDINGS = [f"{width}x{pooling}" for width in (16, 20, 64, 128) for pooling in (1, 20, 80)]
EMBEDDING_BATCH, TABLES, TABLE_ROWS = 4096, 26, 77_000
# {ours: (the peer's, slots of a row of a width)}
OPTIMIZERS = {"row_wise_adagrad": ("row_wise_adagrad", lambda width: 1),
              "sgd": ("sgd", lambda width: 0),
              "adagrad": ("adagrad", lambda width: width),
              "lazy_adam": ("adam", lambda width: 2 * width)}
STEPS_TO_FALL = 10  # Adam's first steps may raise the loss
MISSING_VECTORS = 13 * 20  # of numeric fields: FuxiCTR has none

# As an expert would run PyTorch on a CPU: freed memory stays with the process, in huge pages.
# Without it the pages of activations are faulted in anew at every operation.
PEER_ENVIRONMENT = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "8000000000", "MALLOC_TOP_PAD_": "268435456",
    "CUDA_VISIBLE_DEVICES": ""}


class LeftOut(Exception):
    pass


def pairs(text):
    return dict(re.findall(r"(\w+)=(\S+)", text))


def available_bytes():
    with open("/proc/meminfo") as file:
        return 1024 * int(re.search(r"MemAvailable: +(\d+)", file.read())[1])


class Peer:
    """A process that runs batches on request."""

    def __init__(self, program, arguments, threads, batch, options, python=sys.executable):
        # More memory than there is ends the peer, not another process.
        limit = available_bytes() - 2**30
        self.batch, self.steps, self.taken = batch, 1, 0
        self.process = subprocess.Popen(
            ["taskset", "-c", options.cpu, python, os.path.join(FOLDER, program),
             "--serve", *arguments, *(["--wall"] if options.threads > 1 else [])],
            env=os.environ | PEER_ENVIRONMENT | {"OMP_NUM_THREADS": str(threads)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=options.log, text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
        try:
            self.ready = self.answer()
            self.last = self.request()
            seconds = float(self.last["seconds"])
            self.steps = max(1, round(options.turn_seconds / seconds))
        except LeftOut:
            self.close()
            raise

    def answer(self):
        for line in self.process.stdout:
            if line.startswith(("ready", "seconds=")):
                return pairs(line)
        raise LeftOut(f"its process ended with {self.process.wait()}")

    def request(self):
        self.process.stdin.write(f"{self.steps}\n")
        self.process.stdin.flush()
        self.taken += self.steps
        return self.answer()

    def turn(self):
        """Samples a second."""
        self.last = self.request()
        return self.batch / float(self.last["seconds"])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Ours:
    """A benchmark program; rate takes its values to samples a second."""

    def __init__(self, command, steps_flag, batch, rate, options):
        self.command = ["taskset", "-c", options.cpu, *command]
        self.steps_flag, self.rate, self.steps = steps_flag, rate, 1
        self.log = options.log
        self.steps = max(1, round(options.turn_seconds * self.turn() / batch))

    def turn(self):
        run = subprocess.run([*self.command, f"--{self.steps_flag}={self.steps}"], text=True,
                             stdout=subprocess.PIPE, stderr=self.log)
        if run.returncode != 0:
            raise LeftOut(f"{self.command[3]} ended with {run.returncode}")
        self.last = pairs(run.stdout)
        return self.rate(self.last)

    def close(self):
        pass


def rounds(runners, count):
    """{name: samples a second of every round}, empty for other names."""
    rates = collections.defaultdict(list)
    for i in range(count):
        for name in sorted(runners, key=list(runners).index, reverse=i % 2 == 1):
            rates[name].append(runners[name].turn())
    return rates


def start(what, make, options):
    """The runners of `make`, {name: function}, without those that cannot run."""
    runners = {}
    for name, function in make.items():
        try:
            runners[name] = function()
        except LeftOut as reason:
            print(f"left out: {what} {name}: {reason}", file=sys.stderr, flush=True)
    return runners


def rate_cell(rates, name):
    return f"{statistics.median(rates[name]):,.0f}" if rates[name] else ""


def ratio_cell(rates, ours, other):
    """Median of the rounds' ratios and, of three rounds and more, their quartiles."""
    if not (rates[ours] and rates[other]):
        return ""
    ratios = [a / b for a, b in zip(rates[ours], rates[other])]
    if len(ratios) < 3:
        return f"{statistics.median(ratios):.2f}"
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return f"{median:.2f} ({low:.2f}–{high:.2f})"


def write_experiments(model, folder):
    with open(os.path.join(CONFIGS, f"{model}.textproto")) as file:
        text = file.read()
    text = re.sub(r"\b(sparse|embedding_l2|dense_l2|clip_norm): \S+", "", text)
    for recipe, lines in RECIPES.items():
        changed, count = re.subn(r"^optimizer \{", f"optimizer {{ {lines}", text, flags=re.M)
        assert count == 1, model
        with open(os.path.join(folder, f"{model}.{recipe}"), "w") as file:
            file.write(changed)


def check_model(model, name, peer, options):
    """The peer's counts are those of our model, and its loss fell if it had time to."""
    described = subprocess.run(
        [os.path.join(options.programs, "trainer"), "--mode=describe",
         f"--experiment={options.folder}/{model}.lazy"],
        stdout=subprocess.PIPE, stderr=options.log, text=True, check=True)
    ours = json.loads(described.stdout)
    parameters = ours["dense_parameters"] - (MISSING_VECTORS if name == "fuxictr" else 0)
    for what, expected, found in (
            ("dense parameters", parameters, peer.ready["dense_parameters"]),
            ("multiply-adds", ours["multiply_adds_per_sample_forward"],
             peer.ready["multiply_adds"])):
        if expected != int(found):
            sys.exit(f"{model} {name}: {found} {what}; ours has {expected}")
    before, after = float(peer.ready["loss"]), float(peer.last["loss"])
    print(f"{model} {name}: loss {before:.4f} to {after:.4f}", file=sys.stderr)
    if peer.taken >= STEPS_TO_FALL and not after < before:
        sys.exit(f"{model} {name}: the loss did not fall, {before} to {after}")


def step_runners(model, batch, options):
    distinct = 4 if batch < 65536 else 2
    rate = "samples_per_s" if options.threads == 1 else "wall_samples_per_s"

    def ours(recipe):
        program = os.path.join(options.programs, "train_step_benchmark")
        return lambda: Ours(
            [program, f"--experiment={options.folder}/{model}.{recipe}", f"--batch={batch}",
             f"--batches={distinct}", f"--threads={options.threads}"], "steps", batch,
            lambda values: float(values[rate]), options)

    def peer(mode, threads):
        return lambda: Peer(
            "torch_train_step.py",
            ["--device=cpu", "--precisions=fp32", f"--models={model}", f"--modes={mode}",
             "--embedding_optimizers=sparse", f"--batches={batch}", f"--distinct={distinct}"],
            threads, batch, options)

    chosen = [name for name in STEP_PEERS if name in options.peers
              and (model in FRAMEWORK_MODELS or name in ("eager", "compile"))]
    recipes = {STEP_PEERS[name] for name in chosen} | {"lazy"}
    make = {recipe: ours(recipe) for recipe in RECIPES if recipe in recipes}
    for name in chosen:
        for threads in sorted({1, options.threads}):
            make[f"{name}:{threads}"] = peer(name, threads)
    return make


def measure_steps(model, batch, options):
    what = f"{model} {batch}"
    runners = start(what, step_runners(model, batch, options), options)
    rates = rounds(runners, max(1, options.rounds // 3) if batch >= 65536 else options.rounds)
    for name, runner in runners.items():
        if isinstance(runner, Peer):
            check_model(model, name.split(":")[0], runner, options)
        runner.close()
    print(f"{what}: " + " ".join(f"{name}={statistics.median(r):.0f}"
                                 for name, r in rates.items()), file=sys.stderr, flush=True)
    for name in STEP_PEERS:
        rates[name] = rates[best(rates, [f"{name}:{n}" for n in (1, options.threads)])]
    return rates


def best(rates, names):
    """The fastest of `names` that were measured; "" stands for none."""
    return max((name for name in names if rates[name]),
               key=lambda name: statistics.median(rates[name]), default="")


def versions_of(python):
    """The versions of the peers that an environment holds."""
    script = """import importlib.metadata as m
for p in ("torch", "fuxictr", "torchrec", "fbgemm-gpu-cpu"):
    try: print(p, m.version(p))
    except m.PackageNotFoundError: pass"""
    lines = subprocess.run([python, "-c", script], stdout=subprocess.PIPE, text=True, check=True)
    return dict(line.split() for line in lines.stdout.splitlines())


def print_setting(options):
    with open("/proc/cpuinfo") as file:
        cpu = re.search(r"model name\s*: (.*)", file.read())[1]
    environments = [sys.executable, *filter(None, [options.other_python])]
    versions = [" ".join(f"{p} {v}," for p, v in versions_of(python).items()).rstrip(",")
                for python in environments]
    clock = "CPU time" if options.threads == 1 else "wall time"
    print(f"{cpu}, cores {options.cpu}, {clock}, {options.rounds} rounds; {'; and '.join(versions)}",
          flush=True)


def print_table(columns, rows):
    print("\n| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    print("\n".join("| " + " | ".join(row) + " |" for row in rows), flush=True)


def print_steps(options):
    torch, fuxictr, torchrec = [], [], []
    for model in options.models:
        for batch in options.batches:
            rates = measure_steps(model, batch, options)
            shape = [TITLES[model], f"{batch:,}"]
            torch.append(shape + [rate_cell(rates, name) for name in ("lazy", "eager", "compile")]
                         + [ratio_cell(rates, "lazy", best(rates, ["eager", "compile"]))])
            if model not in FRAMEWORK_MODELS:
                continue
            fuxictr.append(shape + [rate_cell(rates, n) for n in ("dense", "lazy", "fuxictr")]
                           + [ratio_cell(rates, name, "fuxictr") for name in ("dense", "lazy")])
            torchrec.append(shape + [rate_cell(rates, name) for name in ("row_wise", "torchrec")]
                            + [ratio_cell(rates, "row_wise", "torchrec")])
    if {"eager", "compile"} & set(options.peers):
        print_table(["model", "batch", "lazy Adam, samples/s", "PyTorch eager", "compiled",
                     "ratio to the better"], torch)
    if "fuxictr" in options.peers:
        print_table(["model", "batch", "dense Adam, samples/s", "lazy Adam", "FuxiCTR",
                     "dense to FuxiCTR", "lazy to FuxiCTR"], fuxictr)
    if "torchrec" in options.peers:
        print_table(["model", "batch", "row-wise Adagrad, samples/s", "TorchRec", "ratio"],
                    torchrec)


def embedding_runners(width, pooling, optimizer, options):
    """Ours, also with uniform ids, and FBGEMM of every environment."""
    shape = [f"--rows={TABLE_ROWS}", f"--pooling={pooling}"]
    program = os.path.join(options.programs, "embedding_benchmark")
    peer_optimizer, _ = OPTIMIZERS[optimizer]

    def ours(zipf):
        return lambda: Ours(
            [program, *shape, f"--width={width}", f"--tables={TABLES}",
             f"--batch_size={EMBEDDING_BATCH}", "--different_batches=4", f"--zipf_exponent={zipf}",
             f"--optimizer={optimizer}", f"--threads={options.threads}"], "batches",
            EMBEDDING_BATCH, lambda v: 1e6 / float(v[f"{optimizer}_total_us"]), options)

    def fbgemm(python):
        return lambda: Peer(
            "torch_embedding.py",
            ["--peers=fbgemm", *shape, f"--widths={width}", f"--bags={EMBEDDING_BATCH}",
             "--zipf=1.05", f"--optimizer={peer_optimizer}"], options.threads, EMBEDDING_BATCH,
            options, python)

    make = {"ours": ours(1.05), "uniform": ours(0)}
    for name, python in options.fbgemms.items():
        make[name] = fbgemm(python)
    return start(f"k {width}, {pooling} a bag, {optimizer}", make, options)


def gigabytes(width, pooling, optimizer, values, rate):
    """Useful bytes a second, and the share of the triad's that the same run measured: every id's
    row forward, and the different rows with their slots, read and written."""
    _, slots = OPTIMIZERS[optimizer]
    row = 4 * (width + slots(width))
    sample = TABLES * pooling * 4 * width + 2 * float(values["unique_rows"]) * row
    gb = sample * rate / 1e9
    return f"{gb:.1f}", f"{gb / float(values['triad_gb_per_s']):.2f}"


def print_embeddings(options):
    lines = []
    for shape in options.embeddings:
        width, pooling = map(int, shape.split("x"))
        for optimizer in options.optimizers:
            runners = embedding_runners(width, pooling, optimizer, options)
            rates = rounds(runners, options.rounds)
            share = ("", "")
            if rates["uniform"]:
                share = gigabytes(width, pooling, optimizer, runners["uniform"].last,
                                  statistics.median(rates["uniform"]))
            for runner in runners.values():
                runner.close()
            lookups = collections.defaultdict(list)
            for name, samples in rates.items():
                lookups[name] = [rate * TABLES * pooling for rate in samples]
            lines.append([f"k {width}, {pooling} a bag", optimizer, rate_cell(lookups, "ours"),
                          *[rate_cell(lookups, name) for name in options.fbgemms],
                          ratio_cell(rates, "ours", best(rates, options.fbgemms)), *share])
            print(" | ".join(lines[-1]), file=sys.stderr, flush=True)
    print_table(["embeddings", "optimizer", "lookups/s", *options.fbgemms, "ratio to the faster",
                 "uniform ids, GB/s", "share of the triad"], lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--models", default=",".join(DEFAULT_MODELS), help=",".join(TITLES))
    parser.add_argument("--batches", default="256,1024,4096,65536")
    parser.add_argument("--peers", default="eager,compile,fuxictr,torchrec,fbgemm")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cpu", default=str(os.cpu_count() - 1))
    parser.add_argument("--embeddings", default=",".join(EMBEDDINGS))
    parser.add_argument("--optimizers", default=",".join(OPTIMIZERS))
    parser.add_argument("--other_python", default="",
                        help="of an environment with another version of FBGEMM")
    parser.add_argument("--log", default=os.devnull, help="of what the programs say beside figures")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.models, options.batches, options.rounds = "rank_elastor", "1024", 3
        options.embeddings, options.optimizers = EMBEDDINGS[0], next(iter(OPTIMIZERS))
    options.models, options.peers = options.models.split(","), options.peers.split(",")
    for model in options.models:
        if model not in TITLES:
            parser.error(f"--models: {model}; expected some of {','.join(TITLES)}")
    for name in ("trainer", "train_step_benchmark", "embedding_benchmark"):
        if not os.path.isfile(os.path.join(options.programs, name)):
            parser.error(f"--programs: {options.programs} has no {name}")
    options.batches = [int(batch) for batch in options.batches.split(",")]
    options.embeddings = options.embeddings.split(",")
    options.optimizers = options.optimizers.split(",")
    options.threads = len(options.cpu.split(","))
    options.fbgemms = {}
    for python in filter(None, [sys.executable, options.other_python]):
        version = versions_of(python).get("fbgemm-gpu-cpu")
        if version:
            options.fbgemms[f"FBGEMM {version}"] = python
    options.turn_seconds = 1.0
    with tempfile.TemporaryDirectory() as options.folder, open(options.log, "a") as options.log:
        print_setting(options)
        for model in options.models:
            write_experiments(model, options.folder)
        if set(options.peers) - {"fbgemm"}:
            print_steps(options)
        if "fbgemm" in options.peers:
            print_embeddings(options)


if __name__ == "__main__":
    main()
