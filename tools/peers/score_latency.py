"""Latency of scoring encoded rows: Elastor's C interface beside onnxruntime, one thread each, in turns.

  score_latency.py PROGRAM MODEL EXPORT [--rounds=5] [--calls=400]

PROGRAM: score_benchmark. MODEL: RUN/model. EXPORT: the folder that --mode=export made of it. Random ids
and numbers, encoded before the clock starts. Ours: elastor_score_ids, with lookups and pooling.
onnxruntime: its graph with the embeddings looked up by numpy ("with lookup") and looked up before ("graph
alone"), called from Python, which costs it some 5 us. Prints a table of p50 and p99 of the CPU time of a
call in microseconds, over all rounds.
"""
import argparse
import json
import struct
import subprocess
import time

import numpy as np
import onnxruntime


def read_tables(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = np.frombuffer(file.read(), np.uint8)
    return {
        name: data[slice(*entry["data_offsets"])].view("<f4").reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def ours(program, model, rows, calls):
    lines = subprocess.run(
        [program, f"--model={model}", f"--rows={rows}", f"--calls={calls}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [float(line) for line in lines.split()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("export")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=400)
    flags = parser.parse_args()

    features = json.load(open(f"{flags.export}/features.json"))
    tables = read_tables(f"{flags.export}/embeddings.safetensors")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        f"{flags.export}/model.onnx", options, providers=["CPUExecutionProvider"]
    )
    fields = features["embeddings"]
    numeric_fields = len(features["encoding"]["numeric"])
    random = np.random.default_rng(1)

    def look_up(ids):
        return np.concatenate(
            [tables[entry["table"]][ids[:, i]] for i, entry in enumerate(fields)], axis=1
        )

    def run(numeric, embeddings):
        inputs = {"embeddings": embeddings}
        if numeric_fields:
            inputs["numeric"] = numeric
        return session.run(["probabilities"], inputs)

    ways = {
        "onnxruntime with lookup": lambda numeric, ids, _: run(numeric, look_up(ids)),
        "onnxruntime, graph alone": lambda numeric, _, embeddings: run(numeric, embeddings),
    }
    print("| rows | | p50 us | p99 us |\n|---|---|---|---|")
    for rows in 1, 256:
        batches = []
        for _ in range(64):
            numeric = random.standard_normal((rows, numeric_fields)).astype(np.float32)
            ids = np.stack(
                [random.integers(len(tables[e["table"]]), size=rows) for e in fields], axis=1
            )
            batches.append((numeric, ids, look_up(ids)))
        times = {"Elastor": [], **{name: [] for name in ways}}
        for _ in range(flags.rounds):
            times["Elastor"] += ours(flags.program, flags.model, rows, flags.calls)
            for name, way in ways.items():
                for call in range(flags.calls + 100):
                    begin = time.thread_time_ns()
                    way(*batches[call % len(batches)])
                    if call >= 100:  # the first ones warm up
                        times[name].append((time.thread_time_ns() - begin) / 1000)
        for name, values in times.items():
            p50, p99 = np.percentile(values, [50, 99])
            print(f"| {rows} | {name} | {p50:.0f} | {p99:.0f} |")
    print(f"onnxruntime {onnxruntime.__version__}")


if __name__ == "__main__":
    main()
