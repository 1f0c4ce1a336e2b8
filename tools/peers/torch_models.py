#!/usr/bin/env python3
"""Models of configs/criteo in PyTorch (docs/reference/models.md), with 13 numeric and 26 categorical fields and the
widths and dropout of those configurations.

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
FIELDS = NUMERIC + CATEGORICAL
FEATURES = FIELDS * WIDTH
LAYER_EPSILON, RMS_EPSILON, BATCH_EPSILON = 1e-5, 1e-12, 1e-5


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


class Network(nn.Module):
    """From fields [B, n, row width] to a logit."""

    width, first_order = WIDTH, False  # of a row; whether a first-order weight stands behind it
    extra_multiply_adds = 0  # that PyTorch's operations do and Elastor's do not

    @classmethod
    def row_width(cls):
        return cls.width + cls.first_order


class RankElastor(Network):
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

    def forward(self, e):
        groups = e.flatten(1).unflatten(1, self.shape)
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


class RankMixer(Network):
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
        x = self.tokenizer(self.norm(e.flatten(1)).unflatten(1, self.shape))
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


def hidden_layers(features_in, hidden, dropout, batch_norm=False):
    """Linear, batch norm by choice, ReLU and dropout of every hidden layer."""
    layers = []
    for width in hidden:
        layer = linear(features_in, width)
        if batch_norm:
            layer.bias = None
            layers += [layer, nn.BatchNorm1d(width, eps=BATCH_EPSILON)]
        else:
            layers.append(layer)
        layers += [nn.ReLU(), *([nn.Dropout(dropout)] if dropout else [])]
        features_in = width
    return nn.Sequential(*layers)


def hidden_tensors(prefix, layers):
    """The weights of hidden_layers, named as in docs/reference/parameters.md."""
    named, i = {}, -1
    for layer in layers:
        if isinstance(layer, nn.Linear):
            i += 1
            named[f"{prefix}.hidden{i}.weight"] = layer.weight
            if layer.bias is not None:
                named[f"{prefix}.hidden{i}.bias"] = layer.bias
        elif isinstance(layer, nn.BatchNorm1d):
            norm = f"{prefix}.hidden{i}.norm"
            named |= {f"{norm}.gain": layer.weight, f"{norm}.bias": layer.bias,
                      f"{norm}.running_mean": layer.running_mean,
                      f"{norm}.running_variance": layer.running_var}
    return named


class Mlp(Network):
    GOLDEN = {"kind": "mlp"}

    def __init__(self, hidden=(400, 400, 400), dropout=0.1):
        super().__init__()
        self.deep = hidden_layers(FEATURES, hidden, dropout)
        self.output = linear(hidden[-1], 1)

    def forward(self, e):
        return self.output(self.deep(e.flatten(1)))

    def tensors(self):
        return hidden_tensors("mlp", self.deep) | layer_tensors({"mlp.output": self.output})


class DcnV2(Network):
    """Three cross layers with full matrices beside the deep network (PARALLEL)."""

    GOLDEN = {"kind": "dcn_v2"}

    def __init__(self, cross_layers=3, hidden=(400, 400, 400), dropout=0.1):
        super().__init__()
        self.crosses = nn.ModuleList(linear(FEATURES, FEATURES) for _ in range(cross_layers))
        self.deep = hidden_layers(FEATURES, hidden, dropout)
        self.head = linear(FEATURES + hidden[-1], 1)

    def forward(self, e):
        x = e = e.flatten(1)
        for cross in self.crosses:
            x = torch.addcmul(x, e, cross(x))
        return self.head(torch.cat([x, self.deep(e)], 1))

    def tensors(self):
        crosses = {f"cross{i}": layer for i, layer in enumerate(self.crosses)}
        return layer_tensors(crosses | {"head": self.head}) | hidden_tensors("deep", self.deep)


class XDeepFm(Network):
    """First-order weights, a compressed interaction network of two layers of 16 maps, and the deep network."""

    GOLDEN = {"kind": "x_deep_fm"}
    first_order = True

    def __init__(self, maps=(16, 16), hidden=(400, 400, 400), dropout=0.2):
        super().__init__()
        before = (FIELDS, *maps)
        self.maps = nn.ParameterList(xavier(h, i, FIELDS) for h, i in zip(maps, before))
        self.biases = nn.ParameterList(torch.zeros(h) for h in maps)
        self.pooled = linear(sum(maps), 1)
        self.deep = hidden_layers(FEATURES, hidden, dropout)
        self.output = linear(hidden[-1], 1)
        # A product of two fields is one multiply-add a map for Elastor, and in the first layer once for W_hij and W_hji.
        pairs = FIELDS * (FIELDS + 1) // 2
        self.extra_multiply_adds = WIDTH * sum(
            h * i * (FIELDS + 1) - h * (pairs if layer == 0 else i * FIELDS)
            for layer, (h, i) in enumerate(zip(maps, before)))

    def forward(self, fields):
        e = fields[..., :WIDTH]
        x0 = x = e.transpose(1, 2)  # [B, k, maps]: one matrix product for all samples and features
        sums = []
        for weight, bias in zip(self.maps, self.biases):
            products = F.linear(x0, weight.flatten(0, 1)).unflatten(2, weight.shape[:2])
            x = torch.matmul(products, x.unsqueeze(3)).squeeze(3) + bias
            sums.append(x.sum(1))
        crosses = self.pooled(torch.cat(sums, 1))
        return fields[..., WIDTH].sum(1, keepdim=True) + crosses + self.output(self.deep(e.flatten(1)))

    def tensors(self):
        named = {f"cin{i}.weight": weight for i, weight in enumerate(self.maps)}
        named |= {f"cin{i}.bias": bias for i, bias in enumerate(self.biases)}
        return (named | hidden_tensors("deep", self.deep)
                | layer_tensors({"cin.output": self.pooled, "deep.output": self.output}))


class AutoInt(Network):
    """AutoInt+: three layers of attention over the fields beside a deep network with batch norm."""

    GOLDEN = {"kind": "auto_int"}
    width = 10

    def __init__(self, layers=3, width=256, heads=2, hidden=(400, 400, 400), dropout=0.1):
        super().__init__()
        self.heads = heads
        inputs = (self.width, *[width] * (layers - 1))
        # Queries, keys, values and, where widths differ, the residual, by one product.
        self.maps = nn.ParameterList(xavier(4 if i != width else 3, width, i) for i in inputs)
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=LAYER_EPSILON) for _ in inputs)
        self.deep = hidden_layers(FIELDS * self.width, hidden, dropout, batch_norm=True)
        self.head = linear(FIELDS * width + hidden[-1], 1)

    def forward(self, e):
        x = e
        for maps, norm in zip(self.maps, self.norms):
            parts = F.linear(x, maps.flatten(0, 1)).chunk(len(maps), 2)
            q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in parts[:3])
            y = torch.softmax(q @ k.transpose(2, 3), 3) @ v
            residual = parts[3] if len(parts) == 4 else x
            x = F.relu(norm(y.transpose(1, 2).flatten(2) + residual))
        return self.head(torch.cat([x.flatten(1), self.deep(e.flatten(1))], 1))

    def tensors(self):
        named = hidden_tensors("deep", self.deep) | layer_tensors({"head": self.head})
        for i, (maps, norm) in enumerate(zip(self.maps, self.norms)):
            names = ("query", "key", "value", "residual")
            named |= {f"attention{i}.{name}.weight": weight for name, weight in zip(names, maps)}
            named |= {f"attention{i}.norm.gain": norm.weight, f"attention{i}.norm.bias": norm.bias}
        return named


class WukongLayer(nn.Module):
    def __init__(self, tokens, interactions, compressed, rank, hidden):
        super().__init__()
        self.parts = (rank, compressed)
        # The residual has a map of its own where the number of embeddings changes.
        self.has_residual = tokens != interactions + compressed
        after = interactions + compressed
        self.maps = xavier(rank + compressed + after * self.has_residual, tokens)
        self.fm_norm = nn.LayerNorm(tokens * rank, eps=LAYER_EPSILON)
        self.fm = hidden_layers(tokens * rank, hidden, 0)
        self.fm_output = linear(hidden[-1], interactions * WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=LAYER_EPSILON)

    def forward(self, x):  # [B, tokens, k]
        mapped = torch.matmul(self.maps, x)
        rank, compressed = self.parts
        sums, linear_part = mapped[:, :rank], mapped[:, rank:rank + compressed]
        products = torch.bmm(x, sums.transpose(1, 2)).flatten(1)
        interactions = self.fm_output(self.fm(self.fm_norm(products))).unflatten(1, (-1, WIDTH))
        residual = mapped[:, rank + compressed:] if self.has_residual else x
        return self.norm(torch.cat([interactions, linear_part], 1) + residual)

    def tensors(self):
        rank, compressed = self.parts
        named = {"fm.projection.weight": self.maps[:rank],
                 "compress.weight": self.maps[rank:rank + compressed],
                 "fm.norm.gain": self.fm_norm.weight, "fm.norm.bias": self.fm_norm.bias,
                 "norm.gain": self.norm.weight, "norm.bias": self.norm.bias}
        if self.has_residual:
            named["residual.weight"] = self.maps[rank + compressed:]
        return named | hidden_tensors("fm", self.fm) | layer_tensors({"fm.output": self.fm_output})


class Wukong(Network):
    GOLDEN = {"kind": "wukong"}

    def __init__(self, layers=3, tokens=16, rank=8, interaction_hidden=(200, 200), hidden=(400, 400), dropout=0.1):
        super().__init__()
        counts = (FIELDS, *[2 * tokens] * (layers - 1))
        self.layers = nn.ModuleList(WukongLayer(n, tokens, tokens, rank, interaction_hidden) for n in counts)
        self.deep = hidden_layers(2 * tokens * WIDTH, hidden, dropout)
        self.output = linear(hidden[-1], 1)

    def forward(self, e):
        for layer in self.layers:
            e = layer(e)
        return self.output(self.deep(e.flatten(1)))

    def tensors(self):
        named = hidden_tensors("head", self.deep) | layer_tensors({"head.output": self.output})
        for i, layer in enumerate(self.layers):
            named |= {f"layer{i}.{name}": tensor for name, tensor in layer.tensors().items()}
        return named


class PairProducts(torch.autograd.Function):
    """x [B, m, k] to x_i . x_j for i < j, row after row of the triangle, at the places `pairs` of a matrix [m, m].
    both: of each of its places, the pair's number, or that of pairs on the diagonal. The gradient takes one product of
    matrices, where autograd's takes two and a scatter."""

    @staticmethod
    def forward(ctx, x, pairs, both):
        ctx.save_for_backward(x, both)
        return torch.bmm(x, x.transpose(1, 2)).flatten(1)[:, pairs]

    @staticmethod
    def backward(ctx, gradient):
        x, both = ctx.saved_tensors
        return torch.bmm(F.pad(gradient, (0, 1))[:, both], x), None, None


class Pairs(nn.Module):
    """The products of all pairs of m vectors, [B, m (m - 1) / 2]."""

    def __init__(self, vectors):
        super().__init__()
        first, second = torch.triu_indices(vectors, vectors, 1)
        both = torch.full((vectors, vectors), len(first))
        both[first, second] = both[second, first] = torch.arange(len(first))
        self.register_buffer("pairs", first * vectors + second, persistent=False)
        self.register_buffer("both", both, persistent=False)
        self.count = len(first)

    def forward(self, x):
        return PairProducts.apply(x, self.pairs, self.both)


class Dlrm(Network):
    """The products of pairs, between a bottom and a top network."""

    GOLDEN = {"kind": "dlrm", "first_order": False}
    width = 16

    def __init__(self, bottom=(512, 256, 64), hidden=(512, 256)):
        super().__init__()
        self.pairs = Pairs(CATEGORICAL + 1)
        self.bottom = hidden_layers(NUMERIC * self.width, (*bottom, self.width), 0)
        self.top = hidden_layers(self.width + self.pairs.count, hidden, 0)
        self.output = linear(hidden[-1], 1)

    def forward(self, e):
        bottom = self.bottom(e[:, :NUMERIC].flatten(1))
        x = torch.cat([bottom.unsqueeze(1), e[:, NUMERIC:]], 1)
        return self.output(self.top(torch.cat([bottom, self.pairs(x)], 1)))

    def tensors(self):
        return (hidden_tensors("bottom", self.bottom) | hidden_tensors("top", self.top)
                | layer_tensors({"top.output": self.output}))


def pooled_products(e):
    """Half of the square of the sum less the sum of squares, over the fields of e [B, n, k]: [B, k]."""
    return 0.5 * (e.sum(1).square() - e.square().sum(1))


class Lr(Network):
    GOLDEN = {"kind": "lr", "first_order": False}
    width = 1

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, e):
        return e.flatten(1).sum(1, keepdim=True) + self.bias

    def tensors(self):
        return {"bias": self.bias}


class Fm(Lr):
    GOLDEN = {"kind": "fm", "first_order": True}
    width, first_order = 10, True

    def forward(self, fields):
        products = pooled_products(fields[..., :self.width]).sum(1, keepdim=True)
        return fields[..., self.width].sum(1, keepdim=True) + products + self.bias


class FwFm(Network):
    """With a vector for every field in the linear part."""

    GOLDEN = {"kind": "fw_fm", "first_order": False}
    width = 10

    def __init__(self):
        super().__init__()
        self.products = Pairs(FIELDS)
        self.head = linear(self.products.count + FIELDS * self.width, 1)

    def forward(self, e):
        return self.head(torch.cat([self.products(e), e.flatten(1)], 1))

    def tensors(self):
        return layer_tensors({"head": self.head})


class DeepNetwork(Network):
    """A network of three hidden layers of 400 on `features` of the fields, and its linear map."""

    width, first_order, batch_norm = 10, True, True

    def __init__(self, features=FIELDS * 10, dropout=0.1):
        super().__init__()
        self.deep = hidden_layers(features, (400, 400, 400), dropout, self.batch_norm)
        self.output = linear(400, 1)

    def logit(self, features):
        return self.output(self.deep(features))

    def tensors(self):
        return hidden_tensors("deep", self.deep) | layer_tensors({"deep.output": self.output})


class WideAndDeep(DeepNetwork):
    GOLDEN = {"kind": "wide_and_deep", "first_order": True}

    def forward(self, fields):
        wide = fields[..., self.width].sum(1, keepdim=True)
        return self.logit(fields[..., :self.width].flatten(1)) + wide


class DeepFm(WideAndDeep):
    GOLDEN = {"kind": "deep_fm", "first_order": True}

    def forward(self, fields):
        return super().forward(fields) + pooled_products(fields[..., :self.width]).sum(1, keepdim=True)


class Nfm(DeepNetwork):
    GOLDEN = {"kind": "nfm", "first_order": True}
    batch_norm = False

    def __init__(self):
        super().__init__(self.width)

    def forward(self, fields):
        wide = fields[..., self.width].sum(1, keepdim=True)
        return self.logit(pooled_products(fields[..., :self.width])) + wide


class Ipnn(DeepNetwork):
    GOLDEN = {"kind": "ipnn", "first_order": False}
    first_order = False

    def __init__(self):
        products = Pairs(FIELDS)
        super().__init__(FIELDS * self.width + products.count)
        self.products = products

    def forward(self, e):
        return self.logit(torch.cat([e.flatten(1), self.products(e)], 1))


class Dcn(Network):
    """Three cross layers of a vector each beside the deep network."""

    GOLDEN = {"kind": "dcn", "first_order": False}
    width = 10

    def __init__(self, cross_layers=3, hidden=(400, 400, 400), dropout=0.1):
        super().__init__()
        features = FIELDS * self.width
        self.crosses = nn.ParameterList(xavier(1, features) for _ in range(cross_layers))
        self.biases = nn.ParameterList(torch.zeros(features) for _ in range(cross_layers))
        self.deep = hidden_layers(features, hidden, dropout)
        self.head = linear(features + hidden[-1], 1)
        # FlopCounterMode leaves maps to one number out.
        self.extra_multiply_adds = -cross_layers * features

    def forward(self, e):
        x = e = e.flatten(1)
        for cross, bias in zip(self.crosses, self.biases):
            x = torch.addcmul(x + bias, e, F.linear(x, cross))
        return self.head(torch.cat([x, self.deep(e)], 1))

    def tensors(self):
        named = {f"cross{i}.weight": weight for i, weight in enumerate(self.crosses)}
        named |= {f"cross{i}.bias": bias for i, bias in enumerate(self.biases)}
        return named | hidden_tensors("deep", self.deep) | layer_tensors({"head": self.head})


class MaskBlock(nn.Module):
    def __init__(self, features, width_in, width, ratio, dropout):
        super().__init__()
        self.hidden = linear(features, int(ratio * width_in))
        self.output = linear(int(ratio * width_in), width_in)
        self.weight = xavier(width, width_in)
        self.norm = nn.LayerNorm(width, eps=LAYER_EPSILON)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x0, v):
        mask = self.output(F.relu(self.hidden(x0)))
        return self.dropout(F.relu(self.norm(F.linear(mask * v, self.weight))))

    def tensors(self):
        return {"weight": self.weight, "norm.gain": self.norm.weight, "norm.bias": self.norm.bias
                } | layer_tensors({"mask.hidden0": self.hidden, "mask.output": self.output})


class MaskNet(Network):
    """Three blocks in a row."""

    GOLDEN = {"kind": "mask_net", "first_order": False}
    width = 10

    def __init__(self, blocks=(400, 400, 400), ratio=0.2, dropout=0.2):
        super().__init__()
        features = FIELDS * self.width
        self.blocks = nn.ModuleList(MaskBlock(features, i, o, ratio, dropout)
                                    for i, o in zip((features, *blocks), blocks))
        self.head = linear(blocks[-1], 1)

    def forward(self, e):
        x0 = v = e.flatten(1)
        for block in self.blocks:
            v = block(x0, v)
        return self.head(v)

    def tensors(self):
        named = layer_tensors({"head": self.head})
        for i, block in enumerate(self.blocks):
            named |= {f"block{i}.{name}": tensor for name, tensor in block.tensors().items()}
        return named


class FinalMlp(Network):
    """Two gated streams and a bilinear map of their heads."""

    GOLDEN = {"kind": "final_mlp", "first_order": False}
    width = 10

    def __init__(self, hidden1=(400, 400, 400), hidden2=(1000,), dropout1=0.2, dropout2=0.3, gate=800, heads=200):
        super().__init__()
        features = FIELDS * self.width
        self.contexts = nn.ParameterList(torch.zeros(self.width) for _ in range(2))
        self.gates = nn.ModuleList(nn.Sequential(linear(self.width, gate), nn.ReLU(), linear(gate, features))
                                   for _ in range(2))
        self.streams = nn.ModuleList((hidden_layers(features, hidden1, dropout1, True),
                                      hidden_layers(features, hidden2, dropout2, True)))
        self.heads = nn.ModuleList((linear(hidden1[-1], 1), linear(hidden2[-1], 1)))
        self.fusion = xavier(heads, hidden2[-1] // heads, hidden1[-1] // heads)
        # The gates read no row: they are computed once for the two rows of `count`, and stand in a row's work in Elastor's.
        self.extra_multiply_adds = -gate * (self.width + features)

    def forward(self, e):
        x = e.flatten(1)
        a, b = (stream(2 * torch.sigmoid(gate(context)) * x)
                for stream, gate, context in zip(self.streams, self.gates, self.contexts))
        count = len(self.fusion)
        mapped = tokens_linear(a.unflatten(1, (count, -1)), self.fusion).transpose(0, 1).flatten(1)
        return self.heads[0](a) + self.heads[1](b) + (mapped * b).sum(1, keepdim=True)

    def tensors(self):
        named = {"fusion.weight": self.fusion}
        for s in (1, 2):
            named |= hidden_tensors(f"deep{s}", self.streams[s - 1])
            named[f"gate{s}.context"] = self.contexts[s - 1]
            named |= layer_tensors({f"gate{s}.hidden": self.gates[s - 1][0],
                                    f"gate{s}.output": self.gates[s - 1][2],
                                    f"head{s}": self.heads[s - 1]})
        return named


class TokenSwiGlu(nn.Module):
    """W (swish(G x) * U x) with own weights for each token; biases by choice."""

    def __init__(self, t, d, h, biases):
        super().__init__()
        self.gate, self.hidden, self.output = xavier(t, h, d), xavier(t, h, d), xavier(t, d, h)
        self.biases = nn.ParameterList(torch.zeros(t, 1, n) for n in (h, h, d)) if biases else None

    def forward(self, x):  # [B, T, D]
        gate, up = tokens_linear(x, self.gate), tokens_linear(x, self.hidden)
        if self.biases is not None:
            gate, up = gate + self.biases[0], up + self.biases[1]
        y = torch.bmm(F.silu(gate) * up, self.output.transpose(1, 2))
        return (y if self.biases is None else y + self.biases[2]).transpose(0, 1)

    def tensors(self):
        named = {"gate.weight": self.gate, "hidden.weight": self.hidden, "output.weight": self.output}
        if self.biases is not None:
            named |= {f"{name}.bias": bias.squeeze(1) for name, bias in zip(("gate", "hidden", "output"), self.biases)}
        return named


def transposed_blocks(x):
    """RankMixer's mixing of x [B, T, D]: part h of every token becomes token h."""
    return x.unflatten(2, (x.shape[1], -1)).transpose(1, 2).reshape(x.shape)


class TokenMixerLarge(Network):
    """T = D = 26, two blocks, SwiGLU of 2 D."""

    GOLDEN = {"kind": "token_mixer_large", "tokens": 26, "residual_every": 2}

    def __init__(self, tokens=26, width=26, blocks=2, expansion=2):
        super().__init__()
        self.group = math.ceil(FEATURES / (tokens - 1))
        self.padding = self.group * (tokens - 1) - FEATURES
        self.whole = linear(FEATURES, width)
        self.groups = xavier(tokens - 1, width, self.group)
        self.group_biases = nn.Parameter(torch.zeros(tokens - 1, 1, width))
        self.norms = nn.ModuleList(RmsNorm(width) for _ in range(2 * blocks))
        self.networks = nn.ModuleList(TokenSwiGlu(tokens, width, expansion * width, False) for _ in range(2 * blocks))
        self.head = linear(width, 1)

    def forward(self, e):
        flat = e.flatten(1)
        groups = F.pad(flat, (0, self.padding)).unflatten(1, (-1, self.group))
        groups = (tokens_linear(groups, self.groups) + self.group_biases).transpose(0, 1)
        x = torch.cat([self.whole(flat).unsqueeze(1), groups], 1)
        for i in range(0, len(self.norms), 2):
            m = transposed_blocks(x)
            m = m + self.networks[i](self.norms[i](m))
            x = x + self.networks[i + 1](self.norms[i + 1](transposed_blocks(m)))
        return self.head(x.mean(1))

    def tensors(self):
        named = layer_tensors({"tokenizer.global": self.whole, "head": self.head})
        named |= {"tokenizer.groups.weight": self.groups,
                  "tokenizer.groups.bias": self.group_biases.squeeze(1)}
        for i, (norm, network) in enumerate(zip(self.norms, self.networks)):
            part = f"block{i // 2}.{('mixing', 'ffn')[i % 2]}"
            named[f"{part}.norm.gain"] = norm.gain
            named |= {f"{part}.{name}": tensor for name, tensor in network.tensors().items()}
        return named


class UniMixerBlock(nn.Module):
    ITERATIONS = 20

    def __init__(self, tokens, width, expansion, block_width):
        super().__init__()
        count = tokens * width // block_width
        self.within = nn.Parameter(2 * torch.randn(count, block_width, block_width))
        self.between = nn.Parameter(2 * torch.randn(count, count))
        self.norm, self.x_norm, self.y_norm = RmsNorm(width), RmsNorm(width), RmsNorm(width)
        self.ffn = TokenSwiGlu(tokens, width, expansion * width, True)

    def matrices(self, logits):
        s = (logits + logits.transpose(-1, -2)) / 2
        for _ in range(self.ITERATIONS):
            s = s.log_softmax(-1).log_softmax(-2)
        return s.exp()

    def forward(self, x, y, z):
        blocks = z.reshape(len(z), *self.within.shape[:2])
        h = torch.bmm(blocks.transpose(0, 1), self.matrices(self.within)).transpose(0, 1)
        mixed = torch.matmul(self.matrices(self.between), h).reshape(z.shape)
        o = self.ffn(self.norm(z + mixed))
        x, y = self.x_norm(x + o), y + o
        return x, y, x + self.y_norm(y)

    def tensors(self):
        named = {"mixing.within.logits": self.within, "mixing.between.logits": self.between,
                 "mixing.norm.gain": self.norm.gain, "x_norm.gain": self.x_norm.gain,
                 "y_norm.gain": self.y_norm.gain}
        return named | {f"ffn.{name}": tensor for name, tensor in self.ffn.tensors().items()}


class UniMixer(Network):
    """T = D = 26, two blocks, SwiGLU of 2 D, blocks of 26 features."""

    GOLDEN = {"kind": "uni_mixer", "tokens": 26, "block_width": 26, "tau": 1.0,
              "sinkhorn_iterations": UniMixerBlock.ITERATIONS}

    def __init__(self, tokens=26, width=26, blocks=2, expansion=2, block_width=26):
        super().__init__()
        self.shape = (tokens, FEATURES // tokens)
        self.tokenizer = xavier(tokens, width, FEATURES // tokens)
        self.tokenizer_bias = nn.Parameter(torch.zeros(tokens, 1, width))
        self.norm = RmsNorm(width)
        self.blocks = nn.ModuleList(UniMixerBlock(tokens, width, expansion, block_width) for _ in range(blocks))
        self.head = linear(width, 1)

    def forward(self, e):
        groups = e.flatten(1).unflatten(1, self.shape)
        x = y = (tokens_linear(groups, self.tokenizer) + self.tokenizer_bias).transpose(0, 1)
        z = x + self.norm(y)
        for block in self.blocks:
            x, y, z = block(x, y, z)
        return self.head(z.mean(1))

    def tensors(self):
        named = {"tokenizer.weight": self.tokenizer, "tokenizer.bias": self.tokenizer_bias.squeeze(1),
                 "norm.gain": self.norm.gain} | layer_tensors({"head": self.head})
        for i, block in enumerate(self.blocks):
            named |= {f"block{i}.{name}": tensor for name, tensor in block.tensors().items()}
        return named


class OneTransBlock(nn.Module):
    def __init__(self, tokens, width, heads, expansion):
        super().__init__()
        self.heads = heads
        self.norm, self.ffn_norm = RmsNorm(width), RmsNorm(width)
        self.maps = nn.ParameterList(xavier(tokens, width, width) for _ in range(3))
        self.output = linear(width, width)
        self.up, self.up_bias = xavier(tokens, expansion * width, width), nn.Parameter(
            torch.zeros(tokens, 1, expansion * width))
        self.down, self.down_bias = xavier(tokens, width, expansion * width), nn.Parameter(
            torch.zeros(tokens, 1, width))
        later = torch.full((tokens, tokens), -math.inf).triu(1)
        self.register_buffer("later", later, persistent=False)

    def forward(self, x):  # [B, T, D]
        n = self.norm(x)
        # [T, B, D] to [B, heads, T, D / heads]
        q, k, v = (tokens_linear(n, weight).unflatten(2, (self.heads, -1)).permute(1, 2, 0, 3)
                   for weight in self.maps)
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3]) + self.later
        y = torch.softmax(scores, 3) @ v
        z = x + self.output(y.transpose(1, 2).flatten(2))
        h = F.silu(tokens_linear(self.ffn_norm(z), self.up) + self.up_bias)
        return z + torch.baddbmm(self.down_bias, h, self.down.transpose(1, 2)).transpose(0, 1)

    def tensors(self):
        named = {f"attention.{name}.weight": weight for name, weight in zip(("query", "key", "value"), self.maps)}
        named |= {"attention.norm.gain": self.norm.gain, "ffn.norm.gain": self.ffn_norm.gain,
                  "ffn.hidden.weight": self.up, "ffn.hidden.bias": self.up_bias.squeeze(1),
                  "ffn.output.weight": self.down, "ffn.output.bias": self.down_bias.squeeze(1)}
        return named | layer_tensors({"attention.output": self.output})


class OneTrans(Network):
    """Without histories: 26 tokens of 26 features, two blocks of two heads."""

    GOLDEN = {"kind": "one_trans", "tokens": 26, "blocks": 2, "heads": 2, "pyramid_multiple": 32}

    def __init__(self, tokens=26, width=26, blocks=2, heads=2, expansion=4, hidden=256):
        super().__init__()
        self.tokens = tokens
        self.hidden, self.output = linear(FEATURES, hidden), linear(hidden, tokens * width)
        self.blocks = nn.ModuleList(OneTransBlock(tokens, width, heads, expansion) for _ in range(blocks))
        self.head = linear(width, 1)

    def forward(self, e):
        x = self.output(F.silu(self.hidden(e.flatten(1)))).unflatten(1, (self.tokens, -1))
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))

    def tensors(self):
        named = layer_tensors({"tokenizer.hidden0": self.hidden, "tokenizer.output": self.output, "head": self.head})
        for i, block in enumerate(self.blocks):
            named |= {f"block{i}.{name}": tensor for name, tensor in block.tensors().items()}
        return named


NETWORKS = {"rank_elastor": RankElastor, "rank_mixer": RankMixer, "mlp": Mlp, "dcn_v2": DcnV2,
            "x_deep_fm": XDeepFm, "auto_int": AutoInt, "wukong": Wukong, "dlrm": Dlrm, "lr": Lr, "fm": Fm,
            "fw_fm": FwFm, "wide_and_deep": WideAndDeep, "deep_fm": DeepFm, "nfm": Nfm, "ipnn": Ipnn, "dcn": Dcn,
            "mask_net": MaskNet, "final_mlp": FinalMlp, "token_mixer_large": TokenMixerLarge,
            "uni_mixer": UniMixer, "one_trans": OneTrans}


class Dense(nn.Module):
    """From gathered rows [B, 26, row width] and numeric values [B, 13] to the mean loss."""

    def __init__(self, model):
        super().__init__()
        width = NETWORKS[model].row_width()
        self.vectors = nn.Parameter(torch.randn(NUMERIC, width) * 1e-4)
        self.missing = nn.Parameter(torch.randn(NUMERIC, width) * 1e-4)
        self.network = NETWORKS[model]()

    def row_shape(self):
        return CATEGORICAL, self.vectors.shape[1]

    def forward(self, rows, numeric, labels):
        values = numeric.unsqueeze(2)
        known = torch.nan_to_num(values) * self.vectors
        e = torch.cat([torch.where(torch.isnan(values), self.missing, known), rows], 1)
        logits = self.network(e).squeeze(1)
        return F.binary_cross_entropy_with_logits(logits.to(labels.dtype), labels)


def count(dense):
    """Parameters, and multiply-adds of matrix products a sample, but for those that Elastor does not do."""
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        dense(torch.zeros(2, *dense.row_shape()), torch.zeros(2, NUMERIC), torch.zeros(2))
    multiply_adds = counter.get_total_flops() // 2 // 2 - dense.network.extra_multiply_adds
    return sum(p.numel() for p in dense.parameters()), multiply_adds


def golden_model(dense, rows):
    """The same weights in the model of tests/golden/golden.py, whose mathematics the C++ tests
    hold to 1e-9. It has no AutoInt without scale and with batch norm: the formulas of docs/reference/models.md stand
    here."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/golden/golden.py")
    spec = importlib.util.spec_from_file_location("golden", path)
    golden = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(golden)

    class AutoIntModel(golden.Model):
        def auto_int(self, w, e):
            x = e
            for i in range(3):
                layer = w.under(f"attention{i}")
                q, k, v = (F.linear(x, layer(name + ".weight")).unflatten(2, (2, -1))
                           for name in ("query", "key", "value"))
                shares = torch.softmax(torch.einsum("bihd,bjhd->bhij", q, k), 3)
                y = torch.einsum("bhij,bjhd->bihd", shares, v).flatten(2)
                y = y + (F.linear(x, layer("residual.weight")) if "residual.weight" in layer else x)
                x = torch.relu(golden.layer_norm(layer.under("norm"), y))
            deep = golden.hidden_layers(w.under("deep"), e.flatten(1), torch.relu, self.batch_norm)
            return golden.linear(w.under("head"), torch.cat([x.flatten(1), deep], 1))

    tensors = {"numeric.vectors": dense.vectors, "numeric.missing": dense.missing}
    tensors |= dense.network.tensors()
    for field in range(CATEGORICAL):
        tensors[f"embedding/{field}"] = rows[:, field]  # sample i's row is row i
    weights = {name: {"shape": list(t.shape), "values": t.detach().flatten().tolist()}
               for name, t in tensors.items()}
    fields = [{"table": str(field), "pooling": "sum"} for field in range(CATEGORICAL)]
    kind = AutoIntModel if isinstance(dense.network, AutoInt) else golden.Model
    return kind({"iterations": 1, "use_wide": False} | dense.network.GOLDEN, fields, weights, leaves=1)


def check(model):
    """Loss and the gradients of all that goes into the network, in double and without dropout,
    against the golden model's."""
    torch.manual_seed(1)
    size = 6
    dense = Dense(model).double().eval()
    for module in dense.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.train()
    for parameter in dense.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    rows = torch.randn(size, *dense.row_shape(), dtype=torch.float64, requires_grad=True)
    numeric = torch.randn(size, NUMERIC, dtype=torch.float64)
    numeric[2, 3] = math.nan
    labels = torch.tensor([1.0, 0, 0, 1, 0, 1], dtype=torch.float64)
    loss = dense(rows, numeric, labels)
    loss.backward()

    golden = golden_model(dense, rows)
    bag = (torch.arange(size), torch.arange(size))
    golden_logits = golden(numeric, [bag] * CATEGORICAL).flatten()
    golden_loss = F.binary_cross_entropy_with_logits(golden_logits, labels)
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
