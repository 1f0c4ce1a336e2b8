"""Reads what a run writes: its records as arrays, its summary, its predictions."""
import csv
import json
import os

import numpy as np

from .errors import ElastorError, listed, read_bytes


class Records:
    """Records of one kind. records["loss"] is an array with an element a record.

    A number that a record does not have, or that is null, is NaN; another value is None. A field
    that no record has is an error.
    """

    def __init__(self, records, where):
        self._records = records
        self._where = where

    def __len__(self):
        return len(self._records)

    @property
    def fields(self):
        """Names of all fields that some record has."""
        return list(dict.fromkeys(name for record in self._records for name in record))

    def __contains__(self, field):
        return field in self.fields

    def __getitem__(self, field):
        if field not in self:
            raise ElastorError(
                f"{self._where}: "
                + (
                    f"no record has '{field}'; their fields are {listed(self.fields)}"
                    if self._records
                    else "there are no such records"
                )
            )
        return _array([record.get(field) for record in self._records])

    def where(self, **values):
        """Returns the records whose fields have these values: spectra.where(stage="embedding")."""
        for field in values:
            self[field]
        kept = [r for r in self._records if all(r.get(f) == v for f, v in values.items())]
        return Records(kept, self._where)

    def to_dict(self):
        """Returns {field: array} of all fields, as pandas.DataFrame takes it."""
        return {field: self[field] for field in self.fields}

    def __repr__(self):
        return f"<{len(self)} records: {listed(self.fields)}>"


def _array(values):
    kinds = {type(value) for value in values}
    if kinds <= {int, bool} and len(kinds) == 1:
        return np.array(values)
    if kinds <= {int, float, type(None)}:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    if kinds == {str}:
        return np.array(values)
    if kinds == {list}:
        lengths = {len(value) for value in values}
        numbers = all(type(one) in (int, float) for value in values for one in value)
        if len(lengths) == 1 and numbers:
            return np.array(values)
    array = np.empty(len(values), object)
    array[:] = values
    return array


class Run:
    """The records of a run, finished or not.

    train, validation, test, training_rows: of steps, and of evaluations of a split. training_rows
    are `training_eval` lines. spectra, training_spectra, scoring, ntk, checkpoints: the other kinds.
    summary: summary.json as a dict; None while the run goes on, or if it ended early.
    """

    def __init__(self, path, records, summary):
        self.path = path
        self._all = records
        self.summary = summary
        evaluations = self.records("eval")
        self.train = self.records("train")
        self.validation, self.test = (
            Records([r for r in evaluations._records if r.get("split") == split], where)
            for split, where in (
                ("validation", f"{path}: evaluations of the validation split"),
                ("test", f"{path}: evaluations of the test split"),
            )
        )
        self.training_rows = self.records("training_eval")
        self.spectra = self.records("spectrum")
        self.training_spectra = self.records("training_spectrum")
        self.scoring = self.records("scoring")
        self.ntk = self.records("ntk")
        self.checkpoints = self.records("checkpoint")

    @property
    def finished(self):
        return self.summary is not None

    def records(self, event):
        """Returns the records of one `event`, as metrics.jsonl names it."""
        return Records(
            [record for record in self._all if record["event"] == event],
            f"{self.path}: {event} records",
        )

    def labels(self, split="validation"):
        """Returns the metrics of every label: a record a label of each evaluation."""
        return self._within("labels", split)

    def slices(self, split="validation"):
        """Returns the metrics of every slice: a record a slice of each evaluation."""
        return self._within("slices", split)

    def _within(self, name, split):
        found = []
        for record in self._all:
            if record["event"] != "eval" or record.get("split") != split:
                continue
            of_labels = record.get("labels", []) if name == "slices" else []
            for owner in of_labels or [record]:
                for one in owner.get(name, []):
                    label = {"label": owner["label"]} if "label" in owner else {}
                    found.append({"step": record["step"], **label, **one})
        return Records(found, f"{self.path}: {name} of the {split} split")

    def __repr__(self):
        steps = self.train["step"][-1] if len(self.train) else 0
        return f"<run {self.path}: {'finished' if self.finished else 'unfinished'}, step {steps}>"


def _flattened(record):
    """phase_s: {"compute": 1} becomes "phase_s.compute": 1."""
    flat = {}
    for name, value in record.items():
        if isinstance(value, dict):
            flat.update({f"{name}.{inner}": one for inner, one in value.items()})
        else:
            flat[name] = value
    return flat


def read_run(path):
    """Reads the folder of a run. While the run is being written, its last line may be cut off: it is
    left out, and summary is None. A resumed run has the records up to its checkpoint, then its own.
    """
    path = os.fspath(path)
    file = os.path.join(path, "metrics.jsonl")
    if not os.path.exists(file) and os.path.exists(os.path.join(path, "manifest.json")):
        raise ElastorError(f"{path}: is a model; expected a run, or read_model()")
    if not os.path.exists(file) and os.path.exists(os.path.join(path, "runs.csv")):
        raise ElastorError(f"{path}: is a sweep; expected one of its runs, {path}/runs/...")
    lines = read_bytes(file, "the folder of a run, --output_dir").split(b"\n")[:-1]
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = _flattened(json.loads(line))
            record["event"]
        except (ValueError, KeyError, AttributeError):
            raise ElastorError(f"{file}:{number}: a damaged line; expected a record") from None
        records.append(record)
    summary = os.path.join(path, "summary.json")
    if not os.path.exists(summary):
        return Run(path, records, None)
    try:
        return Run(path, records, json.loads(read_bytes(summary, "a summary")))
    except ValueError:
        raise ElastorError(f"{summary}: not JSON; the file is damaged") from None


def read_predictions(path):
    """Reads predictions.csv, or that of a folder, as {column: array}.

    `index` is int64; labels, probabilities and logits are float64. What is empty is NaN: a missing
    label, and the probability of a bad row.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        path = os.path.join(path, "predictions.csv")
    text = read_bytes(path, "predictions.csv, or a folder that holds it").decode()
    rows = list(csv.reader(text.splitlines()))
    if not rows or rows[0][:1] != ["index"]:
        raise ElastorError(f"{path}: not predictions; expected a header that begins with index")
    columns = len(rows[0])
    try:
        values = np.array([[float(v or "nan") for v in row] for row in rows[1:]], np.float64)
        values = values.reshape(len(rows) - 1, columns)
    except ValueError:
        raise ElastorError(f"{path}: a damaged line; expected {','.join(rows[0])}") from None
    named = {name: values[:, i].copy() for i, name in enumerate(rows[0])}
    named["index"] = named["index"].astype(np.int64)
    return named
