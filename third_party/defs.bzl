"""proto_cc_library: a .proto compiled by Debian's protoc and linked like any cc_library. links: a library of Debian's."""

def links(library, archives = [], x86_64_archives = []):
    """The linker's options for a library: its shared object, or with --config=release its archive and C++'s.

    Args:
      library: Its name.
      archives: Names of those that its archive needs besides.
      x86_64_archives: Likewise, on x86-64 alone.
    Returns:
      A value for `linkopts`.
    """
    needed = [library] + archives
    return select({
        "@elastor//:aarch64_release": _archives(needed),
        "@elastor//:release": _archives(needed + x86_64_archives),
        "//conditions:default": ["-l" + library],
    })

def _archives(names):
    return ["-l:lib{}.a".format(name) for name in names + ["stdc++"]]

def proto_cc_library(name, src, deps = [], proto_deps = [], **kwargs):
    """Compiles `src` (a file of this package). `proto_deps` are the .proto files it imports."""
    protoc_cc_library(
        name = name,
        src = src,
        stem = src[:-len(".proto")],
        proto_path = ".",
        cpp_out = "$(GENDIR)",
        deps = deps,
        proto_deps = proto_deps,
        **kwargs
    )

def protoc_cc_library(
        name,
        src,
        stem,
        proto_path = "$$(dirname $(location {src}))",
        cpp_out = "$(RULEDIR)",
        deps = [],
        proto_deps = [],
        **kwargs):
    """Compiles `src`, a file `stem`.proto of any package, to a header of this one."""
    native.genrule(
        name = name + "_gen",
        srcs = [src] + proto_deps,
        outs = [stem + ".pb.h", stem + ".pb.cc"],
        cmd = "protoc --proto_path={path} --cpp_out={out} $(location {src})".format(
            path = proto_path.format(src = src),
            out = cpp_out,
            src = src,
        ),
    )
    native.cc_library(
        name = name,
        srcs = [stem + ".pb.cc"],
        hdrs = [stem + ".pb.h"],
        copts = ["-Wno-all", "-Wno-extra", "-Wno-error"],
        deps = deps + ["@system//:protobuf"],
        **kwargs
    )
