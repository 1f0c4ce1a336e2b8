"""cuda_library: .cu files, compiled by nvcc for the device or by the host's compiler for its emulation."""

load("//:build.bzl", "JOINED_FLAGS", "by_machine", "join_sources")

def if_cuda(enabled, emulated = []):
    """`enabled` with --config=cuda, else `emulated`."""
    return select({
        "//third_party/cuda:enabled": enabled,
        "//conditions:default": emulated,
    })

# Kernels have the CPU's floating point: no contraction, denormals flushed, exact division and roots.
_DEVICE_FLAGS = [
    "-std=c++20",
    "-O3",
    "-fmad=false",
    "-ftz=true",
    "-prec-div=true",
    "-prec-sqrt=true",
    "--expt-relaxed-constexpr",
    "-Werror=all-warnings",
]

# Our kernels use nothing newer than sm_80, so one intermediate code serves all devices. What ptxas makes of it for sm_90
# is, byte for byte, what it makes of compute_90's; nvcc takes a fifth less time.
_ARCHITECTURES = ["-gencode=arch=compute_80,code=[sm_80,sm_90,compute_80]"]

# CUB chooses its tuning by the intermediate code's architecture.
TUNED_ARCHITECTURES = [
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=[sm_90,compute_90]",
]

# The host's part of a .cu, as the rest has it (.bazelrc, third_party/machine).
_HOST_FLAGS = [
    "-fPIC",
    "-O1",
    "-ffp-contract=off",
    "-fno-math-errno",
] + by_machine(
    x86_64 = ["-march=x86-64-v3"],
    aarch64 = [
        "-march=armv8-a",
        "-fsigned-char",
    ],
)

# The emulation traps on what a device would fault on or silently spoil.
EMULATION_FLAGS = [
    "-Wno-unknown-pragmas",
    "-fsanitize=alignment,bounds",
    "-fsanitize-undefined-trap-on-error",
]

def _cuda_objects_impl(ctx):
    contexts = [dep[CcInfo].compilation_context for dep in ctx.attr.deps]
    headers = depset(ctx.files.hdrs, transitive = [context.headers for context in contexts])
    defines = depset(transitive = [context.defines for context in contexts])
    includes = depset(transitive = [context.includes for context in contexts])
    quote_includes = depset(transitive = [context.quote_includes for context in contexts])
    system_includes = depset(transitive = [context.system_includes for context in contexts])
    objects = []
    reports = []
    for source in ctx.files.srcs:
        stem = "_cuda/%s/%s" % (ctx.label.name, source.basename)
        object = ctx.actions.declare_file(stem + ".pic.o")
        report = ctx.actions.declare_file(stem + ".report")
        arguments = ctx.actions.args()
        arguments.add("-c", source)
        arguments.add("-o", object)
        arguments.add_all(_DEVICE_FLAGS + ctx.attr.architectures)
        arguments.add_joined("-Xcompiler", ctx.attr.host_flags, join_with = ",")
        arguments.add("-I.")
        arguments.add_all(quote_includes, before_each = "-I")
        arguments.add_all(includes, before_each = "-I")
        arguments.add_all(system_includes, before_each = "-isystem")
        arguments.add_all(defines, before_each = "-D")

        # The intermediate code lies in a folder of a fixed name: nvcc writes names into objects.
        ctx.actions.run_shell(
            command = """
kept=%s.d
mkdir -p "$kept"
if ! %s "$@" -Xptxas=-v --keep --keep-dir="$kept" 2>"$kept/log"; then
  cat "$kept/log" >&2
  exit 1
fi
newest=("$kept"/*.ptx)
cat "$kept/log" "${newest[-1]}" >%s
rm -r "$kept"
""" % (report.path, ctx.executable._nvcc.path, report.path),
            arguments = [arguments],
            inputs = depset([source], transitive = [headers]),
            tools = [ctx.executable._nvcc],
            outputs = [object, report],
            mnemonic = "CudaCompile",
            progress_message = "Compiling %s for the device" % source.short_path,
            use_default_shell_env = True,
        )
        objects.append(object)
        reports.append(report)
    return [
        DefaultInfo(files = depset(objects)),
        OutputGroupInfo(kernel_reports = depset(reports)),
    ]

_cuda_objects = rule(
    implementation = _cuda_objects_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "hdrs": attr.label_list(allow_files = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "architectures": attr.string_list(),
        "host_flags": attr.string_list(),
        "_nvcc": attr.label(
            default = "@cuda//:nvcc",
            allow_single_file = True,
            executable = True,
            cfg = "host",
        ),
    },
)

_KernelReportsInfo = provider(fields = ["files"])

def _kernel_reports_aspect_impl(target, ctx):
    own = []
    if OutputGroupInfo in target and hasattr(target[OutputGroupInfo], "kernel_reports"):
        own = [target[OutputGroupInfo].kernel_reports]
    deps = getattr(ctx.rule.attr, "deps", []) + getattr(ctx.rule.attr, "srcs", [])
    below = [dep[_KernelReportsInfo].files for dep in deps if _KernelReportsInfo in dep]
    return [_KernelReportsInfo(files = depset(transitive = own + below))]

_kernel_reports_aspect = aspect(
    implementation = _kernel_reports_aspect_impl,
    attr_aspects = ["deps", "srcs"],
)

def _kernel_reports_impl(ctx):
    files = depset(transitive = [dep[_KernelReportsInfo].files for dep in ctx.attr.deps])
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

# What nvcc said of every kernel that `deps` link, a file for each .cu: ptxas's lines on registers
# and memory, then the intermediate code (PTX). Only with --config=cuda.
kernel_reports = rule(
    implementation = _kernel_reports_impl,
    attrs = {"deps": attr.label_list(aspects = [_kernel_reports_aspect])},
)

def emulated_sources(name, srcs, testonly = False):
    """Turns .cu files into C++ for the host. Returns its file names; compile them with EMULATION_FLAGS."""
    script = "//third_party/cuda:emulation.sed"
    emulated = []
    for src in srcs:
        stem = src[:-len(".cu")]
        native.genrule(
            name = name + "_" + stem.replace("/", "_") + "_emulated",
            testonly = testonly,
            srcs = [src],
            outs = [stem + ".emulated.cc"],
            cmd = "{ echo '#line 1 \"$<\"'; sed --regexp-extended --file=$(location %s) $<; } >$@" % script,
            tools = [script],
        )
        emulated.append(stem + ".emulated.cc")
    return emulated

def cuda_library(name, srcs, hdrs = [], deps = [], copts = [], testonly = False, architectures = _ARCHITECTURES, **kwargs):
    """A cc_library with device code. Its .cu files are compiled as one (build.bzl says what that asks of names).

    Args:
      srcs: .cu files (core/cuda/launch.h says what they may use), and .cc and .h files as ever.
      deps: must give the .cu files //core/cuda:launch.
      architectures: nvcc's flags: what intermediate code it makes, and for which devices.
    """
    device_srcs = [src for src in srcs if src.endswith(".cu")]
    host_srcs = [src for src in srcs if not src.endswith(".cu")]
    host_hdrs = [src for src in host_srcs if src.endswith(".h")]
    if len(device_srcs) > 1:
        device_srcs = [join_sources(name, device_srcs, ".cu", testonly)]
        copts = copts + JOINED_FLAGS

    # Manual: `//...` must not ask for nvcc where the select below does not.
    _cuda_objects(
        name = name + "_device",
        srcs = device_srcs,
        hdrs = hdrs + host_hdrs,
        deps = deps,
        architectures = architectures,
        host_flags = _HOST_FLAGS,
        tags = ["manual"],
        testonly = testonly,
    )
    native.cc_library(
        name = name,
        srcs = host_srcs + if_cuda([name + "_device"], emulated_sources(name, device_srcs, testonly)),
        hdrs = hdrs,
        copts = copts + if_cuda([], EMULATION_FLAGS),
        testonly = testonly,
        deps = deps,
        **kwargs
    )
