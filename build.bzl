"""Rules that say in a few lines what most targets of this repository are."""

def by_machine(x86_64, aarch64):
    """What a target has on each machine: flags, or files that hold the machine's own functions.

    Args:
      x86_64: On x86-64.
      aarch64: On aarch64.
    Returns:
      A value for an attribute.
    """
    return select({
        "@elastor//:aarch64": aarch64,
        "//conditions:default": x86_64,
    })

# Values of `target_compatible_with`: wildcards leave such targets out on the other machine.
X86_64_ONLY = by_machine(
    x86_64 = [],
    aarch64 = ["@elastor//:other_machine"],
)
AARCH64_ONLY = by_machine(
    x86_64 = ["@elastor//:other_machine"],
    aarch64 = [],
)

def library(name, **kwargs):
    """A cc_library of name.h and name.cc, or of the one of them that there is.

    Args:
      name: The stem of the files.
      **kwargs: As of cc_library; `srcs` and `hdrs` replace the files.
    """
    kwargs.setdefault("srcs", native.glob([name + ".cc"]))
    kwargs.setdefault("hdrs", native.glob([name + ".h"]))
    native.cc_library(name = name, **kwargs)

def joined_library(name, srcs = None, **kwargs):
    """A cc_library whose sources are compiled as one, which reads their common headers once.

    Its files share what is in their anonymous namespaces, so a name has one meaning in all of them.
    `--define=apart=on` compiles each alone, which shows an include that is missing.

    Args:
      name: Of the library.
      srcs: The sources; None: all of the folder.
      **kwargs: As of cc_library; `hdrs` replaces the folder's headers.
    """
    if srcs == None:
        srcs = native.glob(["*.cc"])
    kwargs.setdefault("hdrs", native.glob(["*.h"]))
    native.cc_library(name = name, **_joined(name, srcs, **kwargs))

# GCC takes all but the first of the joined files for headers.
JOINED_FLAGS = ["-Wno-subobject-linkage"]

def join_sources(name, srcs, suffix, testonly = False):
    """Makes one file of several sources.

    Args:
      name: Of the target that compiles it.
      srcs: The sources.
      suffix: Of their names.
      testonly: As of genrule.
    Returns:
      The name of the file.
    """
    joined = name + "_joined" + suffix
    native.genrule(
        name = name + "_joined",
        srcs = srcs,
        outs = [joined],
        testonly = testonly,
        cmd = "for file in $(SRCS); do printf '#line 1 \"%s\"\\n' $$file; cat $$file; done > $@",
    )
    return joined

def _joined(name, srcs, testonly = False, **kwargs):
    """The attributes of a target that compiles sources as one; `kwargs` are others."""
    return dict(
        srcs = select({
            "//:apart": srcs,
            "//conditions:default": [join_sources(name, srcs, ".cc", testonly)],
        }),
        copts = JOINED_FLAGS,
        testonly = testonly,
        **kwargs
    )

def _stamped_binary_impl(ctx):
    copy = ctx.actions.declare_file(ctx.label.name)
    program = ctx.executable.program
    ctx.actions.run(
        executable = ctx.executable._stamp,
        arguments = [program.path, ctx.info_file.path, copy.path],
        inputs = [program, ctx.info_file],
        outputs = [copy],
        mnemonic = "Stamp",
    )
    return [DefaultInfo(
        executable = copy,
        runfiles = ctx.attr.program[DefaultInfo].default_runfiles,
    )]

_stamped_binary = rule(
    implementation = _stamped_binary_impl,
    attrs = {
        "program": attr.label(cfg = "target", executable = True, mandatory = True),
        "_stamp": attr.label(
            default = "//:stamp",
            cfg = "exec",
            executable = True,
        ),
    },
    executable = True,
)

def program(name, visibility = None, **kwargs):
    """A program for users, `name`, and the same without its commit for tests, `unstamped/name`.

    Tests run the second, so a new commit alone leaves their results cached. The first is a copy that
    tells the commit (tools/stamp.sh); a new commit costs one copy and links nothing.

    Args:
      name: Of the program.
      visibility: Of both.
      **kwargs: As of cc_binary.
    """
    native.cc_binary(name = "unstamped/" + name, visibility = visibility, **kwargs)
    _stamped_binary(name = name, program = "unstamped/" + name, visibility = visibility)

def cases_test(name, deps, mains, mutated, data = [], env = {}, tags = [], **kwargs):
    """A cc_test whose cases may be a library of their own, NAME_cases: tests/mutation runs them without compiling them again.

    Args:
      name: Of the test.
      deps: What it tests.
      mains: Libraries with its main.
      mutated: Whether tests/mutation runs it with mistakes in the code.
      data: As of cc_test.
      env: As of cc_test.
      tags: As of cc_test.
      **kwargs: As of cc_library.
    """
    if mutated:
        native.cc_library(
            name = name + "_cases",
            visibility = ["//tests/mutation:__pkg__"],
            deps = deps + ["@system//:gtest"],
            alwayslink = True,
            **dict(kwargs, testonly = True)
        )
        deps = [name + "_cases"]
        kwargs = {}
    native.cc_test(name = name, data = data, env = env, tags = tags, deps = deps + mains, **kwargs)

_MAIN = ["@system//:gtest_main"]

def unit_test(name, deps, mains = _MAIN, mutated = False, **kwargs):
    """A cc_test of name.cc, by GoogleTest's main.

    Args:
      name: The stem of the file.
      deps: What it tests.
      mains: Libraries with another main.
      mutated: Whether tests/mutation runs it with mistakes in the code.
      **kwargs: As of cc_test.
    """
    kwargs.setdefault("srcs", [name + ".cc"])
    cases_test(name, deps, mains, mutated, **kwargs)

def joined_test(name, deps, srcs = None, mains = _MAIN, mutated = False, **kwargs):
    """A unit_test of several files, compiled as one as in joined_library.

    Args:
      name: Of the test.
      deps: What it tests.
      srcs: The tests; None: all of the folder.
      mains: As of unit_test.
      mutated: As of unit_test.
      **kwargs: As of cc_test.
    """
    if srcs == None:
        srcs = native.glob(["*_test.cc"])
    cases_test(name, deps, mains, mutated, **dict(_joined(name, srcs, testonly = True), **kwargs))

# The folders of trainer/, the lowest first. A folder uses only folders before it.
_ROOMS = [
    "fields",
    "data",
    "prepare",
    "step",
    "experiment",
    "cost",
    "records",
    "evaluate",
    "checkpoint",
    "plot",
    "score",
    "serve",
    "run",
    "supervise",
    "modes",
]

def rooms_above(room, also = []):
    """Who may use a room of trainer/: itself, the rooms above it, the programs and the tests.

    Args:
      room: Its folder.
      also: Labels of others that may.
    Returns:
      A list for `default_visibility`.
    """
    return ["//tests:__subpackages__", "//trainer:__pkg__"] + also + [
        "//trainer/{}:__subpackages__".format(other)
        for other in _ROOMS[_ROOMS.index(room):]
    ]
