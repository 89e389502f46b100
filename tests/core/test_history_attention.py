"""Both attentions of a history beside the formulas, layer by layer."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from pyg_pool import HistographAggregation
from pyg_pool.core.history_attention import (
    NodeRows,
    affine,
    induced,
    layer_logits,
    mutual,
    trace_history,
)
from pyg_pool.core.history_form import sinusoids
from pyg_pool.kernels.layer_mix import History

INDEX = torch.tensor([1, 0, 0, 1, 0])


def weights_of(readout: HistographAggregation) -> dict[str, Tensor]:
    return dict(readout.named_parameters())


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_logits_are_those_of_projected_layers(scale: float) -> None:
    x = torch.randn(5, 7, dtype=torch.float64)
    widths, width = (3, 4), 6
    maps = [torch.randn(width, w, dtype=torch.float64) for w in widths]
    constants = torch.randn(2, width, dtype=torch.float64)
    w_q, w_k = torch.randn(2, width, width, dtype=torch.float64)
    layers = [
        x[:, :3] @ maps[0].t() + constants[0],
        x[:, 3:] @ maps[1].t() + constants[1],
    ]
    wanted = torch.zeros(2, 2, dtype=torch.float64)
    for layer in range(2):
        product = ((layers[1] @ w_q.t()) * (layers[layer] @ w_k.t())).sum(-1)
        for graph in range(2):
            wanted[graph, layer] = product[graph == INDEX].mean() / math.sqrt(width)
    factor = torch.full((2,), scale, dtype=torch.float64)
    joint = torch.cat([*maps, constants.t()], 1)
    rows = factor[INDEX].unsqueeze(-1)
    found = layer_logits(History(x, (0, 3, 7), INDEX, factor), joint, w_q, w_k, rows)
    assert_close(found, wanted * scale**2)


def test_affine_scales_its_bias() -> None:
    x, bias = torch.randn(3, 4), torch.randn(2)
    weight, rows = torch.randn(2, 4), torch.rand(3, 1)
    assert_close(affine(x * rows, rows, weight, bias), (x @ weight.t() + bias) * rows)


def test_scaled_rows_attend_alike() -> None:
    qkv = torch.randn(5, 12, dtype=torch.float64)
    points, weight = torch.randn(3, 4).double(), torch.randn(8, 4).double()
    bias = torch.randn(8).double()
    found = []
    for scale in (torch.ones(2).double(), torch.tensor([0.5, 2.0**-6]).double()):
        rows = scale[INDEX].unsqueeze(-1)
        nodes = NodeRows(INDEX, rows, scale, heads=2, chunk_size=4)
        scaled = qkv * rows
        found.append((mutual(scaled, nodes) / rows,
                      induced(scaled, points, weight, bias, nodes) / rows))  # fmt: skip
    assert_close(found[0], found[1])


def test_induced_attention_of_one_point_sees_one_mean() -> None:
    qkv = torch.randn(5, 12)
    nodes = NodeRows(INDEX, torch.ones(5, 1), torch.ones(2), heads=1, chunk_size=64)
    weight = torch.cat([torch.zeros(4, 4), torch.eye(4)])
    out = induced(qkv, torch.zeros(1, 4), weight, torch.zeros(8), nodes)
    for graph in range(2):
        mean = qkv[graph == INDEX, 8:].mean(0, keepdim=True)
        assert_close(out[graph == INDEX], mean.expand(int((graph == INDEX).sum()), 4))


def test_trace_without_attentions_is_the_mean_projection() -> None:
    readout = HistographAggregation(
        3, 4, 2, layer_attention="mean", node_attention=False
    ).double()
    x = torch.randn(5, 6, dtype=torch.float64)
    found = trace_history(x, INDEX, 2, readout.form, weights_of(readout), 0.0)
    parts = [
        layer(x[:, 3 * i : 3 * i + 3]) + sinusoids(2, 4, x)[i]
        for i, layer in enumerate(readout.hist)
    ]
    assert_close(found.nodes, torch.stack(parts).mean(0))


def test_large_rows_are_scaled_not_changed() -> None:
    readout = HistographAggregation(3, 4, 2, heads=2)
    x = torch.randn(5, 6)
    huge = x * 2.0**30
    wide = {name: weight.double() for name, weight in readout.named_parameters()}
    found = trace_history(huge, INDEX, 2, readout.form, weights_of(readout), 0.0)
    wanted = trace_history(huge.double(), INDEX, 2, readout.form, wide, 0.0)
    assert (found.scale < 1).all()
    assert_close(found.nodes.double(), wanted.nodes, atol=1e-3, rtol=1e-3)
    assert_close(
        found.layer_weights.double(), wanted.layer_weights, atol=1e-3, rtol=1e-3
    )
