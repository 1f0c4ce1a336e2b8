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


def _pair_words(line, schema):
    """The column and text of each pair of a line, or None of a comment."""
    # As the trainer: blanks, tabs and carriage returns are between words, nothing else.
    words = [word for word in line.replace(b"\t", b" ").replace(b"\r", b" ").split(b" ") if word]
    comment = next((i for i, word in enumerate(words) if word.startswith(b"#")), len(words))
    if comment == 0 and words:
        return None
    words = words[:comment]
    if not words or b":" not in words[0] or not line.startswith(words[0]):
        words = words[1:]  # the label
    has_query = any(field.type == "GROUP" for field in schema.fields)
    return [
        (i + 2, word) for i, word in enumerate(words) if not (has_query and word.startswith(b"qid:"))
    ]


def _parts(column, word, count):
    """The parts of a pair or triple, the last one a number."""
    parts = word.split(b":")
    number = parse_number(parts[-1])
    if len(parts) != count or not all(parts[:-1]) or number is None or parts[0] == b"qid":
        expected = "index:number" if count == 2 else "field:index:number"
        raise BadRow(f"column {column}: found {shown(word)}, expected {expected}")
    return parts[:-1], parts[-1], number


def _is_taken(field, column, word, number):
    """Whether a pair of a field of ids is there: it is not if any number may be, and it is 0."""
    if number != 1 and not field.any_value:
        raise BadRow(f"column {column} ({field.name}): found {shown(word)}, expected value 1")
    return number != 0


def _texts_by_place(pairs, schema):
    fields = schema.pair_fields()
    is_open = fields[-1].type == "MULTI_HOT"
    texts, bag = [], []
    for i, (column, word) in enumerate(pairs):
        place = min(i, len(fields) - 1) if is_open else i
        if place >= len(fields):
            raise BadRow(f"column {column}: found {shown(word)}, expected only {len(fields)} pairs")
        field = fields[place]
        if field.type == "IGNORED" and word.startswith(b"qid:"):
            continue
        (index,), value, number = _parts(column, word, 2)
        if field.type == "NUMERIC":
            if parse_integer(index) != schema.base + i:
                raise BadRow(
                    f"column {column} ({field.name}): found {shown(word)}, expected index "
                    f"{schema.base + i}, the field's place"
                )
            texts.append(value)
        elif field.type == "IGNORED":
            continue
        elif field.type == "CATEGORICAL":
            _is_taken(field, column, word, number)
            texts.append(index)
        elif _is_taken(field, column, word, number):
            bag.append(index)
    if len(pairs) + is_open < len(fields):
        raise BadRow(f"found {len(pairs)} pairs, expected {len(fields) - is_open}")
    return texts + [bag] if is_open else texts


def _texts_by_name(pairs, schema):
    """Of pairs whose index, or triples whose field, is the number of a field."""
    fields = schema.pair_fields()
    triple = schema.layout == "LIBFFM"
    rest = fields[-1] if not triple and fields[-1].type == "MULTI_HOT" else None
    numbered = dict(enumerate(fields[:-1] if rest else fields, schema.base))
    found = {field.name: [] for field in fields if field.type == "MULTI_HOT"}
    for column, word in pairs:
        names, value, number = _parts(column, word, 3 if triple else 2)
        field = numbered.get(parse_integer(names[0]), rest)
        if field is None:
            raise BadRow(
                f"column {column}: found {shown(word)}, expected {schema.base} to "
                f"{schema.base + len(numbered) - 1}"
            )
        if field.type == "MULTI_HOT":
            if _is_taken(field, column, word, number):
                found[field.name].append(names[-1])
        elif field.type == "NUMERIC" or (
            field.type == "CATEGORICAL" and _is_taken(field, column, word, number)
        ):
            if field.name in found:
                raise BadRow(
                    f"column {column} ({field.name}): found {shown(word)}, expected each once"
                )
            found[field.name] = value if field.type == "NUMERIC" else names[-1]
    return [
        found.get(field.name, b"0" if field.type == "NUMERIC" else b"")
        for field in fields
        if field.type in FEATURES
    ]


def _pairs(path, schema):
    lines = _Lines(path, schema)
    for _ in range(schema.skip_lines):
        lines.next_line()
    to_texts = _texts_by_place if schema.is_by_place() else _texts_by_name
    while lines:
        line = lines.line
        try:
            pairs = _pair_words(lines.next_line(), schema)
            if pairs is not None:
                yield line, to_texts(pairs, schema)
        except BadRow as bad:
            raise ElastorError(f"{path}:{line}: {bad}") from None


def file_rows(path, schema):
    """Yields (line, texts of the features) for each row; a list of texts is a bag's values."""
    return _pairs(path, schema) if schema.has_pairs else _delimited(path, schema)
