"""Rules that say in a few lines what most targets of this repository are."""

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

def unit_test(name, deps, **kwargs):
    """A cc_test of name.cc with GoogleTest's main.

    Args:
      name: The stem of the file.
      deps: What it tests.
      **kwargs: As of cc_test.
    """
    kwargs.setdefault("srcs", [name + ".cc"])
    native.cc_test(name = name, deps = deps + ["@system//:gtest_main"], **kwargs)

def joined_test(name, deps, srcs = None, **kwargs):
    """A cc_test of several unit tests, compiled as one as in joined_library, with GoogleTest's main.

    Args:
      name: Of the test.
      deps: What it tests.
      srcs: The tests; None: all of the folder.
      **kwargs: As of cc_test.
    """
    if srcs == None:
        srcs = native.glob(["*_test.cc"])
    native.cc_test(name = name, deps = deps + ["@system//:gtest_main"], **_joined(name, srcs, testonly = True, **kwargs))

# The folders of trainer/, the lowest first. A folder uses only folders before it.
_ROOMS = [
    "fields",
    "data",
    "prepare",
    "step",
    "experiment",
    "records",
    "evaluate",
    "checkpoint",
    "plot",
    "score",
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
