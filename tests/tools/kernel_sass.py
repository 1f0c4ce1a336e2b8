#!/usr/bin/env python3
"""The machine's own instructions of every kernel for compute capability 9.0, and whether they are
the ones that were meant.

    kernel_sass.py FILE...          # bazel-bin/trainer/trainer of --config=cuda, or objects

Prints a line for every kernel of ours: how many of its instructions load from global memory by 16,
by 8, by 4 and by fewer bytes a thread, from shared memory by 16 and otherwise, and store to global
memory; multiply and add floats; are products of tensor cores; compute in doubles; wait for the
block; and load from or store to a thread's stack. Instructions are counted as they are written:
unrolled loops count as often as they are unrolled. Fails where one of the limits below is broken.

Takes the cuobjdump that CUOBJDUMP names, else that of CUDA_HOME/bin, PATH or /usr/local/cuda/bin;
nvdisasm lies beside it. Exit code 77 where there is none."""

import os
import re
import shutil
import subprocess
import sys

from kernel_resources_test import EXCEPTIONS, short_names

ARCHITECTURE = "sm_90"
FIELDS = {  # in the order of the line: what an instruction begins with
    "ldg_128": r"LDG\.\S*\b128\b", "ldg_64": r"LDG\.\S*\b64\b", "ldg_32": r"LDG\b",
    "ldg_narrow": r"LDG\.\S*\b[US](?:8|16)\b", "lds_128": r"LDS\.\S*\b128\b", "lds_other": r"LDS",
    "stg": r"STG\b", "ffma": r"FFMA", "hmma": r"HMMA",
    "doubles": r"D(?:FMA|ADD|MUL)\b|MUFU\.\w*64H", "bar": r"BAR\b", "stack": r"LDL|STL"}
# A load of several widths is the first of these.
ORDER = sorted(FIELDS, key=lambda field: field in ("ldg_32", "lds_other"))
# Beside what the resources name: products of tensor cores are where they are meant and nowhere
# else, and FLOAT32's per-token network multiplies and adds, its weights read by 16 bytes.
LEAST = [(r"Tensor(Forward|Backward)Kernel<.*>", {"hmma": 8}),
         (r"(Forward|Backward)Kernel<\d+>", {"ffma": 280, "lds_128": 24})]


def find_cuobjdump():
    places = [os.environ.get("CUOBJDUMP")]
    if not places[0]:
        places = [os.environ.get("CUDA_HOME", "") + "/bin/cuobjdump", shutil.which("cuobjdump"),
                  "/usr/local/cuda/bin/cuobjdump"]
    return next((place for place in places if place and os.access(place, os.X_OK)), None)


def kernels(listing):
    """{mangled name: its numbers} of cuobjdump's listing."""
    found = {}
    for name, body in re.findall(r"^\s*Function : (\S+)\n(.*?)(?=^\s*Function : |\Z)", listing,
                                 re.S | re.M):
        numbers = dict.fromkeys(FIELDS, 0)
        for instruction in re.findall(r"^\s+/\*\w{4,}\*/\s+(?:@!?\w+\s+)?([A-Z][\w.]*)", body, re.M):
            field = next((f for f in ORDER if re.match(FIELDS[f], instruction)), None)
            if field is not None:
                numbers[field] += 1
        found[name] = numbers
    return found


def broken_limits(kernel, numbers):
    named = [limits for pattern, limits, _ in EXCEPTIONS if re.fullmatch(pattern, kernel)]
    least = {field: limit for pattern, limits in LEAST if re.fullmatch(pattern, kernel)
             for field, limit in limits.items()}
    none = [field for field in ("doubles", "stack") if not named or field not in named[0]]
    if "hmma" not in least:
        none.append("hmma")
    return [f"{kernel}: {field} {numbers[field]}; expected none" for field in none
            if numbers[field] > 0] + \
           [f"{kernel}: {field} {numbers[field]}; expected at least {limit}"
            for field, limit in least.items() if numbers[field] < limit]


def main():
    if not sys.argv[1:] or {"-h", "--help"} & set(sys.argv[1:]):
        sys.exit(__doc__.strip())
    cuobjdump = find_cuobjdump()
    if cuobjdump is None:
        print("no cuobjdump: CUOBJDUMP, CUDA_HOME/bin, PATH and /usr/local/cuda/bin have none")
        return 77
    # It calls nvdisasm.
    os.environ["PATH"] = os.path.dirname(cuobjdump) + os.pathsep + os.environ["PATH"]
    found = {}
    for path in sys.argv[1:]:
        listing = subprocess.run([cuobjdump, "-sass", "-arch", ARCHITECTURE, path], text=True,
                                 capture_output=True)
        if listing.returncode != 0:
            sys.exit(f"{path}: {listing.stderr.strip()}")
        found.update(kernels(listing.stdout))
    # CUB's are not ours.
    own = [name for name in found if "7elastor" in name and not name.startswith("_ZN3cub")]
    broken, seen = [], short_names(own)
    print(",".join(("kernel", *FIELDS)))
    for kernel, name in sorted(zip(seen, own)):
        print(",".join((f'"{kernel}"', *(str(found[name][field]) for field in FIELDS))))
        broken += broken_limits(kernel, found[name])
    broken += [f"'{pattern}': no kernel is called so" for pattern, _ in LEAST
               if not any(re.fullmatch(pattern, kernel) for kernel in seen)]
    print(f"{len(seen)} kernels, {len(broken)} limits broken", *broken, sep="\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
