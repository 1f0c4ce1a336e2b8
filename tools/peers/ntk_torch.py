#!/usr/bin/env python3
"""Compares a model's neural tangent kernel with torch.func's, float64, on the same real rows.

    trainer --mode=ntk --experiment=RUN/experiment.textproto --model=RUN/model --rows=1024 --kernels \\
        --output_dir=NTK
    python3 tools/peers/ntk_torch.py RUN/model DATA NTK

RUN/model: of RankElastor (the paper's form), RankMixer, an MLP or DCNv2 without batch norm. DATA: the
prepared set, of single-valued fields. The mathematics is tests/golden/golden.py's; per-sample gradients
come from vmap of grad, and the kernel is contracted tensor by tensor (the Jacobian contraction), the
tables' by equal ids. Prints the largest |difference| / sqrt(K_ii K_jj), which must be below 1e-10,
and what PyTorch took.
"""

import importlib.util
import json
import os
import resource
import struct
import sys
import time

import numpy as np
import torch

CHUNK = 64  # rows that vmap takes at once
FOLDER = os.path.dirname(os.path.abspath(__file__))


def load_golden():
    path = os.path.join(FOLDER, "../../tests/golden/golden.py")
    spec = importlib.util.spec_from_file_location("golden", path)
    golden = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(golden)
    return golden


def read_safetensors(path):
    types = {"F32": np.float32, "I64": np.int64}
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + at for at in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], types[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def read_rows(folder, meta, split, count):
    """The first `count` different rows: numeric values [n, numeric], ids [n, fields]."""
    rows, fields = meta["splits"][split]["rows"], len(meta["categorical"])
    values = len(meta["numeric"])
    data = np.fromfile(f"{folder}/{split}.rows", np.uint8)
    numeric, ids, seen, offset = [], [], set(), 0
    for first in range(0, rows, meta["rows_per_block"]):
        part = min(meta["rows_per_block"], rows - first)
        padded = lambda numbers: (4 * numbers + 7) // 8 * 8
        offset += padded(part)  # labels
        x = data[offset : offset + 4 * part * values].view(np.float32).reshape(part, values)
        offset += padded(part * values)
        i = data[offset : offset + 4 * part * fields].view(np.uint32).reshape(part, fields)
        offset += padded(part * fields)
        for row in range(part):
            key = x[row].tobytes() + i[row].tobytes()
            if key not in seen and len(numeric) < count:
                seen.add(key)
                numeric.append(x[row])
                ids.append(i[row].astype(np.int64))
    return np.stack(numeric), np.stack(ids)


def main(model_path, data_path, ntk_path):
    golden = load_golden()
    expected = np.load(f"{ntk_path}/ntk_whole.npy")
    with open(f"{ntk_path}/ntk.jsonl") as file:
        split = json.loads(file.readline())["split"]
    with open(f"{data_path}/meta.json") as file:
        meta = json.load(file)
    numeric, ids = read_rows(data_path, meta, split, len(expected))
    dense = {name: torch.tensor(values).double()
             for name, values in read_safetensors(f"{model_path}/dense.safetensors").items()}
    width = dense["numeric.vectors"].shape[1]
    e = np.zeros((*ids.shape, width))
    for name in os.listdir(model_path):
        if not name.startswith("embedding-"):
            continue
        tables = read_safetensors(f"{model_path}/{name}")
        for f, field in enumerate(meta["categorical"]):
            keys = tables[field["name"] + "/keys"]
            rows = next(v for k, v in tables.items()
                        if k.startswith(field["name"] + "/") and not k.endswith("/keys"))
            order = np.argsort(keys)
            at = order[np.minimum(np.searchsorted(keys, ids[:, f], sorter=order), len(keys) - 1)]
            found = keys[at] == ids[:, f]
            e[found, f] = rows[at[found]]
            if not found.all():
                sys.exit(f"{field['name']}: ids that the model has not met; expected rows it has")
    e, numeric, ids = torch.tensor(e), torch.tensor(numeric).double(), torch.tensor(ids)

    spec = {"kind": "mlp", "blocks": sum(f"block{i}.mixing.norm.gain" in dense for i in range(99)),
            "convention": "paper", "tokenizer": "grouped", "head": "flatten_linear"}
    if spec["blocks"] > 0:
        spec["kind"] = "rank_elastor" if "block0.mixing.weight" in dense else "rank_mixer"
        spec["tokens"], spec["token_width"] = dense["tokenizer.output.weight"].shape[:2]
    elif "cross0.weight" in dense:
        spec["kind"] = "dcn_v2"
    model = golden.Model(spec, [], {}, leaves=1)

    def logit(dense, e, numeric):
        w = golden.Parameters(dense)
        values = numeric[:, None]
        known = torch.nan_to_num(values) * w("numeric.vectors")
        own = torch.where(torch.isnan(values), w("numeric.missing"), known)
        x = torch.cat([own, e]).flatten()[None]
        if spec["kind"] == "mlp":
            return golden.mlp(w.under("mlp"), x, torch.relu)[0, 0]
        if spec["kind"] == "dcn_v2":
            return golden.dcn_v2(w, x, None)[0, 0]
        return model.token_model(w, x)[0, 0]

    start, start_cpu = time.perf_counter(), time.process_time()
    gradient = torch.func.vmap(torch.func.grad(logit, argnums=(0, 1)), in_dims=(None, 0, 0))
    jacobian = {name: torch.empty(len(ids), values.numel(), dtype=torch.float64)
                for name, values in dense.items()}
    deltas = torch.empty_like(e)
    for first in range(0, len(ids), CHUNK):
        part = slice(first, first + CHUNK)
        of_dense, deltas[part] = gradient(dense, e[part], numeric[part])
        for name, values in of_dense.items():
            jacobian[name][part] = values.flatten(1)
    kernel = sum(rows @ rows.T for rows in jacobian.values())
    for f in range(ids.shape[1]):
        same = ids[:, f, None] == ids[:, f]
        kernel += same * (deltas[:, f] @ deltas[:, f].T)
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kernel = kernel.detach().numpy()
    scale = np.sqrt(np.outer(np.diag(kernel), np.diag(kernel)))
    difference = np.max(np.abs(kernel - expected) / scale)
    print(f"{spec['kind']}: {len(ids)} rows, {sum(v.numel() for v in dense.values())} dense weights, "
          f"largest difference {difference:.1e}; PyTorch {torch.__version__}: {seconds:.2f} s, "
          f"{cpu:.1f} s of CPU, {peak / 1e6:.2f} GB")
    sys.exit(int(difference >= 1e-10))


if __name__ == "__main__":
    if len(sys.argv) != 4 or {"-h", "--help"} & set(sys.argv):
        sys.exit(__doc__.strip())
    main(*sys.argv[1:])
