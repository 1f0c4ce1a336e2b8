"""Scores raw rows by an exported model alone, with onnxruntime, and compares with the trainer's.

  onnx_oracle.py EXPORT ROWS PREDICTIONS

EXPORT: the folder of --mode=export. ROWS: a file of raw rows, DELIMITED, whose categorical fields have
vocabularies. PREDICTIONS: their predictions.csv. Prints the largest difference of a probability; exit
code 1 when it is above 1e-5.
"""
import csv
import json
import math
import re
import struct
import sys

import numpy as np
import onnxruntime

MOST = 1e-5
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}


def read_tables(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
    data = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + size)
    return {
        name: data[slice(*entry["data_offsets"])].view("<f4").reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def read_vocabulary(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        values = (line.split("\t")[0] for line in file)
        return {
            re.sub(r"\\(.)", lambda m: ESCAPES[m[1]], value): i + 1
            for i, value in enumerate(values)
        }


def read_fields(path):
    """[(name, type, column)], the delimiter, and whether there is a header."""
    text = open(path, encoding="utf-8").read()
    fields = []
    for body in re.findall(r"fields \{(.*?)\n\}", text, re.S):
        entry = dict(re.findall(r"(\w+): \"?([^\"\n]*)", body))
        fields.append((entry["name"], entry.get("type", "NUMERIC"), entry.get("column")))
    delimiter = re.search(r'^delimiter: "(.*)"', text, re.M)
    return fields, delimiter[1] if delimiter else "\t", "header: true" in text


def transformed(text, field):
    if text == "":
        return math.nan
    x = float(text)
    if field["transform"].startswith("log2"):
        x = math.floor(math.log(x) ** 2) if x > 2 else x
    return (x - field["mean"]) / field["stddev"]


def main(export, rows_path, predictions_path):
    features = json.load(open(f"{export}/features.json"))
    tables = read_tables(f"{export}/embeddings.safetensors")
    fields, delimiter, header = read_fields(f"{export}/schema.textproto")
    rows = list(csv.reader(open(rows_path, newline=""), delimiter=delimiter))
    names = rows.pop(0) if header else [name for name, _, _ in fields]
    column = {name: names.index(source or name) for name, _, source in fields}

    inputs = {}
    numeric = features["encoding"]["numeric"]
    if numeric:
        inputs["numeric"] = np.array(
            [[transformed(row[column[f["name"]]], f) for f in numeric] for row in rows], np.float32
        )
    columns = []
    for entry in features["embeddings"]:
        vocabulary = read_vocabulary(f"{export}/vocabulary/{entry['table']}.tsv")
        ids = [vocabulary.get(row[column[entry["field"]]], 0) for row in rows]
        columns.append(tables[entry["table"]][ids])
    if columns:
        inputs["embeddings"] = np.concatenate(columns, axis=1)

    session = onnxruntime.InferenceSession(
        f"{export}/model.onnx", providers=["CPUExecutionProvider"]
    )
    found = session.run(["probabilities"], inputs)[0]
    expected = np.array(
        [[float(p) for p in row[2::2]] for row in list(csv.reader(open(predictions_path)))[1:]]
    )
    assert found.shape == expected.shape, (found.shape, expected.shape)
    difference = np.abs(found - expected).max()
    print(f"{features['model']}: {len(rows)} rows, largest difference {difference:.2e}")
    return 0 if difference <= MOST else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
