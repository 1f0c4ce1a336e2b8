"""arrow_library: Arrow's C++ library as tools/install_arrow.sh installs it, as the repository @arrow."""

def _arrow_library_impl(ctx):
    cache = ctx.os.environ.get("XDG_CACHE_HOME", ctx.os.environ.get("HOME", "") + "/.cache")
    prefix = cache + "/elastor/arrow"
    found = ctx.path(prefix + "/include").exists
    if found:
        ctx.symlink(prefix + "/include", "include")
        ctx.symlink(prefix + "/lib", "lib")
    ctx.file("arrow.bzl", "HAS_ARROW = %s\n" % found)
    ctx.template("BUILD.bazel", ctx.attr._build_file)

arrow_library = repository_rule(
    implementation = _arrow_library_impl,
    attrs = {"_build_file": attr.label(default = "//third_party/arrow:arrow.BUILD.template")},
    environ = [
        "HOME",
        "XDG_CACHE_HOME",
    ],
    local = True,
)
