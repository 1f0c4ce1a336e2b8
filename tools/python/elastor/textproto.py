"""Reads protobuf's text format as Elastor writes it: fields, nested messages, texts, numbers."""
import re

from .errors import ElastorError

_TOKEN = re.compile(
    r'\s*(?:#[^\n]*\s*)*([A-Za-z_]\w*|[-+.\w]+|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|[{}<>\[\]:,;])?'
)
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", re.S)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def _unescaped(match):
    code = match[1]
    if code[:1].isdigit():
        return bytes([int(code, 8) & 255])
    if len(code) > 1:
        return bytes([int(code[1:], 16)])
    return _LETTERS.get(code, code)


class _Reader:
    def __init__(self, text, where):
        self._text, self._where, self._at = text, where, 0
        self.next()

    def next(self):
        match = _TOKEN.match(self._text, self._at)
        self._at = match.end()
        self.token = match[1]
        if self.token is None and self._at < len(self._text):
            self.wrong()
        return self.token

    def wrong(self):
        line = self._text.count("\n", 0, self._at) + 1
        raise ElastorError(f"{self._where}: line {line} is not protobuf's text format")

    def message(self, end):
        fields = {}
        while self.token != end:
            name = self.token
            if name is None or not (name[0].isalpha() or name[0] == "_"):
                self.wrong()
            if self.next() == ":":
                self.next()
            values = fields.setdefault(name, [])
            if self.token == "[":
                self.next()
                while self.token != "]":
                    values.append(self.value())
                    if self.token == ",":
                        self.next()
                self.next()
            else:
                values.append(self.value())
            if self.token in (",", ";"):
                self.next()
        return fields

    def value(self):
        token = self.token
        if token is None or token in "}>]:,;":
            self.wrong()
        self.next()
        if token in "{<":
            fields = self.message("}" if token == "{" else ">")
            self.next()
            return fields
        if token[0] not in "\"'":
            return token
        text = b""
        while True:
            text += _ESCAPE.sub(_unescaped, token[1:-1].encode("utf-8", "surrogateescape"))
            if self.token is None or self.token[0] not in "\"'":
                return text
            token = self.token
            self.next()


def parse_textproto(text, where):
    """Returns {field: [values]}; a value is a dict, bytes, or the word or number as str."""
    return _Reader(text, where).message(None)
