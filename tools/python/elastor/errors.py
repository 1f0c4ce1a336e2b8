"""The one exception of this package."""


class ElastorError(ValueError):
    """A mistake of the user or a damaged file, told in one line."""


def shown(value):
    """Returns a text for a line of an error: in quotes, without control characters, short."""
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    text = "".join(c if c.isprintable() else "?" for c in text)
    return f"'{text[:40]}...'" if len(text) > 40 else f"'{text}'"


def listed(names):
    """Returns the first few of some names, for a line of an error."""
    names = [str(name) for name in names]
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "") or "none"


def read_bytes(path, expected):
    """Returns a file's bytes. `expected` ends the error's line when there is no such file."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ElastorError(f"{path}: {error.strerror}; expected {expected}") from None
