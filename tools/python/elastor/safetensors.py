"""Reads safetensors files: a header of JSON, then the tensors."""
import json
import os

import numpy as np

from .errors import ElastorError
from .xxh3 import hash_text

_MOST_HEADER = 100_000_000
_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "u1",
    "BOOL": "?",
}


class SafetensorsFile:
    """The tensors of a file, by name. Their bytes are read when they are asked for."""

    def __init__(self, path, header_xxh3=None):
        """header_xxh3: the hash that the header must have; None: any."""
        self.path = path
        try:
            with open(path, "rb") as file:
                head = file.read(8)
                size = int.from_bytes(head, "little")
                text = file.read(size) if size <= _MOST_HEADER else b""
        except OSError as error:
            raise ElastorError(f"{path}: {error.strerror}; expected a safetensors file") from None
        self._begin = 8 + size
        if header_xxh3 is not None and hash_text(head + text) != header_xxh3:
            raise ElastorError(f"{path}: the header does not match its hash; the file is damaged")
        try:
            header = json.loads(text) if len(text) == size else None
            header.pop("__metadata__", None)
            self._entries = {
                name: (entry["dtype"], tuple(entry["shape"]), *entry["data_offsets"])
                for name, entry in header.items()
            }
            end = max([0] + [entry[3] for entry in self._entries.values()])
        except (ValueError, AttributeError, KeyError, TypeError):
            raise ElastorError(f"{path}: not a safetensors file") from None
        if os.path.getsize(path) < self._begin + end:
            raise ElastorError(f"{path}: the file is cut off; expected {self._begin + end} bytes")

    def __contains__(self, name):
        return name in self._entries

    def __iter__(self):
        return iter(self._entries)

    def read(self, name, hashes=None):
        """Returns a tensor. BF16 becomes float32, which holds it exactly.

        hashes: [(first row, end, XXH3-64 as text)] of its pieces, which are compared.
        """
        dtype, shape, begin, end = self._entries[name]
        if dtype not in _TYPES:
            raise ElastorError(
                f"{self.path}: tensor '{name}' has dtype {dtype}; expected one of "
                + ", ".join(_TYPES)
            )
        kind = np.dtype(_TYPES[dtype])
        if min(shape, default=0) < 0 or int(np.prod(shape)) * kind.itemsize != end - begin:
            raise ElastorError(
                f"{self.path}: tensor '{name}' has data_offsets that do not fit its shape"
            )
        values = np.fromfile(
            self.path, kind, count=(end - begin) // kind.itemsize, offset=self._begin + begin
        ).reshape(shape)
        for first, last, expected in hashes or ():
            if hash_text(values[first:last].tobytes()) != expected:
                raise ElastorError(
                    f"{self.path}: tensor '{name}' does not match its hash; the file is damaged"
                )
        return _widened(values) if dtype == "BF16" else values


def _widened(halves):
    return (halves.astype(np.uint32) << 16).view(np.float32)
