"""Turns texts of one field into ids or numbers, bit for bit as the trainer does (row_builder.cc)."""
import bisect
import math
import re

from .errors import ElastorError, shown
from .lists import bracket_items
from .values import (
    TIME_FORMATS,
    date_of,
    hour_of,
    log2_transform,
    parse_integer,
    parse_number,
    parse_time,
    weekday_of,
)
from .xxh3 import hash_text, xxh3_64

_ESCAPES = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"\\": b"\\"}


class BadValue(Exception):
    """A text that is no value of its field: what was found, and what is expected."""

    def __init__(self, text, expected):
        super().__init__(f"found {shown(text)}, expected {expected}")


def vocabulary_file_name(field):
    """The file of a field's vocabulary in the folder vocabulary/."""
    return re.sub(rb"[^A-Za-z0-9_.-]", lambda m: b"%%%02X" % m[0][0], field.encode()).decode() + ".tsv"


def read_vocabulary(path, entry):
    """Returns a field's values in the order of their ids, the first with id 1.

    entry: the field's in the model's encoding, whose hash the file must have.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ElastorError(
            f"{path}: {error.strerror}; expected the vocabulary of field {entry['name']}"
        ) from None
    lines = data.split(b"\n")[:-1]
    if hash_text(data) != entry["vocabulary_checksum"] or len(lines) + 1 != entry["ids"]:
        raise ElastorError(
            f"{path}: not the vocabulary of the training data; the file is damaged or was replaced"
        )
    values = [line.split(b"\t")[0] for line in lines]
    return [
        re.sub(rb"\\([tnr\\])", lambda m: _ESCAPES[m[1]], value) if b"\\" in value else value
        for value in values
    ]


def _identity_key(text):
    if not text:
        return 0
    match = re.fullmatch(rb"(-?)0*([0-9]{1,20})", text)
    value = int(match[1] + match[2]) if match else None
    if value is None or not -(2**63) <= value < 2**64:
        raise BadValue(
            text, "an integer from -2^63 to 2^64 - 1; encoding HASHED_KEY takes any text"
        )
    return value % 2**64


class IdEncoder:
    """Ids of a categorical field, a bag or a sequence."""

    def __init__(self, field, ids_of_values):
        """ids_of_values: {value: id} of a vocabulary; None for other encodings."""
        self._field = field
        self.ids_of_values = ids_of_values
        self._known = {}

    def id_of(self, text):
        """Returns the id of one value after the field's transform, as a vocabulary has it."""
        field = self._field
        if self.ids_of_values is not None:
            return self.ids_of_values.get(text, 0) if text else 0
        if field.encoding == "HASH":
            return xxh3_64(text) % field.buckets
        if field.encoding == "HASHED_KEY":
            return max(xxh3_64(text), 1) if text else 0
        if field.encoding == "IDENTITY_KEY":
            return _identity_key(text)
        value = parse_integer(text)
        if value is None:
            raise BadValue(text, "an integer")
        if not field.offset <= value < field.offset + field.buckets:
            raise BadValue(
                text, f"an id in [{field.offset}, {field.offset + field.buckets})"
            )
        return value - field.offset

    def encode(self, text):
        """Returns the id of a raw text, or the ids of a raw text or list of a bag."""
        field = self._field
        if field.is_bag:
            texts = text if isinstance(text, list) else self._items(text)
            ids = [self._id_of_raw(value) for value in texts if value or field.keep_missing]
            return ids[: field.max_length] if field.type == "MULTI_HOT" else ids[-field.max_length :]
        return self._id_of_raw(text)

    def _items(self, text):
        field = self._field
        if field.list_form == "BRACKETS":
            items = bracket_items(text) if text else []
            if items is None:
                raise BadValue(text, "a list in brackets such as ['a', 'b'] or [1, 2]")
            return items
        items = text.split(field.separator) if text else []
        return [item.strip(b" \t") for item in items] if field.list_form == "TRIMMED" else items

    def _id_of_raw(self, text):
        found = self._known.get(text)
        if found is None:
            made = text if self._field.transform == "NONE" or not text else self._made(text)
            found = self._known[text] = self.id_of(made)
        return found

    def _made(self, text):
        """The value that the transform makes a category of, as text."""
        field = self._field
        if field.transform in ("BUCKET", "LOG2_BUCKET"):
            number = parse_number(text)
            if number is None or number < -9e18:
                raise BadValue(text, "a number")
            if field.transform == "BUCKET":
                return b"%d" % bisect.bisect_right(field.boundaries, number)
            return b"%d" % math.floor(log2_transform(number))
        seconds = parse_time(text, field.time_format)
        if seconds is None:
            raise BadValue(text, "a time, " + TIME_FORMATS[field.time_format])
        if field.transform == "HOUR":
            return b"%d" % hour_of(seconds)
        if field.transform in ("DAY", "MONTH"):
            date = date_of(seconds)
            return b"%d" % (date.day if field.transform == "DAY" else date.month)
        day = weekday_of(seconds)
        return b"%d" % (day >= 5 if field.transform == "WEEKEND" else day)


class NumberEncoder:
    """Numbers of a numeric field, transformed and standardised; NaN = missing."""

    def __init__(self, field, entry):
        """entry: the field's in the model's encoding."""
        self._log2 = field.transform.startswith("LOG2")
        self._mean, self._stddev = entry["mean"], entry["stddev"]
        self._known = {b"": math.nan}

    def encode(self, text):
        found = self._known.get(text)
        if found is None:
            value = parse_number(text)
            if value is None:
                raise BadValue(text, "a number, or an empty text where it is missing")
            value = log2_transform(value) if self._log2 else value
            found = self._known[text] = (value - self._mean) / self._stddev
        return found
