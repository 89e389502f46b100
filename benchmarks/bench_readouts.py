"""Readouts beside PyTorch Geometric's.

The rows ``gnp`` and ``gnp_pos`` have learned exponents on both sides and start from the
same kind of pooling; the results differ, since PyG's power mean clamps its input. The
row ``gnp_mean`` computes the same function on both sides: the mean of magnitudes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import PowerMeanAggregation

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

ROWS = (
    Row("gnp", GNP, POWER, weight_gradient=False, note=TWO),
    Row("gnp_pos", GNP_POS, POWER, weight_gradient=False, note=CLAMPED),
    Row("gnp_mean", GNP_POS, MEAN, weight_gradient=False),
)

if __name__ == "__main__":
    raise SystemExit(main(["bench_readouts"]))
