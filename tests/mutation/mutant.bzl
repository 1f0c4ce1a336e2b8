"""Sources with a mistake put into them, for tests that must notice it."""

def _quoted(text):
    return "'" + text.replace("'", "'\\''").replace("$", "$$") + "'"

def mutant_source(name, source, mistakes):
    """Makes <name>.cc, a copy of `source` in which some lines read differently.

    Fails to build when one of them is not found, so that a mutation does not go stale.

    Args:
      name: of the target.
      source: label of the file.
      mistakes: dictionary from a line as it stands there, without the spaces around it, to the
        line that takes its place.
    """
    arguments = " ".join([_quoted(k) + " " + _quoted(v) for k, v in mistakes.items()])
    native.genrule(
        name = name,
        testonly = True,
        srcs = [source],
        outs = [name + ".cc"],
        cmd = "$(location :mutate.sh) $< $@ " + arguments,
        tools = [":mutate.sh"],
    )
