"""The checks of python_test.sh, which calls this in a folder of its own.

  python_reader.py make    writes raw rows, schemas and an experiment
  python_reader.py check   compares the package elastor with what the programs made of them
"""
import contextlib
import csv
import io
import json
import os
import pathlib
import random
import re
import struct
import sys
import unittest

import elastor
import numpy as np

SCHEMAS = {
    "csv": """
name: "csv" layout: DELIMITED delimiter: "," header: true quoted: true null: "NULL" null: "\\\\N"
fields { name: "click" type: LABEL }
fields { name: "user" type: CATEGORICAL min_count: 3 }
fields { name: "item" type: CATEGORICAL }
fields { name: "seen" type: SEQUENCE max_length: 4 shares: "item" pooling: MEAN }
fields { name: "tags" type: MULTI_HOT encoding: IDENTITY buckets: 9 offset: -4 separator: " " max_length: 3 }
fields { name: "words" type: MULTI_HOT encoding: HASH buckets: 50 pooling: MEAN }
fields { name: "price" type: NUMERIC transform: STANDARDIZE }
fields { name: "size" type: NUMERIC transform: LOG2_STANDARDIZE }
fields { name: "plain" type: NUMERIC column: "price" }
fields { name: "log" type: NUMERIC transform: LOG2 column: "size" }
fields { name: "bucket" type: CATEGORICAL transform: BUCKET boundaries: -1.5 boundaries: 0 boundaries: 7.25
         column: "price" encoding: HASH buckets: 7 }
fields { name: "log_bucket" type: CATEGORICAL transform: LOG2_BUCKET column: "size" }
fields { name: "importance" type: WEIGHT }
fields { name: "at" type: TIME time_format: YYYY_MM_DD_HH_MM_SS }
fields { name: "hour" type: CATEGORICAL transform: HOUR encoding: IDENTITY buckets: 24 column: "at"
         time_format: YYYY_MM_DD_HH_MM_SS }
fields { name: "day" type: CATEGORICAL transform: WEEKDAY column: "at" time_format: YYYY_MM_DD_HH_MM_SS }
fields { name: "free" type: CATEGORICAL transform: WEEKEND column: "at" time_format: YYYY_MM_DD_HH_MM_SS }
fields { name: "page" type: CATEGORICAL encoding: HASH buckets: 31 }
fields { name: "whole_page" type: CATEGORICAL column: "page" }
fields { name: "pages" type: MULTI_HOT shares: "page" column: "seen" }
""",
    "libsvm": """
name: "libsvm" layout: LIBSVM
fields { name: "item" type: CATEGORICAL }
fields { name: "weight" type: NUMERIC transform: LOG2 }
fields { name: "others" type: MULTI_HOT pooling: MEAN }
""",
    "planted": """
name: "planted" layout: SYNTHETIC split { train: 0.9 validation: 0.1 }
synthetic { rows: 2000 seed: 1 numeric_fields: 2 categorical_fields: 3 ids_per_field: 3000 }
""",
    "stream": """
name: "stream" layout: SYNTHETIC split { train: 0.9 validation: 0.1 }
synthetic { rows: 2000 seed: 1 numeric_fields: 2 categorical_fields: 3 ids_per_field: 3000 drift: 3 }
""",
}
EXPERIMENT = """
model { kind: MLP hidden: [8, 4] batch_norm: true }
embedding { width: 3 init_stddev: 0.1 }
optimizer { learning_rate: 0.02 }
training { batch_size: 100 seed: 3 epochs: 3 log_every_steps: 5 eval_every_steps: 12 monitor { best_weights: true } }
evaluation { slice_by: "day" slice_values: 2 train_rows: 100 }
spectrum { every_steps: 12 samples: 50 }
checkpoint { every_steps: 10 }
"""
# Beside e^sqrt(n), the last bits of ln(x) decide about floor(ln(x)^2). At the first four libm's logarithm gives another
# number than the trainer's.
STEPS = ["198.64168465893388", "239.18219293451378", "312.4869306987895", "370.9546370761335", "4.113250378782927",
         "2.718281828459045", "7.38905609893065"]
NUMBERS = ["", "NULL", "0", "-0", "-0.0", "+3", ".5", "5.", "1e-3", "12.25", "-7E2", "1e-400", "2", "4095",
           "4096", "123456789012345678", "1e-42", "-1e-42", "1e-310", *STEPS]
LARGEST = "3.4e38"  # in rows that are not trained on


def make_row(r, i, numbers):
    user, item = r.randrange(60), r.randrange(60)
    price = r.choice(numbers) if r.random() < 0.4 else f"{r.uniform(-20, 20):.3f}"
    size = r.choice(NUMBERS) if r.random() < 0.4 else str(int(r.random() ** 3 * 9000))
    pages = ["", "NULL", 'a "quoted", page', "tab\tand \\ back", "zwei\nZeilen", "ü" * 40, "x" * r.randrange(700),
             f"page {r.randrange(40)}"]
    return [
        int(r.random() < (0.2 if user % 3 else 0.6)),
        r.choice(["", f"u{user}"]) if r.random() < 0.2 else f"u{user}",
        f"i{item}",
        "|".join(f"i{r.randrange(90)}" for _ in range(r.randrange(7))),
        " ".join(str(r.randrange(-4, 5)) for _ in range(r.randrange(5))) + " " * r.randrange(2),
        "|".join("w" * r.randrange(1, 20) for _ in range(r.randrange(4))),
        price,
        size,
        1 + i % 3 * 0.5,
        f"20{r.randrange(10, 30)}-{r.randrange(1, 13):02}-{r.randrange(1, 29):02}"
        + r.choice(["", f" {r.randrange(24):02}:{r.randrange(60):02}:00", "T23:59:59"]),
        r.choice(pages),
    ]


def make():
    names = ["click", "user", "item", "seen", "tags", "words", "price", "size", "importance", "at", "page"]
    for seed, (name, rows) in enumerate([("train", 1200), ("test", 500), ("validation", 300)]):
        r = random.Random(seed)
        with open(f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\r\n" if name == "test" else "\n")
            writer.writerow(names)
            writer.writerows(make_row(r, i, NUMBERS + [LARGEST] * (name == "test")) for i in range(rows))
        with open(f"{name}.libsvm", "w", encoding="utf-8") as file:
            for i in range(rows):
                others = "".join(f" {r.randrange(40)}:1" for _ in range(r.randrange(4)))
                file.write(f"{i % 2} {r.randrange(30)}:1\t2:{r.uniform(0, 50):.2f}{others}\n")
    for name, text in SCHEMAS.items():
        pathlib.Path(f"{name}.textproto").write_text(text)
    pathlib.Path("csv.experiment").write_text(EXPERIMENT)


def prepared_rows(folder):
    """Numbers [rows, fields], and {field: ids or lists of ids} of the test split, by data_format.md."""
    meta = json.loads(read(f"{folder}/meta.json"))
    data = pathlib.Path(f"{folder}/test.rows").read_bytes()
    rows, categorical = meta["splits"]["test"]["rows"], meta["categorical"]
    assert rows <= meta["rows_per_block"]
    at = 0

    def section(dtype, *shape):
        nonlocal at
        values = np.frombuffer(data, dtype, count=int(np.prod(shape)), offset=at).reshape(shape)
        at += -(-values.nbytes // 8) * 8
        return values

    section("<f4", rows)
    if meta["weights"]:
        section("<f4", rows)
    if meta["times"]:
        section("<i8", rows)
    numbers = section("<f4", rows, len(meta["numeric"]))
    singles = [field["name"] for field in categorical if not field["multi_hot"]]
    bags = [field["name"] for field in categorical if field["multi_hot"]]
    ids = section("<u4", rows, len(singles))
    ends = [0, *section("<u4", rows * len(bags))]
    heap = section("<u4", ends[-1])
    fields = {name: ids[:, i].tolist() for i, name in enumerate(singles)}
    for i, name in enumerate(bags):
        places = range(i, rows * len(bags), len(bags))
        fields[name] = [heap[ends[b] : ends[b + 1]].tolist() for b in places]
    return numbers, fields


def read(path):
    return pathlib.Path(path).read_bytes().decode()


def bits(array):
    return np.ascontiguousarray(array, np.float32).view(np.uint32)


def read_tensors(path):
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return {
        name: np.frombuffer(data[8 + size :][slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
        for name, entry in json.loads(data[8 : 8 + size]).items()
    }


def rows_as_dicts():
    return list(csv.DictReader(io.StringIO(read("test.csv"), newline="")))


class EncoderTest(unittest.TestCase):
    def expect_encoded(self, inputs, layout):
        """The inputs are those of the prepared rows: numbers by their bits, vectors pooled one by one."""
        numbers, fields = prepared_rows(f"{layout}.data")
        np.testing.assert_array_equal(np.isnan(inputs["numeric"]), np.isnan(numbers))
        there = ~np.isnan(numbers)
        np.testing.assert_array_equal(bits(inputs["numeric"])[there], bits(numbers)[there])
        tables = read_tensors(f"{layout}.onnx/embeddings.safetensors")
        features = json.loads(read(f"{layout}.onnx/features.json"))["embeddings"]
        self.assertEqual([f["field"] for f in features], list(fields) if layout == "libsvm" else [
            "user", "item", "seen", "tags", "words", "bucket", "log_bucket", "hour", "day", "free", "page",
            "whole_page", "pages"])
        for feature in features:
            table = tables[feature["table"]]
            for row, bag in enumerate(fields[feature["field"]]):
                bag = bag if isinstance(bag, list) else [bag]
                expected = np.zeros(feature["width"], np.float32)
                for place, one in enumerate(bag):
                    expected = table[one] if place == 0 else expected + table[one]
                if feature["pooling"] == "mean" and len(bag) > 1:
                    expected = expected * (np.float32(1) / np.float32(len(bag)))
                found = inputs["embeddings"][row, feature["first"] : feature["first"] + feature["width"]]
                np.testing.assert_array_equal(bits(found), bits(expected), f"{feature['field']}, row {row}")

    def test_files_are_encoded_as_prepare_does(self):
        for layout in ("csv", "libsvm"):
            self.expect_encoded(elastor.Encoder(f"{layout}.onnx").encode_file(f"test.{layout}"), layout)

    def test_the_latest_ids_of_sequences(self):
        bags = [bag[-2:] for bag in prepared_rows("csv.data")[1]["seen"]]
        self.assertEqual({len(bag) for bag in bags}, {0, 1, 2})
        nothing = np.zeros(3, np.float32)
        for name in ("mean", "din"):
            table = read_tensors(f"{name}.onnx/embeddings.safetensors")["item"]
            inputs = elastor.Encoder(f"{name}.onnx").encode_file("test.csv")
            features = json.loads(read(f"{name}.onnx/features.json"))["embeddings"]
            found = np.stack([inputs["embeddings"][:, f["first"] : f["first"] + f["width"]]
                              for f in features if f["field"] == "seen"], axis=1)
            for row, bag in enumerate(bags):
                vectors = [table[one] for one in bag]
                if name == "mean":  # of two vectors, by a multiplication that is exact
                    expected = [sum(vectors, nothing) * np.float32(1 / max(len(bag), 1))]
                else:  # the field's own vector, which the model makes, and the positions
                    expected = [nothing, *vectors, *[nothing] * (2 - len(bag))]
                    self.assertEqual(inputs["lengths"][row].tolist(), [len(bag)])
                np.testing.assert_array_equal(bits(found[row]), bits(expected), f"{name}, row {row}")

    def test_dicts_are_encoded_as_files(self):
        encoder = elastor.Encoder("csv.onnx")
        rows = rows_as_dicts()
        self.expect_encoded(encoder.encode(rows), "csv")
        for row, ids in zip(encoder.ids(rows), range(len(rows))):
            self.assertEqual(row, {n: v[ids] for n, v in prepared_rows("csv.data")[1].items()})
            break
        row = dict(rows[0], user=None, price=1.5, size=7, tags=[3, "-2"], seen="NULL")
        text = dict(rows[0], user="", price="1.5", size="7", tags="3 -2", seen="")
        for name, values in encoder.encode([row]).items():
            np.testing.assert_array_equal(bits(values), bits(encoder.encode([text])[name]))

    def test_parts_are_the_whole(self):
        encoder = elastor.Encoder("csv.onnx")
        parts = list(encoder.encode_file_in_parts("test.csv", rows=120))
        self.assertEqual(len(parts), 5)
        for name, whole in encoder.encode_file("test.csv").items():
            np.testing.assert_array_equal(bits(np.concatenate([part[name] for part in parts])), bits(whole))

    def test_what_training_alone_needs_may_be_missing(self):
        with open("nolabel.libsvm", "w", encoding="utf-8") as file:
            file.writelines(line[2:] + "\n" for line in read("test.libsvm").splitlines())
        self.expect_encoded(elastor.Encoder("libsvm.onnx").encode_file("nolabel.libsvm"), "libsvm")
        rows = [{k: v for k, v in row.items() if k not in ("click", "importance")} for row in rows_as_dicts()]
        with open("nolabel.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        self.expect_encoded(elastor.Encoder("csv.onnx").encode_file("nolabel.csv"), "csv")

    def test_logits_by_the_dense_parameters_are_the_trainers(self):
        """The MLP by its formula: encoder, dense parameters and predictions belong together."""
        for layout in ("csv", "libsvm"):
            inputs = elastor.Encoder(f"{layout}.onnx").encode_file(f"test.{layout}")
            dense = elastor.read_model(f"{layout}/model").dense
            x = inputs["numeric"][:, :, None].astype(np.float64)
            e = np.where(np.isnan(x), dense["numeric.missing"], x * dense["numeric.vectors"])
            h = np.concatenate([e.reshape(len(x), -1), inputs["embeddings"]], axis=1)
            for layer in ("hidden0", "hidden1"):
                p = {name.split(".", 2)[2]: v for name, v in dense.items() if name.startswith(f"mlp.{layer}.")}
                h = h @ p["weight"].T.astype(np.float64) + p.get("bias", 0)
                if "norm.gain" in p:
                    scale = p["norm.gain"] / np.sqrt(p["norm.running_variance"] + 1e-5)
                    h = (h - p["norm.running_mean"]) * scale + p["norm.bias"]
                h = np.maximum(h, 0)
            logits = (h @ dense["mlp.output.weight"].T.astype(np.float64) + dense["mlp.output.bias"])[:, 0]
            scored = elastor.read_predictions(f"{layout}.scored")
            np.testing.assert_allclose(scored["logit"], logits, rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(scored["index"], np.arange(500))


class ModelTest(unittest.TestCase):
    def test_vectors_are_those_of_the_export(self):
        model, export = elastor.read_model("csv/model"), elastor.read_model("csv.onnx")
        exported = read_tensors("csv.onnx/embeddings.safetensors")
        self.assertEqual(list(model.tables), list(exported))
        for name, table in model.tables.items():
            np.testing.assert_array_equal(bits(table.rows), bits(exported[name][table.row_ids]))
            np.testing.assert_array_equal(export.tables[name].rows, exported[name])
            self.assertGreater(len(table.rows), 1)

    def test_a_value_has_the_vector_of_its_line(self):
        model = elastor.read_model("csv/model")
        exported = read_tensors("csv.onnx/embeddings.safetensors")
        for field in ("user", "whole_page"):
            lines = read(f"csv/model/vocabulary/{field}.tsv").split("\n")[:-1]
            table = model.table(field)
            self.assertEqual(len(table.values), len(lines) + 1)
            escapes = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}
            for i, line in enumerate(lines):
                value = re.sub(r"\\(.)", lambda m: escapes[m[1]], line.split("\t")[0])
                self.assertEqual(table.values[i + 1], value)
                np.testing.assert_array_equal(table[value], exported[field][i + 1])
                self.assertIn(value, table)
        user = model.table("user")
        np.testing.assert_array_equal(user.ids(["nobody", None, ""]), [0, 0, 0])
        np.testing.assert_array_equal(user["nobody"], exported["user"][0])
        self.assertNotIn("nobody", user)
        self.assertIs(model.table("seen"), model.table("item"))
        np.testing.assert_array_equal(model.table("hour").vectors([23])[0], exported["hour"][23])
        np.testing.assert_array_equal(model.table("tags").ids([-4, "4"]), [0, 8])

    def test_states_have_no_slots_and_deltas_have_their_base(self):
        for data in ("planted", "stream"):
            (step,) = os.listdir(f"whole.{data}")
            delta = elastor.read_model(f"{data}/checkpoints/{step}")
            whole = elastor.read_model(f"whole.{data}/{step}")
            self.assertIn("base", delta.description)
            self.assertNotIn("base", whole.description)
            self.assertEqual(set(delta.dense), set(elastor.read_model(f"{data}/model").dense))
            for name, values in whole.dense.items():
                np.testing.assert_array_equal(bits(delta.dense[name]), bits(values))
            self.assertEqual(list(whole.tables), ["C1", "C2", "C3"])
            for name, table in whole.tables.items():
                self.assertEqual(table.keyed, data == "stream")
                if table.keyed:
                    with self.assertRaisesRegex(elastor.ElastorError, "expected keys from 0 to 2.64 - 1"):
                        table.has_rows([2**64])
                np.testing.assert_array_equal(delta.tables[name].row_ids, table.row_ids)
                np.testing.assert_array_equal(bits(delta.tables[name].rows), bits(table.rows))

    def test_keys_and_initial_rows(self):
        """Keys by the package xxhash of PyPI, initial values by the trainer's FillNormal."""
        field = elastor.schema.parse_schema('fields { name: "u" type: CATEGORICAL encoding: HASHED_KEY }', "s")
        encoder = elastor.fields.IdEncoder(field.fields[0], None)
        self.assertEqual([encoder.encode(text) for text in (b"", b"0", b"user_1")],
                         [0, 0x1982E3A7BB241055, 0x20F909AB6F54D5A1])
        field.fields[0].encoding = "IDENTITY_KEY"
        encoder = elastor.fields.IdEncoder(field.fields[0], None)
        self.assertEqual([encoder.encode(text) for text in (b"", b"007", b"-1", b"18446744073709551615")],
                         [0, 7, 2**64 - 1, 2**64 - 1])
        for text in (b"18446744073709551616", b"-9223372036854775809", b"1.0", b"+1", b"x", b"9" * 5000):
            with self.assertRaisesRegex(elastor.fields.BadValue, "expected an integer from -2.63 to 2.64 - 1"):
                encoder.encode(text)
        rows = elastor.initial.initial_rows(0x0123456789ABCDEF, np.array([0, 1, 2**64 - 1], np.uint64), 1e-4, 6)
        expected = [[1.10069132e-05, -8.03099392e-05, -0.000222349263, 3.00901047e-05, -3.81040081e-05, 7.9339472e-05],
                    [-1.81970063e-05, 9.68948552e-06, 0.000131927969, 1.81369796e-05, -3.23985223e-05, -1.21511557e-05],
                    [-2.20242619e-05, 0.000182433374, -8.38799824e-05, 4.6522855e-06, 0.00013174022, 1.24703311e-05]]
        np.testing.assert_array_equal(bits(rows), bits(expected))

    def test_an_earlier_build_s_model(self):
        model = elastor.read_model(f"{os.environ['ELASTOR_TOP']}/tests/system/stored_runs/mlp/model")
        self.assertEqual(model.table("C1").rows.shape, (12, 2))
        np.testing.assert_array_equal(model.table("C1").vectors_of_ids([11, 0]), model.table("C1").rows[[11, 0]])

    def test_other_types_of_tensors(self):
        values = np.array([1.5, -2, 3e38, 0], np.float32)
        header = {name: {"dtype": name, "shape": [4], "data_offsets": [begin, end]} for name, begin, end in (
            ("F64", 0, 32), ("F32", 32, 48), ("BF16", 48, 56), ("F16", 56, 64), ("I64", 64, 96))}
        text = json.dumps(header).encode()
        halves = (values.view(np.uint32) >> 16).astype("<u2")
        with open("types.safetensors", "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text + values.astype("<f8").tobytes() + values.tobytes())
            file.write(halves.tobytes() + np.array([1, 2, 3, 4], "<f2").tobytes() + np.arange(4).tobytes())
        file = elastor.model.SafetensorsFile("types.safetensors")
        np.testing.assert_array_equal(file.read("F64"), values)
        np.testing.assert_array_equal(file.read("BF16"), (halves.astype(np.uint32) << 16).view(np.float32))
        np.testing.assert_array_equal(file.read("F16"), [1, 2, 3, 4])
        np.testing.assert_array_equal(file.read("I64"), np.arange(4))


class RunTest(unittest.TestCase):
    def test_records_are_those_of_the_csv(self):
        """metrics.csv, which the trainer writes by another path, has the same numbers."""
        run = elastor.read_run("csv")
        rows = list(csv.DictReader(io.StringIO(read("csv/metrics.csv"))))
        for kind, records, fields in (
            ("train", run.train, ("step", "loss", "gradient_norm", "samples_per_s")),
            ("eval", run.validation, ("step", "auc", "logloss", "rows")),
            ("training_eval", run.training_rows, ("step", "auc", "rows")),
            ("spectrum", run.spectra, ("step", "stable_rank_mean", "entropy_rank_stddev")),
            ("checkpoint", run.checkpoints, ("step", "write_s")),
        ):
            expected = [row for row in rows if row["event"] == kind and not row.get("field")]
            self.assertGreater(len(expected), 1)
            for field in fields:
                np.testing.assert_array_equal(records[field], [float(row[field]) for row in expected])
        slices = [row for row in rows if row["event"] == "eval" and row["field"]]
        np.testing.assert_array_equal(run.slices()["auc"], [float(row["auc"]) for row in slices])
        self.assertEqual(list(run.slices()["value"]), [row["value"] for row in slices])
        np.testing.assert_array_equal(run.train["step"], [5, 10, 15, 20, 25, 30, 35, 36])
        self.assertEqual(run.train["phase_s.compute"].shape, (8,))
        self.assertEqual(len(run.test), 0)

    def test_lists_and_missing_fields(self):
        run = elastor.read_run("csv")
        embedding = run.spectra.where(stage=run.spectra["stage"][0])
        self.assertEqual(embedding["stable_rank_histogram"].shape, (len(embedding), 32))
        self.assertEqual(set(run.spectra.where(step=12)["step"]), {12})
        base = elastor.read_run("planted").checkpoints["base"]
        self.assertEqual({type(value) for value in base}, {str, type(None)})
        self.assertEqual(run.train["epoch"].dtype, np.int64)
        self.assertEqual(run.validation["scheduled"].dtype, bool)
        self.assertEqual(run.summary["steps"], 36)
        self.assertIsNone(run.summary["gauc"])
        self.assertEqual(run.train.to_dict().keys(), set(run.train.fields))
        records = elastor.Records([{"a": 1, "c": "x"}, {"a": None, "b": 2}], "here")
        np.testing.assert_array_equal(records["a"], [1, np.nan])
        np.testing.assert_array_equal(records["b"], [np.nan, 2])
        self.assertEqual(list(records["c"]), ["x", None])

    def test_a_run_that_is_being_written(self):
        os.makedirs("writing", exist_ok=True)
        lines = pathlib.Path("unfinished.jsonl").read_bytes()
        pathlib.Path("writing/metrics.jsonl").write_bytes(lines + b'{"event":"train","step":25,"lo')
        run = elastor.read_run("writing")
        self.assertFalse(run.finished)
        np.testing.assert_array_equal(run.train["step"], [5, 10, 15, 20])
        # The resumed run has the same records, and those behind them.
        whole = elastor.read_run("csv")
        self.assertTrue(whole.finished)
        np.testing.assert_array_equal(whole.train["loss"][:4], run.train["loss"])
        pathlib.Path("writing/metrics.jsonl").write_bytes(b"")
        self.assertEqual(len(elastor.read_run("writing").train), 0)

    def test_predictions(self):
        scored = elastor.read_predictions("csv.scored/predictions.csv")
        rows = list(csv.DictReader(io.StringIO(read("csv.scored/predictions.csv"))))
        np.testing.assert_array_equal(scored["probability"], [float(row["probability"]) for row in rows])
        pathlib.Path("bad.csv").write_text("index,click,click.probability\n0,,0.25\n1,,\n")
        bad = elastor.read_predictions("bad.csv")
        np.testing.assert_array_equal(bad["click.probability"], [0.25, np.nan])
        self.assertEqual(bad["index"].dtype, np.int64)


def damaged(path, at=-20):
    data = bytearray(pathlib.Path(path).read_bytes())
    data[at] ^= 1
    return bytes(data)


@contextlib.contextmanager
def contents(path, data):
    file = pathlib.Path(path)
    before = file.read_bytes()
    try:
        file.write_bytes(data)
        yield
    finally:
        file.write_bytes(before)


class MistakesTest(unittest.TestCase):
    def expect_line(self, pattern, function, *arguments):
        with self.assertRaises(elastor.ElastorError) as caught:
            function(*arguments)
        self.assertNotIn("\n", str(caught.exception))
        self.assertIn(pattern, str(caught.exception))

    def test_folders(self):
        self.expect_line("nowhere/metrics.jsonl: No such file or directory; expected the folder of a run",
                         elastor.read_run, "nowhere")
        self.expect_line("csv/model: is a model; expected a run, or read_model()", elastor.read_run, "csv/model")
        self.expect_line("csv: is a run; expected its model, csv/model", elastor.read_model, "csv")
        self.expect_line("csv.data/manifest.json: No such file", elastor.read_model, "csv.data")
        self.expect_line("csv/model/features.json: No such file or directory; expected the folder that trainer "
                         "--mode=export has written", elastor.Encoder, "csv/model")
        self.expect_line("planted.onnx: does not tell how raw rows are encoded", elastor.Encoder, "planted.onnx")
        self.expect_line("test.csv: not predictions; expected a header that begins with index",
                         elastor.read_predictions, "test.csv")

    def test_names(self):
        run, model = elastor.read_run("csv"), elastor.read_model("csv/model")
        self.expect_line("csv: train records: no record has 'los'; their fields are event, step, epoch, loss",
                         lambda: run.train["los"])
        self.expect_line("csv: evaluations of the test split: there are no such records", lambda: run.test["auc"])
        self.expect_line("csv/model: has no table of field C1; its fields are user, item", model.table, "C1")
        self.expect_line("table hour: found '24', expected an id in [0, 24)", lambda: model.table("hour")[24])
        self.expect_line("table tags: found '1.5', expected a text, an integer or None",
                         lambda: model.table("tags")[1.5])
        self.expect_line("table page: has no vocabulary", lambda: model.table("page").values)
        self.expect_line("take a list of values", model.table("user").vectors, "u1")
        self.expect_line("holds no vocabularies, as checkpoints do not; expected RUN/model",
                         lambda: elastor.read_model("csv/checkpoints/step-0000000036").table("user")["u1"])
        self.expect_line("does not tell how values become ids",
                         lambda: next(iter(elastor.read_model("planted/model").tables.values()))["1"])
        hidden = next(iter(elastor.read_model("planted/model").tables.values()))
        absent = next(i for i in range(2999) if not hidden.has_rows([i])[0])
        self.expect_line(f"holds no row of id {absent}, which training has not met", hidden.vectors_of_ids, [absent])

    def test_pairs_find_their_fields(self):
        def texts(schema, lines):
            pathlib.Path("pairs").write_text(lines)
            return [row for _, row in elastor.rows.file_rows("pairs", elastor.schema.parse_schema(schema, "schema"))]

        numbers = 'layout: LIBSVM fields { name: "q" type: GROUP } fields { name: "a" } fields { name: "b" } '
        self.assertEqual(texts(numbers, "# one\n1 qid:3 2:7 # two\n1:4\n"), [[b"0", b"7"], [b"4", b"0"]])
        self.assertEqual(texts(numbers + 'fields { name: "m" type: MULTI_HOT any_value: true }', "0 9:.5 1:2 8:0\n"),
                         [[b"2", b"0", [b"9"]]])
        triples = 'layout: LIBFFM zero_based: true fields { name: "c" type: CATEGORICAL } fields { name: "n" } '
        self.assertEqual(texts(triples, "1 1:5:.25 0:41:1\n0\n"), [[b"41", b".25"], [b"", b"0"]])
        for lines, expected in (("0 3:1\n", "pairs:1: column 2: found '3:1', expected 1 to 2"),
                                ("0 1:1\n0 1:1 1:2\n", "pairs:2: column 3 (a): found '1:2', expected each once")):
            self.expect_line(expected, texts, numbers, lines)

    def test_rows(self):
        encoder = elastor.Encoder("csv.onnx")
        row = rows_as_dicts()[0]
        self.expect_line("row 1: has no column user, but click, item", encoder.encode,
                         [row, {k: v for k, v in row.items() if k != "user"}])
        self.expect_line("row 0: field price: found 'dear', expected a number", encoder.encode,
                         [dict(row, price="dear")])
        self.expect_line("row 0: field item: found '1.5', expected a text", encoder.encode, [dict(row, item=1.5)])
        self.expect_line("row 0: field tags: found '9', expected an id in [-4, 5)", encoder.encode,
                         [dict(row, tags="0 9")])
        self.expect_line("takes a list of dicts", encoder.encode, row)
        self.expect_line("takes a path", encoder.encode, "test.csv")
        self.expect_line("train.libsvm:1: field user: found columns", encoder.encode_file, "train.libsvm")
        lines = pathlib.Path("test.csv").read_bytes().split(b"\r\n")
        plain = next(i for i, line in enumerate(lines) if i and b'"' not in line and b"NULL" not in line)
        for what, line in (("columns, expected 11", lines[plain] + b",more"),
                           ("found a quote that is not closed", b'"' + lines[plain])):
            pathlib.Path("wrong.csv").write_bytes(b"\r\n".join([lines[0], line, b""]))
            self.expect_line(f"{what}", encoder.encode_file, "wrong.csv")
        pathlib.Path("wrong.libsvm").write_bytes(b"1 3:1 2:1.5\n1 3:1 1:1.5\n")
        self.expect_line("wrong.libsvm:2: column 3 (weight): found '1:1.5', expected index 2",
                         elastor.Encoder("libsvm.onnx").encode_file, "wrong.libsvm")

    def test_damage(self):
        name = next(n for n in os.listdir("csv/model") if n.startswith("embedding-00000"))
        for path in (f"csv/model/{name}", "csv/model/dense.safetensors"):
            with contents(path, damaged(path)):
                self.expect_line("does not match its hash; the file is damaged", elastor.read_model, "csv/model")
                elastor.read_model("csv/model", verify=False)
            with contents(path, damaged(path, 20)):
                self.expect_line("the header does not match its hash", elastor.read_model, "csv/model")
        with contents("csv/model/manifest.json", damaged("csv/model/manifest.json", 400)):
            self.expect_line("manifest.json: the text does not match its hash", elastor.read_model, "csv/model")
        with contents("csv/model/vocabulary/user.tsv", damaged("csv/model/vocabulary/user.tsv")):
            self.expect_line("not the vocabulary of the training data", elastor.read_model, "csv/model")
        lines = pathlib.Path("unfinished.jsonl").read_bytes()
        with contents("csv/metrics.jsonl", b"{}\n" + lines):
            self.expect_line("csv/metrics.jsonl:1: a damaged line; expected a record", elastor.read_run, "csv")


def page_examples():
    """The examples of docs/use/python.md: blocks that import elastor."""
    text = read(f"{os.environ['ELASTOR_TOP']}/docs/use/python.md")
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.M)
    blocks = [re.sub("^    ", "", block, flags=re.M).strip() for block in blocks]
    return [block for block in blocks if re.search("^import .*elastor$", block, re.M)]


class PageTest(unittest.TestCase):
    def test_the_examples_run(self):
        os.makedirs("page", exist_ok=True)
        for link, target in (("RUN", "../csv"), ("D", "../csv.onnx"), ("rows.csv", "../test.csv"),
                             ("P", "../csv.scored")):
            if not os.path.lexists(f"page/{link}"):
                os.symlink(target, f"page/{link}")
        os.chdir("page")
        try:
            examples = page_examples()
            self.assertEqual(len(examples), 5)
            for example in examples:
                self.assertLessEqual(len(example.split("\n")), 5)
                with contextlib.redirect_stdout(io.StringIO()) as output:
                    exec(compile(example, "docs/use/python.md", "exec"), {})
                self.assertTrue(output.getvalue(), example)
        finally:
            os.chdir("..")


if __name__ == "__main__":
    if sys.argv[1:] == ["make"]:
        make()
    else:
        unittest.main(argv=[sys.argv[0]], warnings="ignore")
