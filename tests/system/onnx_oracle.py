"""Scores raw rows by an exported model alone, with onnxruntime, and compares with the trainer's.

  onnx_oracle.py EXPORT ROWS PREDICTIONS

EXPORT: the folder of --mode=export. ROWS: a file of raw rows, which tools/python encodes. PREDICTIONS: their
predictions.csv. Prints the largest difference of a probability; exit code 1 when it is above 1e-5.
"""
import sys

import elastor
import numpy as np
import onnxruntime

MOST = 1e-5


def main(export, rows_path, predictions_path):
    inputs = elastor.Encoder(export).encode_file(rows_path)
    session = onnxruntime.InferenceSession(
        f"{export}/model.onnx", providers=["CPUExecutionProvider"]
    )
    found = session.run(["probabilities"], inputs)[0]
    scored = elastor.read_predictions(predictions_path)
    expected = np.stack([v for name, v in scored.items() if name.endswith("probability")], axis=1)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    difference = np.abs(found - expected).max()
    print(f"{export}: {len(found)} rows, largest difference {difference:.2e}")
    return 0 if difference <= MOST else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
