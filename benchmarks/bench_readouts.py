"""Readouts beside PyTorch Geometric's.

The rows ``gnp`` and ``gnp_pos`` have learned exponents on both sides and start from the
same kind of pooling; the results differ, since PyG's power mean clamps its input. The
row ``gnp_mean`` computes the same function on both sides: the mean of magnitudes.

HISTOGRAPH reads the 64 channels as the history of four layers of width 16 and returns
64 channels; its peers read them as one layer. All have four heads. The exact attention
of HISTOGRAPH and of the set transformer is quadratic in the size of a graph, the
induced one and the multiset transformer are linear.

GLOT takes the groups as sequences of tokens, with a threshold that links about a
twentieth of all pairs of such random rows, and a peer that attends to the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import (
    AttentionalAggregation,
    GraphMultisetTransformer,
    PowerMeanAggregation,
    Set2Set,
    SetTransformerAggregation,
    SoftmaxAggregation,
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


def build_glot(graph: GraphInput) -> Built:
    """Our readout of tokens."""
    from pyg_pool import GLOTAggregation

    return _readout(graph, GLOTAggregation(64, 64, tau=0.2))


def build_softmax(graph: GraphInput) -> Built:
    """PyG's softmax with a learned temperature."""
    return _readout(graph, SoftmaxAggregation(learn=True))


def build_attentional(graph: GraphInput) -> Built:
    """PyG's gated sum with a gate of one hidden layer."""
    gate = torch.nn.Sequential(
        torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
    )
    return _readout(graph, AttentionalAggregation(gate))


def build_set2set(graph: GraphInput) -> Built:
    """PyG's recurrent query."""
    return _readout(graph, Set2Set(64, processing_steps=3))


OURS = ("pyg_pool",)
GNP = Side("pyg_pool.GNPAggregation", build_gnp, OURS)
GNP_POS = Side(
    'pyg_pool.GNPAggregation(mode="pos", q=1.0)',
    partial(build_gnp, mode="pos", q=1.0),
    OURS,
)
POWER = Side("torch_geometric.nn.PowerMeanAggregation(learn=True)", build_power_mean)
MEAN = Side("torch_geometric.nn.PowerMeanAggregation, wide clamps, of |x|", build_mean)

SOFTMAX = Side("torch_geometric.nn.SoftmaxAggregation(learn=True)", build_softmax)
ATTENTIONAL = Side(
    "torch_geometric.nn.AttentionalAggregation(64-64-1)", build_attentional
)
SET2SET = Side("torch_geometric.nn.Set2Set(64, processing_steps=3)", build_set2set)

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

GLOT = Side("pyg_pool.GLOTAggregation(64, 64, tau=0.2)", build_glot, OURS)

OTHER = "Two norms with learned exponents beside another learned readout."
EXACT = "Both attend among all nodes of a graph; the peer takes ascending groups only."
LINEAR = "Ours attends through 16 points, the peer among all nodes of a graph."
AGAINST_GMT = "Ours attends among all nodes of a graph, the peer through 10 seeds."
BOTH_LINEAR = "Ours attends through 16 points, the peer through 10 seeds."
TOKENS = "Ours links similar rows and passes messages before it attends."
SMALL = ("a", "b", "d")


def _row(
    name: str, ours: Side, peer: Side, note: str, inputs: tuple[str, ...] = SMALL
) -> Row:
    """A row of readouts, which look at no edge."""
    return Row(name, ours, peer, inputs, weight_gradient=False, note=note)


LARGE = ("a", "b", "c")
ROWS = (
    _row("gnp", GNP, POWER, TWO, LARGE),
    _row("gnp_pos", GNP_POS, POWER, CLAMPED, LARGE),
    _row("gnp_mean", GNP_POS, MEAN, "", LARGE),
    _row("gnp_softmax", GNP, SOFTMAX, OTHER, LARGE),
    _row("gnp_attentional", GNP, ATTENTIONAL, OTHER, LARGE),
    _row("gnp_set2set", GNP, SET2SET, OTHER, LARGE),
    _row("histograph", HISTOGRAPH, SETS, EXACT),
    _row("histograph_induced", INDUCED, SETS, LINEAR),
    _row("histograph_gmt", HISTOGRAPH, GMT, AGAINST_GMT),
    _row("histograph_induced_gmt", INDUCED, GMT, BOTH_LINEAR, ("a", "b", "c", "d")),
    _row("glot_attentional", GLOT, ATTENTIONAL, TOKENS),
    _row("glot_sets", GLOT, SETS, TOKENS),
    _row("glot_gmt", GLOT, GMT, TOKENS),
)

if __name__ == "__main__":
    raise SystemExit(main(["bench_readouts"]))
