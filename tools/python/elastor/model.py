"""Reads a model: RUN/model, a checkpoint, or the folder of an export."""
import json
import os
import re

import numpy as np

from .errors import ElastorError, listed, read_bytes
from .fields import IdEncoder, read_vocabulary, vocabulary_file_name
from .safetensors import SafetensorsFile
from .schema import parse_schema
from .table import Table
from .xxh3 import hash_text

_NO_SCHEMA = "does not tell how values become ids, as its data were planted; use vectors_of_ids()"
_NO_VOCABULARY = (
    "holds no vocabularies, as checkpoints do not; expected RUN/model, or use vectors_of_ids()"
)
_DELETED = "/deleted"  # behind the name of a keyed table, in a delta
_SEAL = re.compile(rb'([0-9a-f]{16})"\n}\n\Z')


class Model:
    """Tables and dense parameters.

    path, description: the folder, and its manifest.json or features.json as a dict.
    dense: {name: array}; empty for an export, which has them in model.onnx.
    tables: {name: Table}. Fields that share a table have it under its owner's name; table(field)
    finds it for every field.
    """

    def __init__(self, path, description, dense, tables, owners):
        self.path = path
        self.description = description
        self.dense = dense
        self.tables = tables
        self._owners = owners

    def table(self, field):
        """Returns the table of a categorical field."""
        name = self._owners.get(field, field)
        if name not in self.tables:
            raise ElastorError(
                f"{self.path}: has no table of field {field}; its fields are {listed(self._owners)}"
            )
        return self.tables[name]

    def __repr__(self):
        return f"<model {self.path}: {len(self.dense)} dense tensors, {len(self.tables)} tables>"


def read_model(path, verify=True):
    """Reads a model. verify: whether the hashes of all data are compared."""
    path = os.fspath(path)
    if os.path.exists(os.path.join(path, "features.json")):
        return _read_export(path)
    manifest = _read_manifest(path)
    dense_entry = manifest["dense"]
    dense_file = SafetensorsFile(
        os.path.join(path, dense_entry["name"]), dense_entry["header_xxh3"] if verify else None
    )
    dense = {
        name: dense_file.read(name, [(0, None, hash)] if verify else None)
        for name, hash in dense_entry["tensors"].items()
        if "/" not in name  # slots of an optimizer are NAME/m and the like
    }
    parts = _parts(path, manifest, verify)
    keyed = _keyed_tables(manifest)
    deleted = {name: part for name, part in parts.items() if _holds_deletions(name, keyed)}
    if "base" in manifest:
        base = os.path.join(os.path.dirname(os.path.realpath(path)), manifest["base"]["name"])
        base_parts = _parts(base, _read_manifest(base, manifest["base"]["manifest_xxh3"]), verify)
        parts = {name: base_parts.get(name, []) + part for name, part in parts.items()}
    rows = {
        name: _joined(part, [keys for keys, _ in deleted.get(name + _DELETED, [])])
        for name, part in parts.items()
        if name not in deleted
    }
    tables, owners = make_tables(path, manifest.get("encoding") or {}, rows)
    return Model(path, manifest, dense, tables, owners)


def _read_manifest(path, seal=None):
    """seal: the hash that it must end with, as a delta names its base; None: any."""
    file = os.path.join(path, "manifest.json")
    if not os.path.exists(file) and os.path.exists(os.path.join(path, "metrics.jsonl")):
        raise ElastorError(f"{path}: is a run; expected its model, {os.path.join(path, 'model')}")
    text = read_bytes(file, "the folder of a model, RUN/model, or of a checkpoint")
    match = _SEAL.search(text)
    if match is None or hash_text(text[: match.start()]) != match[1].decode():
        raise ElastorError(
            f"{file}: the text does not match its hash; the file is damaged or was edited"
        )
    manifest = json.loads(text)
    if manifest.get("format") != "elastor-checkpoint" or manifest.get("version") not in range(1, 7):
        raise ElastorError(f"{file}: not a manifest of a version from 1 to 6")
    if small := manifest.get("publication", {}).get("rows"):
        raise ElastorError(
            f"{file}: has {small} rows, for scoring alone; expected a model with FLOAT32 rows"
        )
    if manifest.get("publication", {}).get("delta"):
        raise ElastorError(f"{file}: a published delta, which is no whole model; expected a base")
    if seal is not None and seal != match[1].decode():
        raise ElastorError(f"{file}: is not the base of the delta, but was written later")
    return manifest


def _parts(path, manifest, verify):
    """{table: [(keys, rows)]}, one of every file; later ones win. Deleted keys have no rows."""
    counts = {table["name"] for table in manifest["tables"] if table.get("counts")}
    counts |= {name + _DELETED for name in counts}
    parts = {table["name"]: [] for table in manifest["tables"] if table["name"] not in counts}
    keyed = _keyed_tables(manifest)
    for entry in manifest["embedding"]:
        file = SafetensorsFile(
            os.path.join(path, entry["name"]), entry["header_xxh3"] if verify else None
        )
        for table, pieces in entry["pieces"].items():
            if table in counts:  # of training alone
                continue
            ends = np.cumsum([piece[2] for piece in pieces])
            begins = [0, *ends[:-1]]

            def read(column, place):
                hashes = [(b, e, piece[place]) for b, e, piece in zip(begins, ends, pieces)]
                return file.read(f"{table}/{column}", hashes if verify else None)

            keys = read("keys", 3)
            rows = None if _holds_deletions(table, keyed) else read("rows", 4)
            parts[table].append((keys.view(np.uint64) if table in keyed else keys, rows))
    return parts


def _keyed_tables(manifest):
    return {table["name"] for table in manifest["tables"] if table.get("keyed")}


def _holds_deletions(table, keyed):
    return table in keyed and table.endswith(_DELETED)


def _joined(parts, deleted):
    """Keys, ascending, and their rows; of equal keys the last. deleted: keys that are left out."""
    if not parts:
        return np.empty(0, np.int64), np.empty((0, 0), np.float32)
    keys = np.concatenate([keys for keys, _ in parts])[::-1]
    rows = np.concatenate([rows for _, rows in parts])[::-1]
    keys, places = np.unique(keys, return_index=True)
    if deleted:
        kept = ~np.isin(keys, np.concatenate(deleted))
        keys, places = keys[kept], places[kept]
    return keys, rows[places]


def _read_export(path):
    features, schema = read_features(path)
    encoding = dict(features["encoding"], schema=schema)
    tables, owners = make_tables(path, encoding, export_rows(path, encoding))
    return Model(path, features, {}, tables, owners)


def export_rows(path, encoding):
    """{table: (keys or None, rows)} of an export."""
    tensors = SafetensorsFile(os.path.join(path, "embeddings.safetensors"))
    keys = {
        entry["name"]: entry["name"] + "/keys"
        for entry in encoding.get("categorical", [])
        if entry.get("keyed") and entry["shares"] < 0
    }
    return {
        name: (
            tensors.read(keys[name]).view(np.uint64) if name in keys else None,
            tensors.read(name),
        )
        for name in tensors
        if name not in keys.values()
    }


def read_features(path):
    """Returns features.json and the text of the schema, which is None where there is none."""
    file = os.path.join(path, "features.json")
    text = read_bytes(file, "the folder that trainer --mode=export has written")
    try:
        features = json.loads(text)
        features["encoding"], features["embeddings"]
    except (ValueError, KeyError, TypeError):
        raise ElastorError(f"{file}: not what trainer --mode=export writes") from None
    schema = os.path.join(path, "schema.textproto")
    if not os.path.exists(schema):
        return features, None
    return features, read_bytes(schema, "a schema").decode("utf-8", "surrogateescape")


def make_tables(path, encoding, rows):
    """Returns {name: Table}, and the owner's name of every field's table.

    encoding: of a manifest or of features.json. rows: {table: (ids or None, rows)}.
    """
    entries = {entry["name"]: entry for entry in encoding.get("categorical", [])}
    names = list(entries)
    owners = {
        name: names[entry["shares"]] if entry["shares"] >= 0 else name
        for name, entry in entries.items()
    }
    schema = encoding.get("schema")
    fields = parse_schema(schema, f"{path}: its schema").by_name if schema else {}
    tables = {}
    for name, (ids, vectors) in rows.items():
        encoder, values = _NO_SCHEMA, None
        if name in fields:
            encoder, values = _encoder_of(path, fields[name], entries[name])
        tables[name] = Table(name, ids, vectors, encoder, values, path)
    return tables, owners or {name: name for name in tables}


def _encoder_of(path, field, entry):
    if "vocabulary_checksum" not in entry:
        return IdEncoder(field, None), None
    folder = os.path.join(path, "vocabulary")
    if not os.path.isdir(folder):
        return _NO_VOCABULARY, None
    values = read_vocabulary(os.path.join(folder, vocabulary_file_name(field.name)), entry)
    return IdEncoder(field, {value: i + 1 for i, value in enumerate(values)}), values
