"""proto_cc_library: a .proto compiled by Debian's protoc and linked like any cc_library."""

def proto_cc_library(name, src, deps = [], proto_deps = [], **kwargs):
    """Compiles `src` (a file of this package). `proto_deps` are the .proto files it imports."""
    stem = src[:-len(".proto")]
    native.genrule(
        name = name + "_gen",
        srcs = [src] + proto_deps,
        outs = [stem + ".pb.h", stem + ".pb.cc"],
        cmd = "protoc --proto_path=. --cpp_out=$(GENDIR) $(location %s)" % src,
    )
    native.cc_library(
        name = name,
        srcs = [stem + ".pb.cc"],
        hdrs = [stem + ".pb.h"],
        copts = ["-Wno-all", "-Wno-extra", "-Wno-error"],
        deps = deps + ["@system//:protobuf"],
        **kwargs
    )
