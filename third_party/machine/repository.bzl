"""What a build takes from the machine that it is for: @machine_cc, the C++ compiler, and @system, Debian's packages."""

load("@bazel_tools//tools/cpp:unix_cc_configure.bzl", "configure_unix_toolchain")

# The flags of each machine, and Bazel's name of its CPU. `char` has a sign on both.
_MACHINES = {
    "x86_64": ("k8", ["-march=x86-64-v3"]),
    "aarch64": ("aarch64", ["-march=armv8-a", "-fsigned-char"]),
}
_BINUTILS = ["ar", "ld", "nm", "objcopy", "objdump", "strip"]

def _answer(ctx, *arguments):
    return ctx.execute([ctx.os.environ.get("CC", "gcc")] + list(arguments)).stdout.strip()

# Bazel's own configuration of a Unix compiler, with the flags of the machine that the compiler makes code for.
def _machine_cc_impl(ctx):
    machine = _answer(ctx, "-dumpmachine").split("-")[0]
    if not machine:
        fail("CC=%s does not run; expected a C compiler" % ctx.os.environ.get("CC", "gcc"))
    if machine not in _MACHINES:
        fail("the compiler makes code for '%s'; expected %s" % (machine, " or ".join(_MACHINES)))
    cpu, flags = _MACHINES[machine]

    # A compiler for another machine comes with binutils of its own.
    tools = {}
    if machine != ctx.execute(["uname", "-m"]).stdout.strip():
        tools = {tool: str(ctx.path(_answer(ctx, "-print-prog-name=" + tool))) for tool in _BINUTILS}
    configure_unix_toolchain(ctx, cpu, tools)
    first = '"-U_FORTIFY_SOURCE"'
    build = ctx.read("BUILD")
    if build.count(first) != 1:
        fail("another file of Bazel's than expected: BUILD of a C++ toolchain")
    added = "".join(['"%s",\n    ' % flag for flag in flags])
    ctx.file("BUILD", build.replace(first, added + first))

machine_cc = repository_rule(
    implementation = _machine_cc_impl,
    configure = True,
    environ = [
        "CC",
        "PATH",
        "USER",
    ],
)

# The folders of /usr, or of the root that a compiler for another machine takes its headers and libraries from.
def _system_packages_impl(ctx):
    root = _answer(ctx, "-print-sysroot")
    root = "" if root == "/" or not root.startswith("/") else root
    for folder in ["include", "lib"]:
        ctx.symlink(root + "/usr/" + folder, folder)
    ctx.template("BUILD.bazel", ctx.attr.build_file)

system_packages = repository_rule(
    implementation = _system_packages_impl,
    configure = True,
    local = True,
    attrs = {"build_file": attr.label()},
    environ = [
        "CC",
        "PATH",
    ],
)
