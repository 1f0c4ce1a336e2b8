"""What @cuda has where no toolkit is installed: targets that can be named, as queries do, and not built."""

def _missing_impl(ctx):
    fail(ctx.attr.message)

missing = rule(
    implementation = _missing_impl,
    attrs = {"message": attr.string(mandatory = True)},
)
