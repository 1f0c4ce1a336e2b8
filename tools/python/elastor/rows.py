"""Raw rows of files: where each field's text stands, as `prepare` reads it (row_parser.cc)."""
import gzip
import zlib

from .errors import ElastorError, listed, read_bytes, shown
from .schema import FEATURES
from .values import parse_integer, parse_number

_BOM = b"\xef\xbb\xbf"


class BadRow(Exception):
    """What is wrong with a row."""


def _quoted_values(text, at, delimiter):
    """Returns the values of the record at text[at:], and where the next one begins."""
    values = []
    feed = text.index(b"\n", at)
    while True:
        column = f"column {len(values) + 1}: "
        if text[at : at + 1] == b'"':
            close = text.find(b'"', at + 1)
            while close >= 0 and text[close + 1 : close + 2] == b'"':
                close = text.find(b'"', close + 2)
            if close < 0:
                raise BadRow(column + "found a quote that is not closed")
            values.append(text[at + 1 : close].replace(b'""', b'"'))
            feed = text.index(b"\n", close)
            at = close + 1
        else:
            end = text.find(delimiter, at, feed)
            line_end = feed - (text[feed - 1 : feed] == b"\r" and feed > at)
            end = line_end if end < 0 else end
            if text[at:end].endswith(b'"'):
                raise BadRow(column + "found a quote at the end of a value that begins with none")
            values.append(text[at:end])
            at = end
        if text.startswith(delimiter, at) and at < feed:
            at += len(delimiter)
        elif at == feed or text[at : feed + 1] == b"\r\n":
            return values, feed + 1
        else:
            raise BadRow(column + "found a quote that is not closed before the delimiter")


class _Lines:
    """The records of a text, and the line that each begins with."""

    def __init__(self, path, schema):
        self._schema = schema
        self._text = _read_text(path)
        self._at = len(_BOM) if self._text.startswith(_BOM) else 0
        self.line = 1

    def __bool__(self):
        return self._at < len(self._text)

    def next_line(self):
        end = self._text.index(b"\n", self._at)
        line = self._text[self._at : end]
        self._at = end + 1
        self.line += 1
        return line[:-1] if line.endswith(b"\r") else line

    def next_values(self):
        end = self._text.index(b"\n", self._at)
        if not self._schema.quoted or self._text.find(b'"', self._at, end) < 0:
            return self.next_line().split(self._schema.delimiter)
        values, after = _quoted_values(self._text, self._at, self._schema.delimiter)
        self.line += self._text.count(b"\n", self._at, after)
        self._at = after
        return values


def _read_text(path):
    text = read_bytes(path, "a file of raw rows")
    if text.startswith(b"\x1f\x8b"):
        try:
            text = gzip.decompress(text)
        except (OSError, EOFError, zlib.error):
            raise ElastorError(f"{path}: damaged gzip data") from None
    elif text.startswith(b"\x28\xb5\x2f\xfd"):
        raise ElastorError(f"{path}: zstd data; unpack it with zstd -d")
    return text if text.endswith(b"\n") or not text else text + b"\n"


def _columns_by_header(schema, names, path):
    columns = {}
    for field in schema.features():
        source = schema.source(field).encode()
        if names.count(source) != 1:
            raise ElastorError(
                f"{path}:{schema.skip_lines + 1}: field {field.name}: found columns "
                f"{listed(shown(name) for name in names)}; expected one {shown(source)}"
            )
        columns[field.name] = names.index(source)
    return columns, len(names)


def _columns_by_order(schema, count):
    """The columns of a line with `count` values; those of training alone may be left out."""
    read_by_others = {field.column for field in schema.fields}
    candidates = []
    for left_out in (
        lambda field: False,
        lambda field: field.type == "LABEL",
        lambda field: field.is_of_training,
    ):
        columns, total = {}, 0
        for field in schema.fields:
            if field.column:
                columns[field.name] = columns[field.column]
            elif not left_out(field) or field.name in read_by_others:
                columns[field.name] = total
                total += 1
        candidates.append((columns, total))
    return next((c for c in candidates if c[1] == count), candidates[0])


def _delimited(path, schema):
    lines = _Lines(path, schema)
    for _ in range(schema.skip_lines):
        if not lines:
            raise ElastorError(f"{path}: ends within the lines to skip")
        lines.next_line()
    if schema.header:
        if not lines:
            raise ElastorError(f"{path}: is empty, expected a header line")
        columns, total = _columns_by_header(schema, lines.next_values(), path)
    else:
        columns = None
    features = schema.features()
    while lines:
        line = lines.line
        try:
            values = lines.next_values()
            if columns is None:
                columns, total = _columns_by_order(schema, len(values))
            if len(values) != total:
                raise BadRow(f"found {len(values)} columns, expected {total}")
        except BadRow as bad:
            raise ElastorError(f"{path}:{line}: {bad}") from None
        texts = [values[columns[field.name]] for field in features]
        yield line, [b"" if text in schema.nulls else text for text in texts]


def _pair_texts(line, schema):
    """The texts of the features of a line of pairs."""
    # As the trainer: blanks, tabs and carriage returns are between words, nothing else.
    words = [word for word in line.replace(b"\t", b" ").replace(b"\r", b" ").split(b" ") if word]
    if not words or b":" not in words[0] or not line.startswith(words[0]):
        words = words[1:]  # the label
    fields = schema.fields
    is_open = fields[-1].type == "MULTI_HOT"
    texts, bag = [], []
    for i, word in enumerate(words):
        place = min(i, len(fields) - 1) if is_open else i
        if place >= len(fields):
            raise BadRow(f"column {i + 2}: found {shown(word)}, expected only {len(fields)} pairs")
        field = fields[place]
        index, colon, value = word.partition(b":")
        number = parse_number(value)
        where = f"column {i + 2} ({field.name}): found {shown(word)}, expected "
        if not colon or not index or number is None:
            raise BadRow(where + "index:number")
        if field.type not in FEATURES:
            continue
        if field.type == "NUMERIC":
            expected = i + (not schema.zero_based)
            if parse_integer(index) != expected:
                raise BadRow(where + f"index {expected}, the field's place")
            texts.append(value)
        elif number != 1:
            raise BadRow(where + "value 1 of a categorical field")
        elif is_open and place == len(fields) - 1:
            bag.append(index)
        else:
            texts.append(index)
    if len(words) + is_open < len(fields):
        raise BadRow(f"found {len(words)} pairs, expected {len(fields) - is_open}")
    return texts + [bag] if is_open else texts


def _pairs(path, schema):
    lines = _Lines(path, schema)
    for _ in range(schema.skip_lines):
        lines.next_line()
    while lines:
        line = lines.line
        try:
            texts = _pair_texts(lines.next_line(), schema)
        except BadRow as bad:
            raise ElastorError(f"{path}:{line}: {bad}") from None
        yield line, texts


def file_rows(path, schema):
    """Yields (line, texts of the features) for each row; a list of texts is a bag's values."""
    return _pairs(path, schema) if schema.layout == "LIBSVM" else _delimited(path, schema)
