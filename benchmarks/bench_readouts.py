"""Readouts beside PyTorch Geometric's.

The rows ``gnp`` and ``gnp_pos`` have learned exponents on both sides and start from the
same kind of pooling; the results differ, since PyG's power mean clamps its input. The
row ``gnp_mean`` computes the same function on both sides: the mean of magnitudes.

HISTOGRAPH reads the 64 channels as the history of four layers of width 16 and returns
64 channels; its peers read them as one layer. All have four heads. The exact attention
of HISTOGRAPH and of the set transformer is quadratic in the size of a graph, the
induced one and the multiset transformer are linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import (
    GraphMultisetTransformer,
    PowerMeanAggregation,
    SetTransformerAggregation,
)

from benchmarks.harness import Forward, Row, Side
from benchmarks.inputs import GraphInput
from benchmarks.runner import main

Built = tuple[Sequence[torch.nn.Module], Forward]


def _readout(graph: GraphInput, readout: torch.nn.Module) -> Built:
    """A readout of each graph of the input."""

    def forward(x: Tensor, edge_weight: Tensor) -> list[Tensor]:
        return [readout(x, graph.batch, dim_size=graph.num_graphs)]

    return [readout], forward


def build_gnp(graph: GraphInput, **options: Any) -> Built:
    """Our readout."""
    from pyg_pool import GNPAggregation

    return _readout(graph, GNPAggregation(**options))


def build_power_mean(graph: GraphInput) -> Built:
    """PyG's nearest relative."""
    return _readout(graph, PowerMeanAggregation(learn=True, p=1.0))


def build_mean(graph: GraphInput) -> Built:
    """PyG's power mean without its clamps, on magnitudes."""
    mean = PowerMeanAggregation(learn=True, p=1.0, clamp_min=1e-7, clamp_max=1e6)

    def forward(x: Tensor, edge_weight: Tensor) -> list[Tensor]:
        return [mean(x.abs(), graph.batch, dim_size=graph.num_graphs)]

    return [mean], forward


def build_histograph(graph: GraphInput, **options: Any) -> Built:
    """Our readout of four layers."""
    from pyg_pool import HistographAggregation

    return _readout(graph, HistographAggregation(16, 64, 4, heads=4, **options))


def build_set_transformer(graph: GraphInput) -> Built:
    """PyG's set transformer."""
    return _readout(graph, SetTransformerAggregation(64, heads=4, layer_norm=True))


def build_gmt(graph: GraphInput) -> Built:
    """PyG's multiset transformer."""
    return _readout(graph, GraphMultisetTransformer(64, k=10, heads=4, layer_norm=True))


OURS = ("pyg_pool",)
GNP = Side("pyg_pool.GNPAggregation", build_gnp, OURS)
GNP_POS = Side(
    'pyg_pool.GNPAggregation(mode="pos", q=1.0)',
    partial(build_gnp, mode="pos", q=1.0),
    OURS,
)
POWER = Side("torch_geometric.nn.PowerMeanAggregation(learn=True)", build_power_mean)
MEAN = Side("torch_geometric.nn.PowerMeanAggregation, wide clamps, of |x|", build_mean)

TWO = "Ours computes two norms, the peer one; the peer clamps to 1e-4..100."
CLAMPED = "The peer clamps to 1e-4..100, so negative numbers count as 1e-4."

HISTOGRAPH = Side("pyg_pool.HistographAggregation(16, 64, 4)", build_histograph, OURS)
INDUCED = Side(
    'pyg_pool.HistographAggregation(16, 64, 4, node_attention="induced")',
    partial(build_histograph, node_attention="induced"),
    OURS,
)
SETS = Side(
    "torch_geometric.nn.SetTransformerAggregation(64, heads=4)", build_set_transformer
)
GMT = Side("torch_geometric.nn.GraphMultisetTransformer(64, k=10, heads=4)", build_gmt)

EXACT = "Both attend among all nodes of a graph; the peer takes ascending groups only."
LINEAR = "Ours attends through 16 points, the peer among all nodes of a graph."
AGAINST_GMT = "Ours attends among all nodes of a graph, the peer through 10 seeds."
BOTH_LINEAR = "Ours attends through 16 points, the peer through 10 seeds."
SMALL = ("a", "b", "d")

ROWS = (
    Row("gnp", GNP, POWER, weight_gradient=False, note=TWO),
    Row("gnp_pos", GNP_POS, POWER, weight_gradient=False, note=CLAMPED),
    Row("gnp_mean", GNP_POS, MEAN, weight_gradient=False),
    Row("histograph", HISTOGRAPH, SETS, SMALL, weight_gradient=False, note=EXACT),
    Row("histograph_induced", INDUCED, SETS, SMALL, weight_gradient=False, note=LINEAR),
    Row(
        "histograph_gmt",
        HISTOGRAPH,
        GMT,
        SMALL,
        weight_gradient=False,
        note=AGAINST_GMT,
    ),
    Row(
        "histograph_induced_gmt",
        INDUCED,
        GMT,
        ("a", "b", "c", "d"),
        weight_gradient=False,
        note=BOTH_LINEAR,
    ),
)

if __name__ == "__main__":
    raise SystemExit(main(["bench_readouts"]))
