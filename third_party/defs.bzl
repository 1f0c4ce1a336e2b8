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

def _precompiled_header_impl(ctx):
    source = ctx.file.src
    header = ctx.actions.declare_file("{}/{}".format(ctx.label.name, source.basename))
    ctx.actions.symlink(output = header, target_file = source)
    precompiled = ctx.actions.declare_file(header.basename + ".gch", sibling = header)
    toolchain = ctx.attr._cc_toolchain[cc_common.CcToolchainInfo]
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = header.path,
        output_file = precompiled.path,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts + ["-xc++-header"],
    )
    action = "c++-compile"
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(feature_configuration = features, action_name = action),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = action,
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = action,
            variables = variables,
        ),
        inputs = depset([source, header], transitive = [toolchain.all_files]),
        outputs = [precompiled],
        mnemonic = "Precompile",
    )
    return [CcInfo(compilation_context = cc_common.create_compilation_context(
        headers = depset([header, precompiled]),
    ))]

# A header that the compiler has read once for all. Files that depend on it take it by `-include PACKAGE/NAME/FILE`.
# GCC takes it only where all flags are the same, those of the optimisation above all, and else reads the header itself.
precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "copts": attr.string_list(doc = "Flags besides those of all files."),
        "src": attr.label(allow_single_file = [".h"], mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    provides = [CcInfo],
)
