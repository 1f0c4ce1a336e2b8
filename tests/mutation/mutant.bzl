"""Programs in which one line of the code has a mistake, for tests that must notice it."""

load("//:build.bzl", "JOINED_FLAGS")
load("//third_party/cuda:defs.bzl", "EMULATION_FLAGS", "if_cuda")

# Mutants of kernels are compiled for the emulation alone: no platform has this constraint.
_EMULATION_ONLY = if_cuda([":emulated_kernels"])

def _quoted(text):
    return "'" + text.replace("'", "'\\''").replace("$", "$$") + "'"

def _mutate(name, source, out, mistakes):
    """Makes `out`, a copy of `source` in which some lines read differently.

    Fails to build when one of them is not found, so that a mutation does not go stale.

    Args:
      name: of the target.
      source: label of the file.
      out: the copy's name.
      mistakes: dictionary from a line as it stands there, without the spaces around it, to the
        line that takes its place.
    """
    arguments = " ".join([_quoted(k) + " " + _quoted(v) for k, v in mistakes.items()])
    native.genrule(
        name = name,
        testonly = True,
        srcs = [source],
        outs = [out],
        cmd = "$(location :mutate.sh) $< $@ " + arguments,
        tools = [":mutate.sh"],
    )

def mutant_header(name, source, mistakes):
    """Makes the header <name>.h, a mutant of `source`.

    It has the include guard of `source`: who includes it first does not see `source`.

    Args:
      name: of the target.
      source: label of the header.
      mistakes: as of _mutate.
    """
    _mutate(name, source, name + ".h", mistakes)

def mutant_source(name, source, mistakes, deps):
    """Compiles a mutant of a source of another package; as mutant_library, of which see below.

    Args:
      name: of the target.
      source: label of the source.
      mistakes: as of _mutate.
      deps: its own library.
    """
    _mutate(name + "_source", source, name + ".cc", mistakes)
    native.cc_library(
        name = name,
        testonly = True,
        srcs = [
            name + ".cc",
            ":mistake.h",
        ],
        copts = ["-include tests/mutation/mistake.h"],
        deps = deps,
        alwayslink = True,
    )

def mutant_library(name, srcs, deps, emulated = False, mistakes = {}):
    """Compiles sources of other packages with the mutant of core/base/leaf_stack.h.

    A program that depends on it has these objects in place of those of `deps`: they are linked in
    whole, before the libraries they depend on.

    Args:
      name: of the target.
      srcs: labels of the sources that use the law.
      deps: their own libraries.
      emulated: whether they are .emulated.cc files.
      mistakes: dictionary from a label among `srcs` to the lines of that file that read
        differently, as of _mutate.
    """
    files = [src for src in srcs if src not in mistakes]
    for source, lines in mistakes.items():
        file = source.split(":")[1]
        _mutate(file.replace(".", "_") + "_source", source, file, lines)
        files.append(file)
    native.cc_library(
        name = name,
        testonly = True,
        srcs = files + [
            ":leaf_stack_mutant.h",
            ":mistake.h",
        ],
        copts = JOINED_FLAGS + (EMULATION_FLAGS if emulated else []) + [
            "-O1",
            "-include tests/mutation/mistake.h",
            "-include tests/mutation/leaf_stack_mutant.h",
        ],
        target_compatible_with = _EMULATION_ONLY if emulated else [],
        deps = deps,
        alwayslink = True,
    )

def mutant_test(name, cases, filter, mutants, mistakes = ["chain", "shifted", "greedy"], device = False):
    """A test passes, linked with mutants that make no mistake, and fails with each mistake.

    Args:
      name: of the target.
      cases: label of the test's cases (build.bzl, cases_test).
      filter: which of them run, as --gtest_filter has it.
      mutants: mutant_library targets of the code that it tests.
      mistakes: names of mistakes.
      device: whether it is a device_test.
    """
    native.cc_binary(
        name = name + "_program",
        testonly = True,
        target_compatible_with = _EMULATION_ONLY if device else [],
        deps = mutants + [cases] + (["//tests/core/cuda:device_test_main"] if device else ["@system//:gtest_main"]),
    )
    native.sh_test(
        name = name,
        srcs = ["mutant_test.sh"],
        args = ["$(location :%s_program)" % name, "'%s'" % filter] + mistakes,
        data = [":%s_program" % name],
        target_compatible_with = _EMULATION_ONLY if device else [],
    )
