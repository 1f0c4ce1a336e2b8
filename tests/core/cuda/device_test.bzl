"""device_test: a GoogleTest that needs a CUDA device or its emulation."""

load("//:build.bzl", "JOINED_FLAGS", "cases_test", "join_sources")
load("//third_party/cuda:defs.bzl", "cuda_library")

def device_test(name, srcs, deps = [], tags = [], mutated = False, **kwargs):
    """In the emulation every test runs under two schedules; --test_arg=--schedule=all: under all.

    Args:
      srcs: .cc and .h files, and .cu files with kernels for the test alone (no GoogleTest in them). Several .cc files
        are compiled as one (build.bzl).
      mutated: As of unit_test.
    """
    device_srcs = [src for src in srcs if src.endswith(".cu")]
    host_srcs = [src for src in srcs if src.endswith(".cc")]
    hdrs = [src for src in srcs if src.endswith(".h")]
    if len(host_srcs) > 1:
        host_srcs = [join_sources(name, host_srcs, ".cc", testonly = True)]
    if device_srcs:
        cuda_library(
            name = name + "_kernels",
            testonly = True,
            srcs = device_srcs,
            hdrs = hdrs,
            deps = deps + ["//core/cuda:launch"],
        )
        deps = deps + [name + "_kernels"]
    cases_test(
        name = name,
        srcs = host_srcs + hdrs,
        copts = JOINED_FLAGS,
        tags = tags + ["device"],
        deps = deps + ["//core/cuda:runtime"],
        mains = ["//tests/core/cuda:device_test_main"],
        mutated = mutated,
        **kwargs
    )
