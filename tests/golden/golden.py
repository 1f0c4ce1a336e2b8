#!/usr/bin/env python3
"""Trains the golden cases in PyTorch, float64 (see README.md).

    python golden.py start.json golden.json

Independent of the C++ code: the models are written from the formulas in docs/reference/models.md, gradients
come from autograd, clipping and Adam from torch. It shares with the C++ code the initial weights,
their names and shapes, and the batches.

Letters: B rows, n fields, k embedding width, T tokens, D token width, H = r D hidden features, V
leaves.
"""

import json
import math
import sys

import torch
import torch.nn.functional as F
from torch import nn

RMS_EPSILON = 1e-12  # the public code's
LAYER_EPSILON = 1e-5
BATCH_EPSILON = 1e-5
BATCH_MOMENTUM = 0.1


class Parameters:
    """The weights under one prefix: w("output.weight") of Parameters(all, "head.")."""

    def __init__(self, weights, prefix=""):
        self.weights, self.prefix = weights, prefix

    def __call__(self, name):
        return self.weights[self.prefix + name]

    def __contains__(self, name):
        return self.prefix + name in self.weights

    def under(self, prefix):
        return Parameters(self.weights, self.prefix + prefix + ".")


def rms_norm(w, x):
    """x / sqrt(mean x^2 + eps) * gain, over the last dimension."""
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + RMS_EPSILON) * w("gain")


def layer_norm(w, x):
    return F.layer_norm(x, x.shape[-1:], w("gain"), w("bias"), LAYER_EPSILON)


def linear(w, x):
    """Own weights per token: x [B, T, in], weight [T, out, in]. Shared: weight [out, in]."""
    weight = w("weight")
    if weight.dim() == 2:
        return F.linear(x, weight, w("bias") if "bias" in w else None)
    return torch.einsum("bti,toi->bto", x, weight) + w("bias")


def leaf_statistics(x):
    """PyTorch's running mean and variance after one batch with momentum 1; of one row, which it
    refuses, the row and 0."""
    if len(x) == 1:
        return x[0], torch.zeros_like(x[0])
    mean, variance = torch.zeros_like(x[0]), torch.ones_like(x[0])
    F.batch_norm(x, mean, variance, training=True, momentum=1, eps=BATCH_EPSILON)
    return mean, variance


class BatchNorm:
    """Over the whole batch: PyTorch's. Over V leaves: PyTorch's leaf by leaf, running values by the
    mean weighted by rows."""

    def __init__(self, leaves):
        self.leaves, self.training = leaves, True

    def __call__(self, w, x):
        mean, variance = w("running_mean"), w("running_variance")
        if self.leaves == 1 or not self.training:
            return F.batch_norm(x, mean, variance, w("gain"), w("bias"), self.training,
                                BATCH_MOMENTUM, BATCH_EPSILON)
        bounds = [leaf * len(x) // self.leaves for leaf in range(self.leaves + 1)]
        parts = [x[a:b] for a, b in zip(bounds, bounds[1:]) if b > a]
        with torch.no_grad():
            statistics = [(len(part) / len(x), leaf_statistics(part)) for part in parts]
            for i, running in enumerate((mean, variance)):
                batch = sum(share * leaf[i] for share, leaf in statistics)
                running.mul_(1 - BATCH_MOMENTUM).add_(BATCH_MOMENTUM * batch)
        return torch.cat([self.normalize(w, part) for part in parts])

    def normalize(self, w, x):
        if len(x) == 1:
            return (x - x.mean(0)) / math.sqrt(BATCH_EPSILON) * w("gain") + w("bias")
        return F.batch_norm(x, None, None, w("gain"), w("bias"), True, eps=BATCH_EPSILON)


def hidden_layers(w, x, activation, batch_norm=None):
    i = 0
    while f"hidden{i}.weight" in w:
        layer = w.under(f"hidden{i}")
        x = linear(layer, x)
        if "norm.running_mean" in layer:
            x = batch_norm(layer.under("norm"), x)
        elif "norm.gain" in layer:
            x = rms_norm(layer.under("norm"), x)
        x = activation(x)
        i += 1
    return x


def mlp(w, x, activation, batch_norm=None):
    return linear(w.under("output"), hidden_layers(w, x, activation, batch_norm))


def x_deep_fm(w, x0, first_order, batch_norm):
    """First-order weights + a linear map of the sums of the CIN's maps + a deep network."""
    x, pooled, i = x0, [], 0
    while f"cin{i}.weight" in w:
        layer = w.under(f"cin{i}")
        x = torch.einsum("hij,bid,bjd->bhd", layer("weight"), x, x0) + layer("bias")[:, None]
        pooled.append(x.sum(-1))
        i += 1
    crosses = linear(w.under("cin.output"), torch.cat(pooled, 1))
    deep = mlp(w.under("deep"), x0.flatten(1), torch.relu, batch_norm)
    return first_order.sum(1, keepdim=True) + crosses + deep


def low_rank_cross(w, x, shares):
    """softmax shares of the experts' U tanh(C tanh(V x)), and a bias."""
    inner = w("inner.weight")  # [experts, rank, rank]
    v = torch.tanh(F.linear(x, w("down.weight"))).unflatten(1, inner.shape[:2])
    h = torch.tanh(torch.einsum("bei,eoi->beo", v, inner)) * shares[:, :, None]
    return F.linear(h.flatten(1), w("weight"), w("bias"))


def dcn_v2(w, x0, batch_norm):
    x, i = x0, 0
    while f"cross{i}.weight" in w:
        layer = w.under(f"cross{i}")
        if "gates.weight" in w:
            cross = low_rank_cross(layer, x, F.softmax(F.linear(x, w("gates.weight")), 1))
        else:
            cross = linear(layer, x)
        x = x0 * cross + x
        i += 1
    if "deep.output.weight" in w:
        return mlp(w.under("deep"), x, torch.relu, batch_norm)
    deep = hidden_layers(w.under("deep"), x0, torch.relu, batch_norm)
    return linear(w.under("head"), torch.cat([x, deep], 1))


def pooled_products(e):
    """((sum e)^2 - sum e^2) / 2 over the fields of e [B, n, k]."""
    return (e.sum(1) ** 2 - (e * e).sum(1)) / 2


def dot_products(e):
    """e_i . e_j for i < j, pair by pair."""
    n = e.shape[1]
    pairs = [(e[:, i] * e[:, j]).sum(1) for i in range(n) for j in range(i + 1, n)]
    return torch.stack(pairs, 1)


def lr(w, e, first_order, batch_norm):
    return e.flatten(1).sum(1, keepdim=True) + w("bias")


def fm(w, e, first_order, batch_norm):
    return (first_order.sum(1) + pooled_products(e).sum(1))[:, None] + w("bias")


def fw_fm(w, e, first_order, batch_norm):
    products = dot_products(e)
    if first_order is not None:
        return linear(w.under("head"), products) + first_order.sum(1, keepdim=True)
    return linear(w.under("head"), torch.cat([products, e.flatten(1)], 1))


def wide_and_deep(w, e, first_order, batch_norm):
    deep = mlp(w.under("deep"), e.flatten(1), torch.relu, batch_norm)
    return deep + first_order.sum(1, keepdim=True)


def deep_fm(w, e, first_order, batch_norm):
    return wide_and_deep(w, e, first_order, batch_norm) + pooled_products(e).sum(1, keepdim=True)


def nfm(w, e, first_order, batch_norm):
    deep = mlp(w.under("deep"), pooled_products(e), torch.relu, batch_norm)
    return deep + first_order.sum(1, keepdim=True)


def ipnn(w, e, first_order, batch_norm):
    return mlp(w.under("deep"), torch.cat([e.flatten(1), dot_products(e)], 1), torch.relu, batch_norm)


def dcn(w, e, first_order, batch_norm):
    x0 = e.flatten(1)
    x, i = x0, 0
    while f"cross{i}.weight" in w:
        x = x0 * (x @ w(f"cross{i}.weight").T) + w(f"cross{i}.bias") + x
        i += 1
    deep = hidden_layers(w.under("deep"), x0, torch.relu, batch_norm)
    return linear(w.under("head"), torch.cat([x, deep], 1))


def dlrm(w, e, first_order, batch_norm):
    """The numeric fields come first: as many as the bottom network reads."""
    numeric = w("bottom.hidden0.weight").shape[1] // e.shape[2]
    bottom = hidden_layers(w.under("bottom"), e[:, :numeric].flatten(1), torch.relu, batch_norm)
    vectors = torch.cat([bottom[:, None], e[:, numeric:]], 1)
    if "cross0.weight" not in w:
        read = torch.cat([bottom, dot_products(vectors)], 1)
        return mlp(w.under("top"), read, torch.relu, batch_norm)
    z0 = vectors.flatten(1)
    z, i = z0, 0
    while f"cross{i}.weight" in w:
        layer = w.under(f"cross{i}")
        z = z0 * (z @ layer("down.weight").T @ layer("weight").T + layer("bias")) + z
        i += 1
    return mlp(w.under("top"), z, torch.relu, batch_norm)


def gdcn(w, e, first_order, batch_norm):
    x0 = e.flatten(1)
    x, i = x0, 0
    while f"cross{i}.weight" in w:
        gate = torch.sigmoid(x @ w(f"cross{i}.gate.weight").T)
        x = x0 * linear(w.under(f"cross{i}"), x) * gate + x
        i += 1
    if "deep.output.weight" in w:
        return mlp(w.under("deep"), x, torch.relu, batch_norm)
    deep = hidden_layers(w.under("deep"), x0, torch.relu, batch_norm)
    return linear(w.under("head"), torch.cat([x, deep], 1))


def final_mlp(w, e, first_order, batch_norm):
    x0, streams = e.flatten(1), []
    for s in ("1", "2"):
        gate = w.under("gate" + s)
        c = gate("context")[None]
        g = 2 * torch.sigmoid(linear(gate.under("output"), torch.relu(linear(gate.under("hidden"), c))))
        streams.append(hidden_layers(w.under("deep" + s), g * x0, torch.relu, batch_norm))
    o1, o2 = streams
    fusion = w("fusion.weight")  # [H, d2 / H, d1 / H]
    heads1, heads2 = (o.unflatten(1, (len(fusion), -1)) for o in streams)
    bilinear = torch.einsum("bhi,hji,bhj->b", heads1, fusion, heads2)[:, None]
    return linear(w.under("head1"), o1) + linear(w.under("head2"), o2) + bilinear


def final_net(w, e, first_order, batch_norm):
    def network(net, x):
        i = 0
        while f"hidden{i}.weight" in net:
            layer = net.under(f"hidden{i}")
            u, v = linear(layer, x).chunk(2, 1)
            x = torch.relu(batch_norm(layer.under("norm"), torch.cat([u, v * u], 1)))
            i += 1
        return linear(net.under("output"), x)

    gate = torch.einsum("ij,bjd->bid", w("gate.weight"), e) + w("gate.bias")[:, None]
    z1 = network(w.under("net1"), torch.cat([e, e * gate], 1).flatten(1))
    z2 = network(w.under("net2"), e.flatten(1))
    return torch.cat([(z1 + z2) / 2, z1, z2], 1)


def dcn_v3(w, e, first_order, batch_norm):
    def network(net, x0, exponential):
        x, i = x0, 0
        while f"cross{i}.weight" in net:
            layer = net.under(f"cross{i}")
            c = x @ layer("weight").T
            mask = torch.relu(layer_norm(layer.under("norm"), c))
            factors = torch.cat([c, c * mask], 1) + layer("bias")
            x = (x if exponential else x0) * factors + x
            i += 1
        return linear(net.under("output"), x)

    x0 = torch.cat([half.flatten(1) for half in e.chunk(2, 2)], 1)
    z1 = network(w.under("exponential"), x0, True)
    z2 = network(w.under("linear"), x0, False)
    return torch.cat([(z1 + z2) / 2, z1, z2], 1)


def mask_net(w, e, first_order, batch_norm):
    x0 = e.flatten(1)
    v0 = layer_norm(w.under("embedding_norm"), x0) if "embedding_norm.gain" in w else x0
    serial, v, blocks, i = "head.weight" in w, v0, [], 0
    while f"block{i}.weight" in w:
        block = w.under(f"block{i}")
        masked = mlp(block.under("mask"), x0, torch.relu) * (v if serial else v0)
        v = torch.relu(layer_norm(block.under("norm"), masked @ block("weight").T))
        blocks.append(v)
        i += 1
    if serial:
        return linear(w.under("head"), v)
    return mlp(w.under("deep"), torch.cat(blocks, 1), torch.relu)


def networks(w, x, count):
    """Networks of [count, out, in] weights, of one input x [B, in]: a list of results [B, out]."""
    results = []
    for i in range(count):
        y, layer = x, 0
        while f"hidden{layer}.weight" in w:
            weight, bias = (w(f"hidden{layer}.{part}") for part in ("weight", "bias"))
            weight, bias = weight.reshape(count, -1, y.shape[1]), bias.reshape(count, -1)
            y = torch.relu(F.linear(y, weight[i], bias[i]))
            layer += 1
        if "output.weight" in w:
            y = F.linear(y, w("output.weight")[i], w("output.bias")[i])
        results.append(y)
    return results


def shared_bottom(w, e, first_order, batch_norm):
    u = hidden_layers(w.under("bottom"), e.flatten(1), torch.relu)
    return torch.cat(networks(w.under("towers"), u, len(w("towers.output.weight"))), 1)


def ple(w, e, first_order, batch_norm):
    """Progressive layered extraction, stream by stream; the last stream is the shared one."""
    towers = w.under("towers")
    names = [f"task{s}" for s in range(len(towers("output.weight")))] + ["shared"]
    streams, layer = {name: e.flatten(1) for name in names}, 0
    while f"layer{layer}.shared.experts.hidden0.weight" in w:
        of_layer = w.under(f"layer{layer}")
        experts = {
            name: networks(of_layer.under(name + ".experts"), streams[name],
                           len(of_layer(name + ".experts.hidden0.weight")))
            for name in names
        }
        following = {}
        for name in names:
            gate = of_layer.under(name + ".gate")
            if "weight" not in gate:
                continue  # the shared one of the last layer
            read = sum(experts.values(), []) if name == "shared" else experts[name] + experts["shared"]
            shares = linear(gate, streams[name]).softmax(1)
            following[name] = sum(shares[:, i : i + 1] * f for i, f in enumerate(read))
        streams, layer = following, layer + 1
    logits = []
    for s, name in enumerate(names[:-1]):
        hidden = torch.relu(F.linear(streams[name], towers("hidden0.weight")[s], towers("hidden0.bias")[s]))
        logits.append(F.linear(hidden, towers("output.weight")[s], towers("output.bias")[s]))
    return torch.cat(logits, 1)


def esmm(w, e, first_order, batch_norm):
    """The logits of p and of p v."""
    a, b = networks(w.under("towers"), e.flatten(1), 2)
    both = torch.sigmoid(a) * torch.sigmoid(b)
    return torch.cat([a, torch.log(both) - torch.log1p(-both)], 1)


# Of E [B, n, k] and the first-order weights [B, n], or None.
OF_FIELDS = {f.__name__: f for f in (lr, fm, fw_fm, wide_and_deep, deep_fm, nfm, ipnn, dcn, dlrm,
                                     gdcn, final_mlp, final_net, dcn_v3, mask_net, shared_bottom, ple, esmm)}


def wukong(w, x):
    """Layers of [MLP(LN(X X^T Y)); W X] + residual, and an MLP."""
    i = 0
    while f"layer{i}.norm.gain" in w:
        layer = w.under(f"layer{i}")
        map_tokens = lambda name: torch.einsum("oi,bid->bod", layer(name + ".weight"), x)
        products = torch.einsum("bid,bjd->bij", x, map_tokens("fm.projection")).flatten(1)
        interactions = mlp(layer.under("fm"), layer_norm(layer.under("fm.norm"), products), torch.relu)
        parts = [interactions.unflatten(1, (-1, x.shape[2])), map_tokens("compress")]
        residual = map_tokens("residual") if "residual.weight" in layer else x
        x = layer_norm(layer.under("norm"), torch.cat(parts, 1) + residual)
        i += 1
    return mlp(w.under("head"), x.flatten(1), torch.relu)


def causal_softmax(scores):
    """Over the last dimension; position i sees j <= i."""
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return scores.masked_fill(~seen, -math.inf).softmax(-1)


def projection(w, m):
    """SiLU(A M) B of matrices M [..., d, d]."""
    return F.silu(w("row") @ m) @ w("column")


def matrix_norm(w, m):
    scale = torch.sqrt((m * m).mean((-1, -2), keepdim=True) + RMS_EPSILON)
    return m / scale * w("gain").reshape(m.shape[-2:])


def matrix_attention(w, spec, n):
    """A head is a block of rows of Q, K and V [B, L, d, d]."""
    q, k, v = (projection(w.under(name), n).unflatten(2, (spec["heads"], -1))
               for name in ("query", "key", "value"))
    scores = torch.einsum("bihrc,bjhrc->bhij", q, k) / math.sqrt(q.shape[3] * q.shape[4])
    weights = causal_softmax(scores)
    if spec["attention"] == "frobenius":
        seen = torch.einsum("bhij,bjhrc->bihrc", weights, v)
    else:
        products = torch.einsum("bihrc,bjhsc->bhijrs", q, k)
        seen = torch.einsum("bhij,bhijrs,bjhsc->bihrc", weights, products, v)
    return projection(w.under("output"), seen.flatten(2, 3))


def matrix_update(w, n):
    def factor(side):
        gated = F.silu(projection(side.under("gate"), n)) * projection(side.under("up"), n)
        return w("scale") * (projection(side.under("down"), gated) if "down.row" in side else gated)

    eye = torch.eye(n.shape[-1], dtype=n.dtype)
    delta, gamma = factor(w.under("delta")), factor(w.under("gamma"))
    multiplied = (eye + delta) @ n @ (eye + gamma)
    gates = torch.sigmoid(linear(w.under("gates"), n.flatten(2)))[..., None, None]  # [B, L, 2, 1, 1]
    written = (n @ w("write.a")) @ (n @ w("write.b")).transpose(-1, -2)
    return gates[:, :, 0] * (multiplied - n) + gates[:, :, 1] * written


def matrix_thinker(w, spec, e):
    d = e.shape[-1] // 2
    p = w("positions")
    m = e[..., :d, None] * e[..., None, d:] + 0.1 * p[:, :d, None] * p[:, None, d:]
    for _ in range(spec["iterations"]):
        for i in range(spec["layers"]):
            attention, update = w.under(f"layer{i}.attention"), w.under(f"layer{i}.update")
            m = m + matrix_attention(attention, spec, matrix_norm(attention.under("norm"), m))
            m = m + matrix_update(update, matrix_norm(update.under("norm"), m))
    m = matrix_norm(w.under("norm"), m)
    if "head.collapse.weight" in w:
        read = (w("head.collapse.weight") * m).sum(-1)
    else:
        read = torch.einsum("kr,blrc,kc->blk", w("head.left.weight"), m, w("head.right.weight"))
    return linear(w.under("head.output"), read)


def gated_mlp(w, spec, x):
    """One hidden layer; with a gate, whose results are activated and multiplied with the others."""
    activation = {"relu": torch.relu, "gelu": F.gelu, "swish": F.silu}[spec["activation"]]
    hidden = linear(w.under("hidden"), x)
    if "gate.weight" in w:
        hidden = activation(linear(w.under("gate"), x)) * hidden
    else:
        hidden = activation(hidden)
    return linear(w.under("output"), hidden)


def transformer_layer(w, spec, softmax, x):
    attention, ffn = w.under("attention"), w.under("mlp")
    n = layer_norm(attention.under("norm"), x)
    q, k, v = (linear(attention.under(name), n).unflatten(-1, (spec["heads"], -1)).transpose(1, 2)
               for name in ("query", "key", "value"))
    weights = softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]))
    x = x + linear(attention.under("output"), (weights @ v).transpose(1, 2).flatten(2))
    return x + gated_mlp(ffn, spec, layer_norm(ffn.under("norm"), x))


def transformer(w, spec, e):
    x = e + w("positions")
    for i in range(spec["layers"]):
        x = transformer_layer(w.under(f"layer{i}"), spec, causal_softmax, x)
    return linear(w.under("head"), layer_norm(w.under("norm"), x))


def vit(w, spec, e):
    x = linear(w.under("patches"), e) + w("positions")
    for i in range(spec["layers"]):
        x = transformer_layer(w.under(f"layer{i}"), spec, lambda s: s.softmax(-1), x)
    return linear(w.under("head"), layer_norm(w.under("norm"), x).mean(1))


def mlp_mixer(w, spec, e):
    x = linear(w.under("patches"), e)
    for i in range(spec["layers"]):
        mixing, ffn = w.under(f"layer{i}.mixing"), w.under(f"layer{i}.mlp")
        columns = layer_norm(mixing.under("norm"), x).transpose(1, 2)
        x = x + gated_mlp(mixing, spec, columns).transpose(1, 2)
        x = x + gated_mlp(ffn, spec, layer_norm(ffn.under("norm"), x))
    return linear(w.under("head"), layer_norm(w.under("norm"), x).mean(1))


def token_mixer_large(w, spec, e):
    """Mixing and reverting, each with a SwiGLU of every token's own."""
    tokens, every = spec["tokens"], spec["residual_every"]

    def network(part, x):
        n = rms_norm(part.under("norm"), x)
        up, gate = (torch.einsum("btd,thd->bth", n, part(name + ".weight"))
                    for name in ("hidden", "gate"))
        return torch.einsum("bth,tdh->btd", F.silu(gate) * up, part("output.weight"))

    def mix(x):  # part h of every token becomes token h
        return torch.stack([part.flatten(1) for part in x.chunk(tokens, 2)], 1)

    flat = e.flatten(1)
    group = math.ceil(flat.shape[1] / (tokens - 1))
    groups = F.pad(flat, (0, group * (tokens - 1) - flat.shape[1])).reshape(-1, tokens - 1, group)
    first = linear(w.under("tokenizer.global"), flat)[:, None]
    blocks = [torch.cat([first, linear(w.under("tokenizer.groups"), groups)], 1)]
    while f"block{len(blocks) - 1}.ffn.norm.gain" in w:
        block, last = w.under(f"block{len(blocks) - 1}"), f"block{len(blocks)}.ffn.norm.gain" not in w
        m = mix(blocks[-1])
        m = m + network(block.under("mixing"), m)
        x = blocks[-1] + network(block.under("ffn"), mix(m))
        if len(blocks) % every == 0 and not last:
            x = x + blocks[len(blocks) - every]
        blocks.append(x)
    return linear(w.under("head"), blocks[-1].mean(1))


def sinkhorn(logits, spec):
    """Symmetric logits; rows normalised, then columns, again and again."""
    s = (logits + logits.transpose(-1, -2)) / (2 * spec["tau"])
    for _ in range(spec["sinkhorn_iterations"]):
        s = s - s.logsumexp(-1, keepdim=True)
        s = s - s.logsumexp(-2, keepdim=True)
    return s.exp()


def uni_mixer(w, spec, e):
    """Sinkhorn's matrices within blocks of features and between them; two streams."""

    def matrices(part):
        if "logits" in part:
            return sinkhorn(part("logits"), spec)
        return sinkhorn(torch.tensordot(part("logits_left"), part("logits_right"), 1), spec)

    def mix(part, z):
        blocks = z.reshape(len(z), -1, spec["block_width"])
        h = torch.einsum("bmc,mcd->bmd", blocks, matrices(part.under("within")))
        return torch.einsum("nm,bmd->bnd", matrices(part.under("between")), h).reshape(z.shape)

    flat = e.flatten(1)
    group = math.ceil(flat.shape[1] / spec["tokens"])
    flat = F.pad(flat, (0, group * spec["tokens"] - flat.shape[1]))
    x = y = linear(w.under("tokenizer"), flat.reshape(len(flat), -1, group))
    z, i = x + rms_norm(w.under("norm"), y), 0
    while f"block{i}.x_norm.gain" in w:
        block = w.under(f"block{i}")
        m = rms_norm(block.under("mixing.norm"), z + mix(block.under("mixing"), z))
        o = gated_mlp(block.under("ffn"), {"activation": "swish"}, m)
        x, y = rms_norm(block.under("x_norm"), x + o), y + o
        z, i = x + rms_norm(block.under("y_norm"), y), i + 1
    return linear(w.under("head"), z.mean(1))


def one_trans(w, spec, e, histories):
    """Row by row: the tokens of its histories [m, k], oldest first, and behind them tokens of the
    other fields; causal attention, of the histories' tokens fewer and fewer."""
    logits = []
    for row, parts in zip(e, histories):
        h = [mlp(w.under(f"history.{name}"), part, F.silu) for name, part in parts]
        others = mlp(w.under("tokenizer"), row.flatten(), F.silu).unflatten(0, (spec["tokens"], -1))
        most = w("history.positions").shape[0] if h else 0
        h = torch.cat(h) if h else others[:0]
        if most:
            h = h + w("history.positions")[most - len(h):]
        x = torch.cat([h, others])
        for i in range(spec["blocks"]):
            left = spec["blocks"] - 1 - i
            step = spec["pyramid_multiple"]
            asks = min(most, math.ceil(most * left / (spec["blocks"] - 1) / step) * step) if left else 0
            x = one_trans_block(w.under(f"block{i}"), spec, x, asks)
        logits.append(linear(w.under("head"), x[len(x) - spec["tokens"]:].mean(0)))
    return torch.stack(logits)


def one_trans_block(w, spec, x, asks):
    def maps(part, name, x):
        shared = len(x) - spec["tokens"]
        y = torch.einsum("ti,toi->to", x[shared:], part(name + ".weight"))
        if name + ".bias" in part:
            y = y + part(name + ".bias")
        return torch.cat([linear(part.under("history." + name), x[:shared]), y]) if shared else y

    attention, n = w.under("attention"), rms_norm(w.under("attention.norm"), x)
    first = max(0, len(x) - spec["tokens"] - asks)  # that asks
    q, k, v = (maps(attention, name, part).unflatten(-1, (spec["heads"], -1)).transpose(0, 1)
               for name, part in (("query", n[first:]), ("key", n), ("value", n)))
    scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
    later = torch.arange(len(x)) > torch.arange(first, len(x))[:, None]
    weights = scores.masked_fill(later, -math.inf).softmax(-1)
    z = x[first:] + linear(attention.under("output"), (weights @ v).transpose(0, 1).flatten(1))
    ffn = w.under("ffn")
    return z + maps(ffn, "output", F.silu(maps(ffn, "hidden", rms_norm(ffn.under("norm"), z))))


def swish_norm_layer(w, x):
    h = linear(w, x)
    return h * torch.sigmoid(layer_norm(w.under("norm"), h))


def swish_norm_mlp(w, x):
    return layer_norm(w.under("norm"), linear(w.under("output"), swish_norm_layer(w.under("hidden"), x)))


def hstu_ranker(w, spec, e, first, histories):
    """Row by row: contextual tokens, the events of its history [m, k], oldest first, and the
    candidate. Every layer computes all tokens. first: the number of numeric fields."""
    lists, request = spec["histories"], spec["request_fields"]
    targets = sorted({first + of["target"] for of in lists if of["role"] == "content"})
    others = {first + of["field"] for of in lists} | set(targets) | set(request)
    context = [i for i in range(e.shape[1]) if i not in others]
    root = math.sqrt(w("positions").shape[1])
    logits = []
    for row, parts in zip(e, histories):
        x, time = 0, 0
        for of, (name, h) in zip(lists, parts):
            if of["role"] == "content":
                x = x + swish_norm_mlp(w.under("content." + name), torch.cat([h, row[first + of["target"]][None]]))
            elif of["role"] == "action":
                x = x + swish_norm_mlp(w.under("action." + name), torch.cat([h, w(f"action.{name}.candidate")]))
            else:
                time = time + F.pad(F.linear(h, w(f"time.{name}.weight")), (0, 0, 0, 1))
        x = root * x + w("positions")[-len(x):] + time
        tokens = torch.einsum("ti,toi->to", row[context], w("context.weight")) + w("context.bias")
        x = torch.cat([root * tokens + w("context.positions"), x])
        most = len(w("context.positions")) + len(w("positions"))
        for i in range(spec["layers"]):
            x = hstu_ranker_layer(w.under(f"layer{i}"), spec["heads"], most, x)
        output = linear(w.under("output"), torch.cat([x[-1], row[request].flatten()]))
        z = layer_norm(w.under("output.norm"), output) * swish_norm_mlp(w.under("item"), row[targets].flatten())
        logits.append(linear(w.under("head.output"), swish_norm_layer(w.under("head.hidden"), z)))
    return torch.stack(logits)


def hstu_ranker_layer(w, heads, most, x):
    def norm(part, y):
        return F.layer_norm(y, y.shape[-1:], part("gain"), part("bias"), 1e-6)

    n = norm(w.under("norm"), x)
    u, v, q, k = (linear(w.under(name), n) for name in ("gate", "value", "query", "key"))
    u = F.silu(u)
    q, k, v = (y.unflatten(-1, (heads, -1)).transpose(0, 1) for y in (q, k, v))
    weights = F.silu(q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).tril() / most
    a = (weights @ v).transpose(0, 1).flatten(1)
    read = torch.cat([u, a, u * norm(w.under("output.norm"), a)], 1)
    maps = [w(f"output.{name}.weight") for name in ("gate", "attention", "gated")]
    return x + F.linear(read, torch.cat(maps, 1))


OF_TOKENS = {"token_mixer_large": token_mixer_large, "uni_mixer": uni_mixer, "matrix_thinker": matrix_thinker,
             "transformer": transformer, "vit": vit, "mlp_mixer": mlp_mixer}


class Model(nn.Module):
    """Numeric values and ids to logits. Embeddings: value * vector, or the field's missing vector;
    a bag of ids is summed or averaged."""

    def __init__(self, spec, fields, weights, leaves):
        super().__init__()
        self.spec, self.fields, self.batch_norm = spec, fields, BatchNorm(leaves)
        tensors = {
            name: torch.tensor(w["values"], dtype=torch.float64).reshape(w["shape"])
            for name, w in weights.items()
        }
        self.statistics = {name: t for name, t in tensors.items() if ".running_" in name}
        self.names = [name for name in tensors if name not in self.statistics]
        self.values = nn.ParameterList(nn.Parameter(tensors[name]) for name in self.names)

    def weights(self):
        return dict(zip(self.names, self.values))

    def forward(self, numeric, bags):
        w = Parameters(self.weights() | self.statistics)
        values = numeric[:, :, None]  # [B, numeric fields, 1]
        known = torch.nan_to_num(values) * w("numeric.vectors")
        parts = [torch.where(torch.isnan(values), w("numeric.missing"), known)]
        for field, (ids, offsets) in zip(self.fields, bags):
            table = w("embedding/" + field["table"])
            parts.append(F.embedding_bag(ids, table, offsets, mode=field["pooling"])[:, None, :])
        fields = torch.cat(parts, 1)  # [B, n, k], or with a first-order weight behind each, k + 1
        if "sequence" in self.spec:
            fields = self.encode(w, fields, bags)
        if self.spec["kind"] == "one_trans":
            return one_trans(w, self.spec, *self.histories(w, fields, bags))
        if self.spec["kind"] == "hstu_ranker":
            return hstu_ranker(w, self.spec, fields, numeric.shape[1], self.histories(w, fields, bags)[1])
        if self.spec["kind"] in OF_FIELDS:
            first_order = fields[..., -1] if self.spec["first_order"] else None
            e = fields[..., :-1] if self.spec["first_order"] else fields
            return OF_FIELDS[self.spec["kind"]](w, e, first_order, self.batch_norm)
        if self.spec["kind"] == "x_deep_fm":
            return x_deep_fm(w, fields[..., :-1], fields[..., -1], self.batch_norm)
        if self.spec["kind"] == "wukong":
            return wukong(w, fields)
        if self.spec["kind"] in OF_TOKENS:
            return OF_TOKENS[self.spec["kind"]](w, self.spec, fields).flatten(1)
        e = fields.flatten(1)
        if self.spec["kind"] == "dcn_v2":
            return dcn_v2(w, e, self.batch_norm)
        if self.spec["kind"] == "mlp":
            return mlp(w.under("mlp"), e, torch.relu, self.batch_norm)
        if self.spec["kind"] == "mmoe":
            return self.mmoe(w, e)
        if self.spec["kind"] == "auto_int":
            if self.spec["use_wide"]:
                return self.auto_int(w, fields[..., :-1]) + fields[..., -1].sum(1, keepdim=True)
            return self.auto_int(w, fields)
        return self.token_model(w, e)

    def mmoe(self, w, e):
        """Ma et al. 2018, eq. 6 and 7: expert by expert, task by task."""
        experts = []
        for i in range(w("experts.hidden0.weight").shape[0]):
            x, layer = e, 0
            while f"experts.hidden{layer}.weight" in w:
                of_layer = w.under(f"experts.hidden{layer}")
                x = torch.relu(F.linear(x, of_layer("weight")[i], of_layer("bias")[i]))
                layer += 1
            experts.append(x)
        logits = []
        for t, gate in enumerate(w("gates.weight")):
            shares = torch.softmax(F.linear(e, gate), 1)
            x = sum(shares[:, i : i + 1] * expert for i, expert in enumerate(experts))
            for name, activation in (("hidden0", torch.relu), ("output", lambda y: y)):
                layer = w.under("towers." + name)
                x = activation(F.linear(x, layer("weight")[t], layer("bias")[t]))
            logits.append(x)
        return torch.cat(logits, 1)

    def encode(self, w, e, bags):
        """The sequence's place in e [B, n, k] gets what an encoder makes of its last L positions h
        [m, k] and the target a, row by row."""
        spec = self.spec["sequence"]
        first = e.shape[1] - len(self.fields)  # numeric fields
        table = w("embedding/" + self.fields[spec["field"]]["table"])
        ids, offsets = bags[spec["field"]]
        encoder = getattr(self, spec["encoder"])
        rows = [
            encoder(w, spec, table[bag[-spec["positions"]:]], target)
            for bag, target in zip(torch.tensor_split(ids, offsets[1:]), e[:, first + spec["target"]])
        ]
        place = first + spec["field"]
        return torch.cat([e[:, :place], torch.stack(rows)[:, None], e[:, place + 1 :]], 1)

    def histories(self, w, e, bags):
        """The fields that are none, and of every row the last L vectors of each that is one."""
        first, rows, read = e.shape[1] - len(self.fields), [[] for _ in e], set()
        for history in self.spec.get("histories", []):
            field = history["field"]
            read.add(first + field)
            ids, offsets = bags[field]
            table = w("embedding/" + self.fields[field]["table"])
            for row, bag in zip(rows, torch.tensor_split(ids, offsets[1:])):
                row.append((history["name"], table[bag[-history["positions"]:]]))
        return e[:, [i for i in range(e.shape[1]) if i not in read]], rows

    def target_attention(self, w, spec, h, target):
        """Deep Interest Network: the weighted sum of the positions."""
        activation = {"relu": torch.relu, "gelu": F.gelu, "swish": F.silu}[spec["activation"]]
        network = w.under("din." + spec["name"])
        a = target.expand_as(h)
        x = torch.cat([a, h, a - h, a * h], 1)
        i = 0
        while f"hidden{i}.weight" in network:
            x = activation(linear(network.under(f"hidden{i}"), x))
            i += 1
        weights = linear(network.under("score"), x)  # [m, 1]
        if spec["softmax"]:
            weights = weights.softmax(0)
        return (weights * h).sum(0)

    def bst(self, w, spec, h, target):
        """The behaviour sequence transformer: the target behind the positions; what the last layer
        gives there."""
        blocks = w.under("bst." + spec["name"])
        x = torch.cat([h, target[None]])  # [m + 1, k]
        x = x + blocks("positions")[: len(x)]
        i = 0
        while f"layer{i}.query.weight" in blocks:
            layer = blocks.under(f"layer{i}")
            q, k, v = (linear(layer.under(name), x).unflatten(-1, (spec["heads"], -1)).transpose(0, 1)
                       for name in ("query", "key", "value"))
            weights = (q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).softmax(-1)
            attended = linear(layer.under("output"), (weights @ v).transpose(0, 1).flatten(1))
            s = layer_norm(layer.under("attention.norm"), x + attended)
            hidden = F.leaky_relu(linear(layer.under("mlp.hidden"), s))
            x = layer_norm(layer.under("mlp.norm"), s + linear(layer.under("mlp.output"), hidden))
            i += 1
        return x[-1]

    def hstu(self, w, spec, h, target):
        """HSTU: the target behind the positions; what the last block gives there."""
        blocks = w.under("hstu." + spec["name"])
        x = torch.cat([h, target[None]])  # [m + 1, k]
        distance = torch.arange(len(x))[:, None] - torch.arange(len(x))
        i = 0
        while f"layer{i}.query.weight" in blocks:
            block = blocks.under(f"layer{i}")
            normal = layer_norm(block.under("norm"), x)
            q, k, v, u = (
                F.silu(linear(block.under(name), normal)).unflatten(-1, (spec["heads"], -1))
                for name in ("query", "key", "value", "gate")
            )
            scores = torch.einsum("ihd,jhd->hij", q, k)
            scores = scores + block("position_bias")[distance.clamp(min=0)]
            weights = F.silu(scores) / (spec["positions"] + 1) * (distance >= 0)
            attended = torch.einsum("hij,jhd->ihd", weights, v).flatten(1)
            gated = layer_norm(block.under("output_norm"), attended) * u.flatten(1)
            x = x + linear(block.under("output"), gated)
            i += 1
        return x[-1]

    def auto_int(self, w, e):
        x = e  # [B, n, k]
        for i in range(self.spec["attention_layers"]):
            x = self.interacting(w.under(f"attention{i}"), x)
        deep = hidden_layers(w.under("deep"), e.flatten(1), torch.relu)
        return linear(w.under("head"), torch.cat([x.flatten(1), deep], 1))

    def interacting(self, w, x):
        """Multi-head self-attention over the fields; maps shared by them."""
        heads = self.spec["heads"]
        q, k, v = (
            F.linear(x, w(name + ".weight")).unflatten(-1, (heads, -1)).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        y = (torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2)
        y = y + (F.linear(x, w("residual.weight")) if "residual.weight" in w else x)
        return torch.relu(layer_norm(w.under("norm"), y))

    def token_model(self, w, e):
        x = self.tokenize(w.under("tokenizer"), e)
        for i in range(self.spec["iterations"] * self.spec["blocks"]):
            x = self.block(w.under(f"block{i % self.spec['blocks']}"), x)
        head = w.under("head")
        match self.spec["head"]:
            case "mean_pool":
                x = x.mean(1)
            case "multi_probe":  # u_k' X v_k
                x = torch.einsum("kt,btd,kd->bk", head("left.weight"), x, head("right.weight"))
            case "vector_collapse":  # the sum over columns of W * X
                x = (head("collapse.weight").squeeze(1) * x).sum(-1)
            case _:
                x = x.flatten(1)
        return mlp(head, x, torch.relu)

    def tokenize(self, w, e):
        tokens, width = self.spec["tokens"], self.spec["token_width"]
        if "norm.gain" in w:
            e = rms_norm(w.under("norm"), e)
        if self.spec["tokenizer"] == "full":
            return mlp(w, e, torch.relu).reshape(-1, tokens, width)
        group = math.ceil(e.shape[1] / tokens)
        e = F.pad(e, (0, group * tokens - e.shape[1]))
        return mlp(w, e.reshape(-1, tokens, group), torch.relu)

    def block(self, w, x):
        mixer = self.spec["kind"] == "rank_mixer"
        mix = self.block_transpose if mixer else self.full_mixing
        mixing, ffn = w.under("mixing"), w.under("ffn")
        feed_forward = self.two_layer if mixer else self.gated
        if self.spec["convention"] == "paper":
            m = layer_norm(mixing.under("norm"), x + mix(mixing, x))
            return feed_forward(ffn, m)
        if mixer:
            m = layer_norm(mixing.under("norm"), x + mix(mixing, x))
            m = rms_norm(w.under("norm"), m)
        else:
            normal = rms_norm(mixing.under("pre_norm"), x.flatten(1)).reshape(x.shape)
            m = rms_norm(mixing.under("norm"), x + mix(mixing, normal))
            feed_forward = self.gated_sum
        return m + feed_forward(ffn, rms_norm(ffn.under("norm"), m))

    def full_mixing(self, w, x):
        return F.linear(x.flatten(1), w("weight"), w("bias")).reshape(x.shape)

    def block_transpose(self, w, x):
        """Columns cut into T segments: a T x T grid of blocks [1, D / T], transposed."""
        tokens, width = x.shape[1:]
        return x.reshape(-1, tokens, tokens, width // tokens).transpose(1, 2).reshape(x.shape)

    def two_layer(self, w, m):
        return mlp(w, m, F.gelu)

    def gated(self, w, m):
        """RankElastor, eq. 4: (GELU(M W1) * (M W2)) W3 + M Wr."""
        p, q = (torch.einsum("btd,thd->bth", m, w("lift")[:, i]) for i in range(2))
        down = torch.einsum("bth,tdh->btd", F.gelu(p) * q, w("down"))
        return down + torch.einsum("bti,toi->bto", m, w("residual"))

    def gated_sum(self, w, m):
        """Linear((Linear(x) + GELU(Linear(x))) * Linear(x)) + Linear(x)."""
        a, b, c = (
            torch.einsum("btd,thd->bth", m, w("lift")[:, i]) + w("lift_bias")[:, i]
            for i in range(3)
        )
        h = (a + F.gelu(b)) * c
        down = torch.einsum("bth,tdh->btd", h, w("down")) + w("down_bias")
        return down + torch.einsum("bti,toi->bto", m, w("residual")) + w("residual_bias")


def penalty(model, start):
    """lambda / 2 |w|^2 of embeddings and of weight matrices, each with its own lambda."""
    total = 0
    for name, value in model.weights().items():
        if name.startswith(("embedding/", "numeric.")):
            total = total + 0.5 * start["embedding_l2"] * (value * value).sum()
        elif not name.endswith(("bias", "gain", "positions", "scale", "context", "candidate", "logits",
                                "logits_left", "logits_right")):
            total = total + 0.5 * start["dense_l2"] * (value * value).sum()
    return total


def cross_entropies(logits, labels):
    """[rows, labels]: of the first labels, as many as there are logits; 0 where one is missing."""
    labels = labels[:, : logits.shape[1]]
    known = ~torch.isnan(labels)
    losses = F.binary_cross_entropy_with_logits(
        logits, torch.where(known, labels, torch.zeros_like(labels)), reduction="none"
    )
    return torch.where(known, losses, torch.zeros_like(losses))


def class_cross_entropies(logits, labels, classes):
    """[rows, labels]; 0 where a label is missing. What makes the row's loss: its mean over the
    others."""
    known = ~torch.isnan(labels)
    target = torch.where(known, labels, torch.zeros_like(labels)).long()
    losses = F.cross_entropy(logits.unflatten(1, (-1, classes)).transpose(1, 2), target,
                             reduction="none")
    return torch.where(known, losses, torch.zeros_like(losses)), known.sum(1)


def tensors(batch, fields):
    labels = [[math.nan if v is None else v for v in row] for row in batch["labels"]]
    labels, weights = (torch.tensor(v, dtype=torch.float64) for v in (labels, batch["weights"]))
    rows = [[math.nan if v is None else v for v in row] for row in batch["numeric"]]
    bags = []
    for field in range(len(fields)):
        lists = [row[field] for row in batch["ids"]]
        ids = torch.tensor([i for ids in lists for i in ids], dtype=torch.int64)
        lengths = torch.tensor([0] + [len(ids) for ids in lists[:-1]])
        bags.append((ids, torch.cumsum(lengths, 0)))
    return labels, weights, torch.tensor(rows, dtype=torch.float64), bags


def sums(model):
    """Two checksums of every tensor: its sum, and the sum of its squares."""
    return {
        name: [value.sum().item(), (value * value).sum().item()]
        for name, value in (model.weights() | model.statistics).items()
    }


def train(case, start):
    model = Model(case["model"], start["fields"], case["weights"], case["leaves"])
    optimizer = torch.optim.Adam(model.parameters(), lr=start["learning_rate"])
    result = {"loss": [], "l2": [], "gradient_norm": [], "initial": sums(model)}
    for batch in start["batches"]:
        labels, weights, numeric, bags = tensors(batch, start["fields"])
        if not case["sample_weights"]:
            weights = torch.ones_like(weights)
        if case["classes"]:
            losses, known = class_cross_entropies(model(numeric, bags), labels, case["classes"])
            losses = losses.sum(1) / known
        else:
            of_labels = torch.tensor(case["label_weights"], dtype=torch.float64)
            logits, count = model(numeric, bags), len(of_labels)
            losses = cross_entropies(logits[:, :count], labels) @ of_labels
        loss = (weights * losses).sum() / weights.sum()
        taught = 0
        if case["students"]:
            teacher = torch.sigmoid(logits[:, :1].detach())
            students = F.binary_cross_entropy_with_logits(
                logits[:, count:], teacher.expand_as(logits[:, count:]), reduction="none").sum(1)
            taught = (weights * students).sum() / weights.sum()
        if case["branches"]:
            of_rows = cross_entropies(logits, labels[:, :1].expand_as(logits))
            means = (weights[:, None] * of_rows).sum(0) / weights.sum()
            taught = of_labels[0] * (torch.relu(means[1:] - means[0]) * means[1:]).sum()
        l2 = penalty(model, start)
        optimizer.zero_grad()
        (loss + taught + l2).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), case["clip_norm"])
        optimizer.step()
        for name, value in (("loss", loss), ("l2", l2), ("gradient_norm", norm)):
            result[name].append(value.item())
    result["final"] = sums(model)
    model.batch_norm.training = False
    labels, _, numeric, bags = tensors(start["evaluation"], start["fields"])
    if case["classes"]:
        losses = class_cross_entropies(model(numeric, bags), labels, case["classes"])[0]
    else:
        losses = cross_entropies(model(numeric, bags)[:, : len(case["label_weights"])], labels)
    logloss = losses.sum() / len(labels)
    result["evaluation_logloss"] = logloss.item()
    return result


def main(start_path, golden_path):
    with open(start_path) as file:
        start = json.load(file)
    golden = {name: train(case, start) for name, case in start["cases"].items()}
    with open(golden_path, "w") as file:
        json.dump(golden, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
