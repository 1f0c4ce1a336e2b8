"""cuda_toolkit: NVIDIA's CUDA toolkit as it is installed, as the repository @cuda."""

_DEFAULT_PREFIX = "/usr/local/cuda"

def _cuda_toolkit_impl(ctx):
    prefix = ctx.os.environ.get("CUDA_HOME", _DEFAULT_PREFIX)
    if not ctx.path(prefix + "/bin/nvcc").exists:
        message = "no CUDA toolkit below %s; name its prefix in CUDA_HOME" % prefix
        ctx.file("BUILD.bazel", """
load("@elastor//third_party/cuda:missing.bzl", "missing")
package(default_visibility = ["//visibility:public"])
[missing(name = name, message = "%s") for name in ["nvcc", "cudart", "cublas", "nccl"]]
""" % message)
        return
    ctx.symlink(prefix + "/include", "include")

    # By its full path: nvcc finds its parts beside itself. The host's part is for the machine of CC, as all else.
    nvcc = "'%s/bin/nvcc'" % prefix
    compiler = ctx.os.environ.get("CC")
    if compiler:
        nvcc += " -ccbin '%s' -isystem '%s/include' -isystem '%s/include/cccl'" % (compiler, prefix, prefix)
    ctx.file("nvcc", "#!/bin/sh\nexec %s \"$@\"\n" % nvcc, executable = True)
    ctx.template("BUILD.bazel", ctx.attr._build_file, {"%{prefix}": prefix})

# Only builds with --config=cuda depend on it.
cuda_toolkit = repository_rule(
    implementation = _cuda_toolkit_impl,
    attrs = {"_build_file": attr.label(default = "//third_party/cuda:cuda.BUILD.template")},
    environ = [
        "CC",
        "CUDA_HOME",
    ],
    local = True,
)
