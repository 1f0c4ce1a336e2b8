#!/usr/bin/env python3
"""What the compiler makes of every kernel, and whether it keeps the limits below.

    kernel_resources_test.py REPORT...

Reads the reports of kernel_reports (third_party/cuda/defs.bzl) and prints a line for every kernel:
the largest registers of a thread, bytes of its stack and of spilled registers, and static shared
memory of a block over the compiled architectures; then of the intermediate code how many
instructions compute in doubles, how many are fused multiply-adds of floats, and how many of the
accesses to global and to shared memory take 16 bytes. Instructions are counted as they are written:
unrolled loops count as often as they are unrolled."""

import re
import subprocess
import sys

FIELDS = ("registers", "stack", "spilled", "shared", "doubles", "fmas", "global_accesses",
          "wide_global", "shared_accesses", "wide_shared")
# At most, of every kernel: nothing spilled, nothing on a stack, no doubles.
LIMITS = {"spilled": 0, "stack": 0, "doubles": 0}
# Where more is meant: a pattern of the whole name, the limits, why.
EXCEPTIONS = [
]
# At least: a pattern, the least share of the shared accesses that take 16 bytes.
WIDE = [(r"ForwardKernel<\d+>", 0.5)]


def kernels(report):
    """{mangled name: its numbers} of a .cu file."""
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
    limits = dict(LIMITS)
    for pattern, more, _ in EXCEPTIONS:
        if re.fullmatch(pattern, kernel):
            limits.update(more)
    return [f"{kernel}: {field} {numbers[field]}; expected at most {limit}"
            for field, limit in limits.items() if numbers[field] > limit]


def main():
    if not sys.argv[1:] or {"-h", "--help"} & set(sys.argv[1:]):
        sys.exit(__doc__.strip())
    broken, count = [], 0
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
            count += 1
    print(f"{count} kernels, {len(broken)} limits broken", *broken, sep="\n")
    return 1 if broken or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
