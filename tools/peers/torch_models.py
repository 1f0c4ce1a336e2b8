#!/usr/bin/env python3
"""The models of configs/criteo in PyTorch: RankElastor, RankMixer, the MLP and DCNv2 (docs/reference/models.md),
13 numeric and 26 categorical fields, k 20, with the dropout of those configurations.

    python3 torch_models.py

compares every model's loss and gradients with tests/golden/golden.py's in double, without dropout;
exit code 0 when they agree within 1e-10.
"""

import importlib.util
import math
import os
import sys

if {"-h", "--help"} & set(sys.argv[1:]) and __name__ == "__main__":
    sys.exit(print(__doc__.strip()))

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

NUMERIC, CATEGORICAL, WIDTH = 13, 26, 20
FEATURES = (NUMERIC + CATEGORICAL) * WIDTH
LAYER_EPSILON, RMS_EPSILON = 1e-5, 1e-12


def xavier(*shape):
    """Normal, of variance 2 / (in + out), for [..., out, in]."""
    return nn.Parameter(torch.randn(shape) * math.sqrt(2 / (shape[-1] + shape[-2])))


def linear(features_in, features_out):
    layer = nn.Linear(features_in, features_out)
    nn.init.xavier_normal_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def tokens_linear(x, weight):
    """x [B, T, in] and own weights for each token [T, out, in] to [T, B, out]."""
    return torch.bmm(x.transpose(0, 1), weight.transpose(1, 2))


class ElastorBlock(nn.Module):
    """Mixing of all tokens, then a gated P-FFN of each (eq. 3 and 4 of the paper)."""

    def __init__(self, t, d, h):
        super().__init__()
        self.mixing = linear(t * d, t * d)
        self.norm = nn.LayerNorm(d, eps=LAYER_EPSILON)
        # Two products, not one of both and its halves: joining the halves' gradients again takes
        # as long as all matrix products of the block.
        self.gate, self.up = xavier(t, h, d), xavier(t, h, d)
        self.down, self.residual = xavier(t, d, h), xavier(t, d, d)

    def forward(self, x):  # [B, T, D]
        m = self.norm(x + self.mixing(x.flatten(1)).view_as(x))
        h = F.gelu(tokens_linear(m, self.gate)) * tokens_linear(m, self.up)  # [T, B, H]
        z = torch.baddbmm(tokens_linear(m, self.residual), h, self.down.transpose(1, 2))
        return z.transpose(0, 1)

    def tensors(self):
        return {"mixing.weight": self.mixing.weight, "mixing.bias": self.mixing.bias,
                "mixing.norm.gain": self.norm.weight, "mixing.norm.bias": self.norm.bias,
                "ffn.lift": torch.stack([self.gate, self.up], 1), "ffn.down": self.down,
                "ffn.residual": self.residual}


class RankElastor(nn.Module):
    """The paper's convention: T 15, D 26, two blocks, r 3."""

    GOLDEN = {"kind": "rank_elastor", "convention": "paper", "tokenizer": "grouped",
              "head": "flatten_linear", "tokens": 15, "token_width": 26, "blocks": 2}

    def __init__(self, tokens=15, width=26, blocks=2, expansion=3):
        super().__init__()
        self.shape = (tokens, FEATURES // tokens)
        self.tokenizer = xavier(tokens, width, FEATURES // tokens)
        self.tokenizer_bias = nn.Parameter(torch.zeros(tokens, 1, width))
        self.blocks = nn.ModuleList(ElastorBlock(tokens, width, expansion * width)
                                    for _ in range(blocks))
        self.head = linear(tokens * width, 1)

    def forward(self, e):  # [B, FEATURES] -> [B, 1]
        groups = e.unflatten(1, self.shape)
        x = (tokens_linear(groups, self.tokenizer) + self.tokenizer_bias).transpose(0, 1)
        for block in self.blocks:
            x = block(x)
        return self.head(x.flatten(1))

    def tensors(self):
        """Named as in docs/reference/parameters.md."""
        named = {"tokenizer.output.weight": self.tokenizer,
                 "tokenizer.output.bias": self.tokenizer_bias.squeeze(1),
                 "head.output.weight": self.head.weight, "head.output.bias": self.head.bias}
        for i, block in enumerate(self.blocks):
            named |= {f"block{i}.{name}": tensor for name, tensor in block.tensors().items()}
        return named


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, self.gain.shape, self.gain, RMS_EPSILON)


class MixerBlock(nn.Module):
    """The public code's block: transposed blocks, then a two-layer P-FFN with a residual."""

    def __init__(self, t, d, h, dropout):
        super().__init__()
        self.mixing_norm = nn.LayerNorm(d, eps=LAYER_EPSILON)
        self.norm, self.ffn_norm = RmsNorm(d), RmsNorm(d)
        self.up, self.up_bias = xavier(t, h, d), nn.Parameter(torch.zeros(t, 1, h))
        self.down, self.down_bias = xavier(t, d, h), nn.Parameter(torch.zeros(t, 1, d))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):  # [B, T, D]
        t, d = x.shape[1:]
        mixed = x.unflatten(2, (t, d // t)).transpose(1, 2).reshape(x.shape)
        m = self.norm(self.mixing_norm(x + mixed))
        h = F.gelu(tokens_linear(self.ffn_norm(m), self.up) + self.up_bias)
        z = torch.baddbmm(self.down_bias, h, self.down.transpose(1, 2))
        return self.dropout(m + z.transpose(0, 1))

    def tensors(self):
        return {"mixing.norm.gain": self.mixing_norm.weight,
                "mixing.norm.bias": self.mixing_norm.bias, "norm.gain": self.norm.gain,
                "ffn.norm.gain": self.ffn_norm.gain, "ffn.hidden0.weight": self.up,
                "ffn.hidden0.bias": self.up_bias.squeeze(1), "ffn.output.weight": self.down,
                "ffn.output.bias": self.down_bias.squeeze(1)}


class RankMixer(nn.Module):
    """The public code's convention: T = D = 26, two blocks."""

    GOLDEN = {"kind": "rank_mixer", "convention": "public_code", "tokenizer": "shared",
              "head": "flatten_mlp", "tokens": 26, "token_width": 26, "blocks": 2}

    def __init__(self, tokens=26, width=26, blocks=2, hidden=500, dropout=0.1):
        super().__init__()
        self.shape = (tokens, FEATURES // tokens)
        self.norm = RmsNorm(FEATURES)
        self.tokenizer = nn.Sequential(linear(FEATURES // tokens, hidden), RmsNorm(hidden),
                                       nn.ReLU(), nn.Dropout(dropout), linear(hidden, width))
        self.blocks = nn.ModuleList(MixerBlock(tokens, width, width, dropout)
                                    for _ in range(blocks))
        self.head = nn.Sequential(linear(tokens * width, 2 * tokens * width), nn.ReLU(),
                                  nn.Dropout(dropout), linear(2 * tokens * width, 1))

    def forward(self, e):
        x = self.tokenizer(self.norm(e).unflatten(1, self.shape))
        for block in self.blocks:
            x = block(x)
        return self.head(x.flatten(1))

    def tensors(self):
        named = {"tokenizer.norm.gain": self.norm.gain,
                 "tokenizer.hidden0.norm.gain": self.tokenizer[1].gain}
        layers = {"tokenizer.hidden0": self.tokenizer[0], "tokenizer.output": self.tokenizer[4],
                  "head.hidden0": self.head[0], "head.output": self.head[3]}
        for i, block in enumerate(self.blocks):
            named |= {f"block{i}.{name}": tensor for name, tensor in block.tensors().items()}
        return named | layer_tensors(layers)


def layer_tensors(layers):
    return {f"{name}.{kind}": getattr(layer, kind) for name, layer in layers.items()
            for kind in ("weight", "bias")}


def hidden_layers(features_in, hidden, dropout):
    """Linear, ReLU, dropout of every hidden layer, and their width."""
    layers = []
    for width in hidden:
        layers += [linear(features_in, width), nn.ReLU(), nn.Dropout(dropout)]
        features_in = width
    return nn.Sequential(*layers)


class Mlp(nn.Module):
    GOLDEN = {"kind": "mlp"}

    def __init__(self, hidden=(400, 400, 400), dropout=0.1):
        super().__init__()
        self.deep = hidden_layers(FEATURES, hidden, dropout)
        self.output = linear(hidden[-1], 1)

    def forward(self, e):
        return self.output(self.deep(e))

    def tensors(self):
        return layer_tensors({f"mlp.hidden{i}": layer for i, layer in enumerate(self.deep[::3])}
                             | {"mlp.output": self.output})


class DcnV2(nn.Module):
    """Three cross layers with full matrices beside the deep network (PARALLEL)."""

    GOLDEN = {"kind": "dcn_v2"}

    def __init__(self, cross_layers=3, hidden=(400, 400, 400), dropout=0.1):
        super().__init__()
        self.crosses = nn.ModuleList(linear(FEATURES, FEATURES) for _ in range(cross_layers))
        self.deep = hidden_layers(FEATURES, hidden, dropout)
        self.head = linear(FEATURES + hidden[-1], 1)

    def forward(self, e):
        x = e
        for cross in self.crosses:
            x = torch.addcmul(x, e, cross(x))
        return self.head(torch.cat([x, self.deep(e)], 1))

    def tensors(self):
        crosses = {f"cross{i}": layer for i, layer in enumerate(self.crosses)}
        deep = {f"deep.hidden{i}": layer for i, layer in enumerate(self.deep[::3])}
        return layer_tensors(crosses | deep | {"head": self.head})


NETWORKS = {"rank_elastor": RankElastor, "rank_mixer": RankMixer, "mlp": Mlp, "dcn_v2": DcnV2}


class Dense(nn.Module):
    """From gathered rows [B, 26, k] and numeric values [B, 13] to the mean loss."""

    def __init__(self, model):
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(NUMERIC, WIDTH) * 1e-4)
        self.missing = nn.Parameter(torch.randn(NUMERIC, WIDTH) * 1e-4)
        self.network = NETWORKS[model]()

    def forward(self, rows, numeric, labels):
        values = numeric.unsqueeze(2)
        known = torch.nan_to_num(values) * self.vectors
        e = torch.cat([torch.where(torch.isnan(values), self.missing, known), rows], 1)
        logits = self.network(e.flatten(1)).squeeze(1)
        return F.binary_cross_entropy_with_logits(logits.to(labels.dtype), labels)


def count(dense):
    """Parameters, and multiply-adds of matrix products a sample."""
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        dense(torch.zeros(2, CATEGORICAL, WIDTH), torch.zeros(2, NUMERIC), torch.zeros(2))
    return sum(p.numel() for p in dense.parameters()), counter.get_total_flops() // 2 // 2


def golden_model(dense, rows):
    """The same weights in the model of tests/golden/golden.py, whose mathematics the C++ tests
    hold to 1e-9. It has no DCNv2: the formulas of docs/reference/models.md stand here."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/golden/golden.py")
    spec = importlib.util.spec_from_file_location("golden", path)
    golden = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(golden)

    class DcnV2Model(golden.Model):
        def token_model(self, w, e):
            x = deep = e
            for i in range(3):
                x = e * golden.linear(w.under(f"cross{i}"), x) + x
                deep = torch.relu(golden.linear(w.under(f"deep.hidden{i}"), deep))
            return golden.linear(w.under("head"), torch.cat([x, deep], 1))

    tensors = {"numeric.vectors": dense.vectors, "numeric.missing": dense.missing}
    tensors |= dense.network.tensors()
    for field in range(CATEGORICAL):
        tensors[f"embedding/{field}"] = rows[:, field]  # sample i's row is row i
    weights = {name: {"shape": list(t.shape), "values": t.detach().flatten().tolist()}
               for name, t in tensors.items()}
    fields = [{"table": str(field), "pooling": "sum"} for field in range(CATEGORICAL)]
    kind = DcnV2Model if isinstance(dense.network, DcnV2) else golden.Model
    return kind(dense.network.GOLDEN, fields, weights, leaves=1)


def check(model):
    """Loss and the gradients of all that goes into the network, in double and without dropout,
    against the golden model's."""
    torch.manual_seed(1)
    size = 6
    dense = Dense(model).double().eval()
    for parameter in dense.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    rows = torch.randn(size, CATEGORICAL, WIDTH, dtype=torch.float64, requires_grad=True)
    numeric = torch.randn(size, NUMERIC, dtype=torch.float64)
    numeric[2, 3] = math.nan
    labels = torch.tensor([1.0, 0, 0, 1, 0, 1], dtype=torch.float64)
    loss = dense(rows, numeric, labels)
    loss.backward()

    golden = golden_model(dense, rows)
    bag = (torch.arange(size), torch.arange(size))
    golden_loss = F.binary_cross_entropy_with_logits(golden(numeric, [bag] * CATEGORICAL), labels)
    golden_loss.backward()
    gradients = {name: weight.grad for name, weight in golden.weights().items()}
    differences = {
        "loss": (loss - golden_loss).abs(),
        "rows": max((rows.grad[:, f] - gradients[f"embedding/{f}"]).abs().max()
                    for f in range(CATEGORICAL)),
        "vectors": (dense.vectors.grad - gradients["numeric.vectors"]).abs().max(),
        "missing": (dense.missing.grad - gradients["numeric.missing"]).abs().max(),
    }
    print(f"model={model} loss={loss.item():.12f} "
          + " ".join(f"{name}_difference={d.item():.3g}" for name, d in differences.items()))
    return all(d < 1e-10 for d in differences.values())


if __name__ == "__main__":
    sys.exit(0 if all([check(model) for model in NETWORKS]) else 1)
