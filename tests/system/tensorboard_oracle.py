"""Reads a run's event files with TensorBoard's own reader and compares them with metrics.jsonl.

    tensorboard_oracle.py RUN

Exit code 77 where Python has no TensorBoard; it is an oracle of the tests, not needed by anything.
"""

import json
import pathlib
import sys

try:
    from tensorboard.backend.event_processing import event_accumulator
    from tensorboard.plugins.hparams import plugin_data_pb2
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

METRICS = ("auc", "logloss", "normalized_entropy", "calibration", "gauc")
TRAIN = ("loss", "l2", "learning_rate", "gradient_norm", "samples_per_s")


def expected_scalars(run):
    """{tag: [(step, value)]} by metrics.jsonl."""
    scalars = {}

    def add(tag, step, value):
        if value is not None:
            scalars.setdefault(tag, []).append((step, value))

    histograms = set()
    for line in (run / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        step = record["step"]
        if record["event"] == "train":
            for name in TRAIN:
                add(f"train/{name}", step, record[name])
        elif record["event"] == "eval":
            for name in METRICS:
                add(f"{record['split']}/{name}", step, record.get(name))
        elif record["event"] == "spectrum":
            stage = record["stage"]
            for kind in ("stable", "entropy"):
                add(f"{kind}_rank/{stage}", step, record[f"{kind}_rank_mean"])
                histograms.add(f"{kind}_rank_of_rows/{stage}")
            histograms.add(f"singular_values/{stage}")
        elif record["event"] == "scoring":
            for kind in ("stable", "entropy"):
                add(f"scoring_rank/{kind}", step, record[f"{kind}_rank_mean"])
    return scalars, histograms


def main():
    run = pathlib.Path(sys.argv[1])
    expected, histograms = expected_scalars(run)
    reader = event_accumulator.EventAccumulator(str(run), size_guidance={"scalars": 0, "histograms": 0})
    reader.Reload()
    tags = reader.Tags()
    assert set(tags["scalars"]) == set(expected), (tags["scalars"], list(expected))
    assert set(tags["histograms"]) == histograms, (tags["histograms"], histograms)
    count = 0
    for tag, values in expected.items():
        found = [(event.step, event.value) for event in reader.Scalars(tag)]
        assert [step for step, _ in found] == [step for step, _ in values], (tag, found, values)
        for (_, shown), (step, value) in zip(found, values):
            assert abs(shown - value) <= 1e-6 * abs(value), (tag, step, shown, value)
            count += 1
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    samples = [record["samples"] for record in records if "samples" in record][-1]
    for tag in histograms:
        for event in reader.Histograms(tag):
            histogram = event.histogram_value
            assert histogram.min < histogram.max <= histogram.bucket_limit[-1], (tag, histogram)
            if "_of_rows" in tag:
                assert samples == histogram.num and sum(histogram.bucket) == histogram.num
    content = reader.PluginTagToContent("hparams")["_hparams_/session_start_info"]
    start = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info
    settings = {name: getattr(value, value.WhichOneof("kind")) for name, value in start.hparams.items()}
    expected = {"model": "RANK_ELASTOR", "optimizer.learning_rate": 0.02, "training.epochs": 3, "training.seed": 0}
    assert expected.items() <= settings.items(), settings
    print(f"{count} scalars under {len(expected)} tags, {len(histograms)} tags of histograms")


main()
