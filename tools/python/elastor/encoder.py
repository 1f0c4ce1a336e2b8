"""Turns raw rows into the inputs of an exported model, bit for bit as the trainer encodes them."""
import math
import os

import numpy as np

from .errors import ElastorError, listed
from .fields import BadValue, IdEncoder, NumberEncoder
from .initial import initial_rows, partitions
from .model import export_rows, make_tables, read_features
from .rows import file_rows
from .schema import parse_schema
from .table import text_of

_ROWS_AT_ONCE = 65536
_LEAST_NORMAL = np.float32(2.0**-126)


class Encoder:
    """The inputs of model.onnx for raw rows.

    encode() takes rows as dicts, encode_file() a file in the layout of the training data. Both
    return {input: array}, as onnxruntime takes it: `numeric` [rows, numeric fields], `embeddings`
    [rows, features] and `lengths` [rows, sequences], each only if the model has it.
    """

    def __init__(self, export):
        """export: the folder that trainer --mode=export has written."""
        export = os.fspath(export)
        self._features, schema = read_features(export)
        if schema is None:
            raise ElastorError(
                f"{export}: does not tell how raw rows are encoded, as its data were planted or "
                "prepared by an earlier version"
            )
        encoding = dict(self._features["encoding"], schema=schema)
        self._schema = parse_schema(schema, os.path.join(export, "schema.textproto"))
        self._tables, owners = make_tables(export, encoding, export_rows(export, encoding))
        self.fields = self._schema.features()
        self.outputs = self._features["outputs"]
        numbers = {entry["name"]: entry for entry in encoding["numeric"]}
        self._encoders = [
            NumberEncoder(field, numbers[field.name])
            if field.type == "NUMERIC"
            else self._tables[owners[field.name]].encoder_for(field)
            for field in self.fields
        ]

    def encode(self, rows):
        """Encodes rows that are dicts: {column: text, number or None = missing}.

        A column of a bag may also hold a list. Fields that read a column of another name find it by
        that name, as csv.DictReader gives it. What only training needs may be left out.
        """
        return self._inputs(self._encode_rows(rows))

    def encode_file(self, path):
        """Encodes all rows of a file, plain or gzip."""
        return self._inputs(self._encode_file(path))

    def encode_file_in_parts(self, path, rows=_ROWS_AT_ONCE):
        """Yields the inputs of so many rows at a time."""
        part = []
        for row in self._encode_file(path):
            part.append(row)
            if len(part) == rows:
                yield self._inputs(part)
                part = []
        if part:
            yield self._inputs(part)

    def ids(self, rows):
        """Returns for each row of dicts {field: its id, or the list of a bag's ids}."""
        return [
            {f.name: value for f, value in zip(self.fields, row) if f.type != "NUMERIC"}
            for row in self._encode_rows(rows)
        ]

    def _encode_file(self, path):
        if self._schema.has_columns_beside:
            raise ElastorError(
                f"{path}: columns of its rows are in side tables or histories, not in the file; "
                "expected encode() with rows that have them"
            )
        for line, texts in file_rows(os.fspath(path), self._schema):
            yield self._encode_row(texts, lambda: f"{path}:{line}: ")

    def _encode_rows(self, rows):
        if isinstance(rows, (str, bytes, dict)):
            raise ElastorError("encode() takes a list of dicts; encode_file() takes a path")
        sources = [
            field.name if self._schema.has_pairs else self._schema.source(field)
            for field in self.fields
        ]
        encoded = []
        for i, row in enumerate(rows):
            texts = []
            for field, source in zip(self.fields, sources):
                if source not in row:
                    raise ElastorError(
                        f"row {i}: has no column {source}, but {listed(row)}; None means missing"
                    )
                texts.append(self._text(i, field, row[source]))
            encoded.append(self._encode_row(texts, lambda: f"row {i}: "))
        return encoded

    def _text(self, row, field, value):
        try:
            if field.is_bag and isinstance(value, (list, tuple, np.ndarray)):
                return [text_of(one) for one in value]
            if isinstance(value, (float, np.floating)):
                if field.type == "NUMERIC" or "BUCKET" in field.transform:
                    return b"" if math.isnan(value) else repr(float(value)).encode()
                if math.isnan(value):
                    return b""  # as pandas marks what is missing
            text = text_of(value)
            return b"" if text in self._schema.nulls else text
        except BadValue as bad:
            raise ElastorError(f"row {row}: field {field.name}: {bad}") from None

    def _encode_row(self, texts, where):
        row = []
        for field, encoder, text in zip(self.fields, self._encoders, texts):
            try:
                row.append(encoder.encode(text))
            except BadValue as bad:
                raise ElastorError(f"{where()}field {field.name}: {bad}") from None
        return row

    def _inputs(self, rows):
        rows = list(rows)
        columns = dict(zip((f.name for f in self.fields), zip(*rows)))
        inputs = {}
        numeric = [entry["name"] for entry in self._features["encoding"]["numeric"]]
        if numeric:
            inputs["numeric"] = np.empty((len(rows), len(numeric)), np.float32)
        for i, name in enumerate(numeric):
            with np.errstate(over="ignore"):
                column = _flushed(np.array(columns.get(name, []), np.float64).astype(np.float32))
            if np.isinf(column).any():
                row = int(np.isinf(column).argmax())
                raise ElastorError(f"row {row}: field {name}: infinite once it is standardised")
            inputs["numeric"][:, i] = column
        entries = self._features["embeddings"]
        if entries:
            width = max(entry["first"] + entry["width"] for entry in entries)
            inputs["embeddings"] = np.empty((len(rows), width), np.float32)
        for entry in entries:
            table = self._tables[entry["table"]]
            column, vectors = _bags(columns.get(entry["field"], []), entry), table.rows
            if table.keyed:
                column, vectors = self._found(table, column)
            part = slice(entry["first"], entry["first"] + entry["width"])
            inputs["embeddings"][:, part] = _pooled(column, vectors, entry["pooling"] == "mean")
        sequences = self._features.get("lengths", [])
        if sequences:
            inputs["lengths"] = np.empty((len(rows), len(sequences)), np.int64)
        for i, entry in enumerate(sequences):
            column = columns.get(entry["field"], [])
            inputs["lengths"][:, i] = [min(len(bag), entry["latest"]) for bag in column]
        return inputs


    def _found(self, table, column):
        """Places of a column's keys among vectors, and these vectors; made where there is no row."""
        bags = column and isinstance(column[0], list)
        keys = np.array([key for bag in column for key in bag] if bags else column, np.uint64)
        keys, places = np.unique(keys, return_inverse=True)
        there = table.has_rows(keys)
        vectors = np.empty((len(keys), table.width), np.float32)
        vectors[there] = table.vectors_of_ids(keys[there])
        made = self._features["keyed_tables"][table.name]
        if "unadmitted" not in made:
            vectors[~there] = initial_rows(
                int(made["random_key"], 16), keys[~there], made["init_stddev"], table.width
            )
        elif made["unadmitted"]:  # the table of one row a partition
            shared = self._tables[made["unadmitted"]]
            vectors[~there] = shared.vectors_of_ids(partitions(keys[~there]))
        else:
            vectors[~there] = 0
        if not bags:
            return places, vectors
        places = iter(places)
        return [[next(places) for _ in bag] for bag in column], vectors


def _bags(column, entry):
    """Of a sequence's bags the ids that the entry has: the latest, or the one at its position."""
    if "latest" not in entry:
        return column
    if entry["pooling"] == "none":
        return [[]] * len(column)
    column = [bag[-entry["latest"] :] for bag in column]
    if "position" not in entry:
        return column
    return [bag[entry["position"] : entry["position"] + 1] for bag in column]


def _flushed(values):
    """Values with denormal numbers as zeros, as the trainer computes."""
    small = np.abs(values) < _LEAST_NORMAL
    return np.where(small, np.copysign(np.float32(0), values), values) if small.any() else values


def _pooled(column, vectors, mean):
    """Vectors of ids, or of bags of ids: added in order, from a copy of the first."""
    if not len(column) or not isinstance(column[0], list):
        return vectors[np.array(column, np.int64)]
    lengths = np.array([len(bag) for bag in column])
    pooled = np.zeros((len(column), vectors.shape[1]), np.float32)
    for place in range(lengths.max(initial=0)):
        longer = np.flatnonzero(lengths > place)
        added = vectors[[column[row][place] for row in longer]]
        pooled[longer] = added if place == 0 else _flushed(pooled[longer] + added)
    if mean:
        several = lengths > 1
        scale = np.float32(1) / lengths[several].astype(np.float32)
        pooled[several] = _flushed(pooled[several] * scale[:, None])
    return pooled
