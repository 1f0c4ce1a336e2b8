"""The items of a column's list, as `prepare` reads them (list_text.cc)."""
import re

from .values import parse_number

_BLANKS = b" \t\r\n"
_QUOTED = re.compile(rb"""[ub]?'((?:[^'\\]|\\.)*)'|[ub]?"((?:[^"\\]|\\.)*)\"""", re.S)
_BARE = re.compile(rb"""[^,\[\](){}'":]+""")
_ESCAPE = re.compile(
    rb"\\(?:([ntrbf\\'\"/])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.S
)
_MEANINGS = dict(zip(b"ntrbf\\'\"/", "\n\t\r\b\f\\'\"/"))


def _unescaped(text):
    """Returns what a quoted item means, or None."""

    def character(match):
        if match[1]:
            return _MEANINGS[match[1][0]].encode()
        digits = match[2] or match[3] or match[4]
        # Halves of a character beyond 2^16 meet below.
        return chr(int(digits, 16)).encode("utf-8", "surrogatepass")

    try:
        made = _ESCAPE.sub(character, text)
    except (TypeError, ValueError, OverflowError):
        return None  # an escape that means nothing
    if re.search(rb"\xed[\xa0-\xbf]", made) is None:
        return made
    try:
        halves = made.decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass")
        return halves.decode("utf-16").encode()
    except UnicodeError:
        return None


def bracket_items(text):
    """Returns the items of ['a', "b"], [1, 2], (1, 2), {1, 2}; None if the text is no such list.

    Missing ones (None, null, nan) are empty.
    """
    text = text.strip(b" \t")
    if len(text) < 2 or text[:1] + text[-1:] not in (b"[]", b"()", b"{}"):
        return None
    rest = text[1:-1].lstrip(_BLANKS)
    items = []
    while rest:
        match = _QUOTED.match(rest)
        if match:
            item = _unescaped(match[1] if match[1] is not None else match[2])
            if item is None:
                return None
            items.append(item)
        else:
            match = _BARE.match(rest)
            if match is None:
                return None
            whole = match[0].rstrip(_BLANKS)
            words = re.split(rb"[ \t\r\n]+", whole)
            if all(parse_number(word) is not None for word in words):
                items += words
            else:
                items.append(b"" if whole in (b"None", b"null", b"nan", b"NaN") else whole)
        rest = rest[match.end() :].lstrip(_BLANKS)
        if rest.startswith(b","):
            rest = rest[1:].lstrip(_BLANKS)
        elif rest and rest[:1] not in (b"'", b'"'):
            return None
    return items
