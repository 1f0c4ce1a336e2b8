#!/usr/bin/env python3
"""What the compiler makes of every kernel, and whether it keeps the limits below.

    kernel_resources_test.py REPORT...

Reads the reports of kernel_reports (third_party/cuda/defs.bzl) and prints a line for every kernel:
the largest registers of a thread, bytes of its stack and of spilled registers, and static shared
memory of a block over the compiled architectures; then of the intermediate code how many
instructions compute in doubles, how many are fused multiply-adds of floats, how many are products
of tensor cores, and how many of the accesses to global and to shared memory take 16 bytes.
Instructions are counted as they are written: unrolled loops count as often as they are unrolled."""

import re
import subprocess
import sys

FIELDS = ("registers", "stack", "spilled", "shared", "doubles", "fmas", "mmas", "global_accesses",
          "wide_global", "shared_accesses", "wide_shared")
# At most, of every kernel: nothing spilled, nothing on a stack, no doubles.
LIMITS = {"spilled": 0, "stack": 0, "doubles": 0}
# Where more is meant: a pattern of the whole name, the limits, why.
EXCEPTIONS = [
    (r"BackwardKernel<\d+>", {"stack": 384}, "sums of 1, 2 and 4 chains wait for their neighbours"),
    (r"FoldStepsKernel", {"stack": 128}, "the tree's open nodes"),
    (r"(FoldNodesKernel|SumSegmentsKernel)<.*>", {"stack": 696, "spilled": 52},
     "the tree's open nodes, whose index is spilled"),
    (r"Attention(Forward|QueriesBackward)Kernel<.*>", {"stack": 16}, "a block of random words"),
    (r"FinishKernel", {"stack": 80, "doubles": 6}, "one block a step: exact sums"),
    (r"BatchLossesKernel", {"stack": 176, "doubles": 17}, "one thread a step: exact sums"),
    # The compiler spills some bytes rather than lose a block at a time.
    (r"ElementKernel<2, 4, GatedSumUnitBackwardOp<.*> >", {"stack": 8, "spilled": 8}, "4 blocks"),
    (r"ElementKernel<4, 2, InteractionOp<float> >", {"stack": 16, "spilled": 36}, "5 blocks"),
    (r"NormBackwardKernel<BFloat16, 16, 1>", {"stack": 8, "spilled": 16}, "128 registers"),
    (r"SumLeavesKernel<4>", {"stack": 8, "spilled": 16}, "8 blocks"),
    (r"AddSquaresKernel<.*, 4, false>", {"stack": 48, "spilled": 144, "doubles": 24},
     "3 blocks; squares are summed in doubles"),
    (r"AddUntouchedSquaresKernel<4>", {"stack": 16, "spilled": 50, "doubles": 48},
     "4 blocks; squares are summed in doubles"),
    (r"(AddSquaresKernel|AddUntouchedSquaresKernel)<.*>", {"doubles": 48},
     "squares are summed in doubles"),
    (r"AddL2Kernel", {"doubles": 50}, "squares are summed in doubles"),
    (r"BceKernel", {"doubles": 5}, "a row's loss is a double; its logarithm is not"),
    (r"CrossEntropyKernel", {"doubles": 248},
     "the CPU's exponential of every class and logarithm of a row, in doubles"),
    (r"BatchNormBackwardKernel<.*>|StatisticsKernel<.*>|ScaleKernel|DeliverKernel",
     {"doubles": 35}, "means over rows are doubles"),
    (r"CreateAllRowsKernel|InitialiseRowsKernel|MakeForgottenRowsKernel", {"doubles": 96},
     "first values of a row are the CPU's, from a logarithm, a sine and a cosine in doubles"),
    (r"UpdateRowsKernel<elastor::RowWiseAdagrad<float>, .*>", {"doubles": 3},
     "a row's sum of squares comes as a double"),
]
# At least: the per-token network reads its weights by 16 bytes, its loops over a row unrolled, or has
# its products from tensor cores.
LEAST = [(r"(Forward|Backward)Kernel<\d+>", {"wide_shared": 24, "fmas": 280}),
         (r"TensorForwardKernel<.*>", {"mmas": 8}), (r"TensorBackwardKernel<.*>", {"mmas": 38})]


def kernels(report):
    """{mangled name: its numbers} of a .cu file."""
    if re.search(r"^\s*(\.visible )?\.func ", report, re.M):
        sys.exit("a kernel calls a function, whose instructions are not counted with it")
    found = {}
    for name, stack, stores, loads, registers, rest in re.findall(
            r"Compiling entry function '(\w+)' for 'sm_\d+'.*?(\d+) bytes stack frame, (\d+) bytes "
            r"spill stores, (\d+) bytes spill loads.*?Used (\d+) registers([^\n]*)", report, re.S):
        shared = re.search(r"(\d+) bytes smem", rest)
        numbers = {"registers": int(registers), "stack": int(stack),
                   "spilled": int(stores) + int(loads),
                   "shared": int(shared.group(1)) if shared else 0}
        for field, value in numbers.items():
            numbers[field] = max(value, found.get(name, {}).get(field, 0))
        found[name] = numbers
    counted = dict(re.findall(r"\.entry (\w+)\(.*?\n\{\n(.*?)\n\}\n", report, re.S))
    if found.keys() != counted.keys():
        sys.exit(f"kernels of the assembler {sorted(found)}; expected {sorted(counted)}")
    for name, body in counted.items():
        def count(pattern):
            return len(re.findall(pattern, body))
        found[name].update(
            doubles=count(r"\b(?:add|sub|mul|fma|div|sqrt|rcp|ex2|lg2)\.[a-z.]*f64"),
            fmas=count(r"\bfma\.[a-z.]*f32"),
            mmas=count(r"\bmma\.sync\."),
            global_accesses=count(r"\b(?:ld|st)\.global"),
            wide_global=count(r"\b(?:ld|st)\.global[a-z.]*\.(?:v4\.[bfu]32|v2\.[bfu]64)"),
            shared_accesses=count(r"\b(?:ld|st)\.shared"),
            wide_shared=count(r"\b(?:ld|st)\.shared[a-z.]*\.(?:v4\.[bfu]32|v2\.[bfu]64)"))
    return found


def short_names(names):
    """Demangled, without namespaces, result and arguments."""
    text = subprocess.run(["c++filt", "--no-params"], input="\n".join(names), text=True,
                          capture_output=True, check=True).stdout.splitlines()
    return [re.sub(r"elastor::cuda::|\(anonymous namespace\)::|^void ", "", name) for name in text]


def broken_limits(kernel, numbers):
    own = [limits for pattern, limits, _ in EXCEPTIONS if re.fullmatch(pattern, kernel)]
    most = {**LIMITS, **(own[0] if own else {})}
    least = {field: limit for pattern, limits in LEAST if re.fullmatch(pattern, kernel)
             for field, limit in limits.items()}
    return [f"{kernel}: {field} {numbers[field]}; expected at most {limit}"
            for field, limit in most.items() if numbers[field] > limit] + \
           [f"{kernel}: {field} {numbers[field]}; expected at least {limit}"
            for field, limit in least.items() if numbers[field] < limit]


def main():
    if not sys.argv[1:] or {"-h", "--help"} & set(sys.argv[1:]):
        sys.exit(__doc__.strip())
    broken, seen = [], []
    print(",".join(("file", "kernel", *FIELDS)))
    for path in sorted(sys.argv[1:]):
        with open(path) as file:
            found = kernels(file.read())
        # CUB's, in sort_device.cu, are not ours.
        own = [name for name in found if "7elastor" in name and not name.startswith("_ZN3cub")]
        source = re.sub(r".*/_cuda/\w+/|\.report$", "", path)
        for kernel, name in sorted(zip(short_names(own), own)):
            print(",".join((source, f'"{kernel}"', *(str(found[name][field]) for field in FIELDS))))
            broken += broken_limits(kernel, found[name])
            seen.append(kernel)
    broken += [f"'{pattern}': no kernel is called so" for pattern, *_ in EXCEPTIONS + LEAST
               if not any(re.fullmatch(pattern, kernel) for kernel in seen)]
    print(f"{len(seen)} kernels, {len(broken)} limits broken", *broken, sep="\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
