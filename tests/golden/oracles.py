#!/usr/bin/env python3
"""Compares formulas of golden.py with public layers, values and gradients, in float64.

    pip install torch && pip install --no-deps fuxictr
    python3 tests/golden/oracles.py

Prints the largest relative difference of each; exit code 1 when one is above 1e-12.
"""

import importlib.util
import pathlib
import sys

import golden
import torch
from torch import nn

MOST = 1e-12
B, N, K = 7, 5, 6  # rows, fields, width


def fuxictr(path, name):
    """A class of a file of FuxiCTR, without the imports of its packages."""
    root = pathlib.Path(importlib.util.find_spec("fuxictr").submodule_search_locations[0])
    spec = importlib.util.spec_from_file_location(name, root / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def compare(name, ours, theirs, inputs):
    """Both are functions of no arguments; inputs: the tensors to differentiate by."""
    worst = 0
    results = []
    for function in (ours, theirs):
        y = function()
        weights = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).reshape(y.shape)
        results.append([y, *torch.autograd.grad((y * weights).sum(), inputs)])
    for a, b in zip(*results):
        worst = max(worst, ((a - b).abs().max() / b.abs().max()).item())
    print(f"{name}: largest relative difference {worst:.1e}")
    return worst <= MOST


def main():
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    e = torch.randn(B, N, K, requires_grad=True)
    products = fuxictr("pytorch/layers/interactions/inner_product.py", "InnerProductInteraction")
    same = [
        compare("FM, NFM, DeepFM", lambda: golden.pooled_products(e),
                lambda: products(N, "bi_interaction")(e), [e]),
        compare("IPNN, FwFM", lambda: golden.dot_products(e),
                lambda: products(N, "inner_product")(e), [e]),
    ]

    net = fuxictr("pytorch/layers/interactions/cross_net.py", "CrossNet")(N * K, 3)
    for layer in net.cross_net:
        nn.init.normal_(layer.bias)
    crosses = {f"cross{i}.{part}": value for i, layer in enumerate(net.cross_net)
               for part, value in (("weight", layer.weight.weight), ("bias", layer.bias))}
    # A head that returns the crosses alone, and nothing of the deep network.
    crosses |= {"head.weight": torch.eye(N * K, 2 * N * K), "head.bias": torch.zeros(N * K)}
    same.append(compare("DCN", lambda: golden.dcn(golden.Parameters(crosses), e, None, None),
                        lambda: net(e.flatten(1)), [e, *net.parameters()]))

    layer = nn.TransformerEncoderLayer(K, 2, dim_feedforward=K, dropout=0, batch_first=True,
                                       activation=nn.LeakyReLU())
    query, key, value = layer.self_attn.in_proj_weight.chunk(3)
    biases = layer.self_attn.in_proj_bias.chunk(3)
    encoder = {"bst.f.positions": torch.zeros(N, K)}
    for name, weight, bias in (("query", query, biases[0]), ("key", key, None),
                               ("value", value, biases[2]),
                               ("output", layer.self_attn.out_proj.weight, layer.self_attn.out_proj.bias),
                               ("mlp.hidden", layer.linear1.weight, layer.linear1.bias),
                               ("mlp.output", layer.linear2.weight, layer.linear2.bias)):
        encoder[f"bst.f.layer0.{name}.weight"] = weight
        if bias is not None:
            encoder[f"bst.f.layer0.{name}.bias"] = bias
    for name, norm in (("attention.norm", layer.norm1), ("mlp.norm", layer.norm2)):
        encoder |= {f"bst.f.layer0.{name}.gain": norm.weight, f"bst.f.layer0.{name}.bias": norm.bias}
    spec = {"name": "f", "heads": 2}
    bst = lambda: torch.stack([
        golden.Model.bst(None, golden.Parameters(encoder), spec, row[:-1], row[-1]) for row in e])
    same.append(compare("BST", bst, lambda: layer(e)[:, -1],
                        [e, layer.linear1.weight, layer.self_attn.out_proj.weight, layer.norm1.weight]))
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
