"""Trains a model with FuxiCTR as a run of Elastor did, and prints its test AUC, samples a second of
training steps and peak memory as JSON.

    python fuxictr_run.py DATA RUN/experiment.textproto

DATA: a prepared set (docs/use/data.md) of single categorical fields. Models are composed of FuxiCTR's
layers as in its model zoo, which its package does not hold.
"""

import json
import os
import re
import resource
import sys
import time

import numpy as np
import torch
from fuxictr.features import FeatureMap
from fuxictr.pytorch.layers import (CompressedInteractionNet, CrossNetV2, FeatureEmbedding,
                                    LogisticRegression, MLP_Block, ScaledDotProductAttention)
from fuxictr.pytorch.models import BaseModel
from torch import nn

LABEL = "label"


def parse(tokens):
    """A message in text format: names to lists of values."""
    message = {}
    while tokens and tokens[0] != "}":
        name = tokens.pop(0)
        if tokens.pop(0) == "{":
            value = parse(tokens)
            tokens.pop(0)
            message.setdefault(name, []).append(value)
        elif tokens[0] == "[":
            end = tokens.index("]")
            message[name] = tokens[1:end]
            del tokens[:end + 1]
        else:
            message.setdefault(name, []).append(tokens.pop(0))
    return message


def read_experiment(path):
    with open(path) as file:
        return parse(re.findall(r'"[^"]*"|[][{}:]|[^][\s{}:,]+', file.read()))


def read_split(folder, meta, name):
    """Labels [rows] and ids [rows, fields]."""
    split, fields = meta["splits"][name], len(meta["categorical"])
    block_rows = meta["rows_per_block"]
    data = np.fromfile(f"{folder}/{name}.rows", np.uint8)
    labels, ids, offset = [], [], 0
    for first in range(0, split["rows"], block_rows):
        rows = min(block_rows, split["rows"] - first)
        padded = lambda count: (4 * count + 7) // 8 * 8
        labels.append(data[offset:offset + 4 * rows].view(np.float32))
        offset += padded(rows)
        ids.append(data[offset:offset + 4 * rows * fields].view(np.uint32).reshape(rows, fields))
        offset += padded(rows * fields)
    return np.concatenate(labels), np.concatenate(ids).astype(np.int64)


class SelfAttention(nn.Module):
    def __init__(self, inputs, width, heads, scale, residual, layer_norm):
        super().__init__()
        self.heads, self.width = heads, width
        self.maps = nn.ModuleList([nn.Linear(inputs, width, bias=False) for _ in range(3)])
        self.residual = residual
        self.map_residual = (nn.Linear(inputs, width, bias=False) if residual and inputs != width
                             else None)
        self.scale = (width // heads) ** 0.5 if scale else None
        self.attention = ScaledDotProductAttention()
        self.norm = nn.LayerNorm(width) if layer_norm else None

    def forward(self, x):
        q, k, v = (m(x).view(len(x), -1, self.heads, self.width // self.heads).transpose(1, 2)
                   for m in self.maps)
        output, _ = self.attention(q, k, v, scale=self.scale)
        output = output.transpose(1, 2).reshape(len(x), -1, self.width)
        if self.residual:
            output = output + (x if self.map_residual is None else self.map_residual(x))
        if self.norm:
            output = self.norm(output)
        return output.relu()


class Network(nn.Module):
    """From embeddings [rows, fields, width] to the logit, but for a linear part."""

    def __init__(self, kind, config, fields, width):
        super().__init__()
        self.kind = kind
        number = lambda name, default=0: float(config.get(name, [default])[0])
        flag = lambda name: config.get(name, ["false"])[0] == "true"
        hidden = [int(each) for each in config.get("hidden", [])]
        deep = lambda outputs: MLP_Block(fields * width, hidden, output_dim=outputs,
                                         dropout_rates=number("dropout"),
                                         batch_norm=flag("batch_norm"))
        if kind == "mlp":
            self.deep = deep(1)
        elif kind == "dcn_v2":
            self.deep = deep(None)
            self.cross = CrossNetV2(fields * width, int(number("cross_layers")))
            self.head = nn.Linear(fields * width + hidden[-1], 1)
        elif kind == "x_deep_fm":
            self.deep = deep(1) if hidden else None
            self.cin = CompressedInteractionNet(fields, [int(each) for each in config["maps"]])
        elif kind == "auto_int":
            self.deep = deep(1) if hidden else None
            attention = int(number("attention_width"))
            self.attention = nn.Sequential(*(
                SelfAttention(attention if i else width, attention, int(number("heads")),
                              flag("scale"), flag("residual"), flag("layer_norm"))
                for i in range(int(number("attention_layers")))))
            self.head = nn.Linear(fields * attention, 1)
        else:
            sys.exit(f"FuxiCTR has no {kind}")

    def forward(self, e):
        flat = e.flatten(1)
        if self.kind == "mlp":
            return self.deep(flat)
        if self.kind == "dcn_v2":
            return self.head(torch.cat([self.cross(flat), self.deep(flat)], -1))
        logit = (self.cin(e) if self.kind == "x_deep_fm"
                 else self.head(self.attention(e).flatten(1)))
        return logit if self.deep is None else logit + self.deep(flat)


class Model(BaseModel):
    def __init__(self, feature_map, kind, config, experiment):
        optimizer, width = experiment["optimizer"][0], int(experiment["embedding"][0]["width"][0])
        super().__init__(feature_map, model_id=kind, verbose=0, model_root="", metrics=[],
                         embedding_regularizer=float(optimizer["embedding_l2"][0]))
        self.embedding_layer = FeatureEmbedding(feature_map, width)
        self.network = Network(kind, config, len(feature_map.features), width)
        self.linear = LogisticRegression(feature_map, use_bias=False) if kind == "x_deep_fm" else None
        self.compile("adam", "binary_crossentropy", float(optimizer["learning_rate"][0]))
        self.reset_parameters()
        self._max_gradient_norm = float(optimizer["clip_norm"][0])  # which fit() sets

    def forward(self, inputs):
        x = self.get_inputs(inputs)
        logit = self.network(self.embedding_layer(x))
        if self.linear is not None:
            logit = logit + self.linear(x)
        return {"y_pred": self.output_activation(logit)}


def auc_of(labels, scores):
    _, ranks, counts = np.unique(scores, return_inverse=True, return_counts=True)
    middles = np.cumsum(counts) - (counts - 1) / 2
    positives = labels.sum()
    above = middles[ranks][labels == 1].sum() - positives * (positives + 1) / 2
    return above / positives / (len(labels) - positives)


def main(folder, experiment_path):
    torch.set_num_threads(1)
    experiment = read_experiment(experiment_path)
    (kind, [config]), = experiment["model"][0].items()
    training = experiment["training"][0]
    batch, epochs = int(training["batch_size"][0]), int(training["epochs"][0])
    torch.manual_seed(int(training["seed"][0]))
    with open(os.path.join(folder, "meta.json")) as file:
        meta = json.load(file)
    features = FeatureMap("criteo", "")
    features.labels = [LABEL]
    names = [field["name"] for field in meta["categorical"]]
    for field in meta["categorical"]:
        features.features[field["name"]] = {"source": "", "type": "categorical",
                                            "vocab_size": field["ids"]}
    model = Model(features, kind, config, experiment)

    labels, ids = (torch.from_numpy(each) for each in read_split(folder, meta, "train"))
    seconds = 0
    model.train()
    for _ in range(epochs):
        order = torch.randperm(len(labels))
        for rows in order.split(batch):
            columns = dict(zip(names, ids[rows].unbind(1))) | {LABEL: labels[rows]}
            start = time.perf_counter()
            model.train_step(columns)
            seconds += time.perf_counter() - start
    test_labels, test_ids = read_split(folder, meta, "test")
    model.eval()
    with torch.no_grad():
        scores = np.concatenate([
            model.forward(dict(zip(names, rows.unbind(1))))["y_pred"].view(-1).numpy()
            for rows in torch.from_numpy(test_ids).split(batch)])
    tables = sum(p.numel() for p in model.embedding_layer.parameters())
    if model.linear is not None:
        tables += sum(p.numel() for p in model.linear.parameters())
    print(json.dumps({
        "auc": float(auc_of(test_labels, scores)),
        "samples_per_s": epochs * len(labels) / seconds,
        "peak_memory_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "dense_parameters": sum(p.numel() for p in model.parameters()) - tables}))


if __name__ == "__main__":
    main(*sys.argv[1:])
