"""Graph parsing beside other pools that contract edges or thin out nodes.

The sides choose different clusters, each by its own rule, so their losses need not
agree; what they share is the task: scores from the features, clusters, pooled
features and weighted edges, with gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import EdgePooling

from benchmarks.harness import Forward, Row, Side
from benchmarks.inputs import NUM_CHANNELS, GraphInput
from benchmarks.runner import main

Built = tuple[Sequence[torch.nn.Module], Forward]


def build_parsing(graph: GraphInput, **options: Any) -> Built:
    """Our operator."""
    from pyg_pool import GraphParsingPooling

    pool = GraphParsingPooling(NUM_CHANNELS, **options)

    def forward(x: Tensor, edge_weight: Tensor) -> list[Tensor]:
        out = pool(
            x,
            graph.edge_index,
            edge_weight,
            batch=graph.batch,
            batch_size=graph.num_graphs,
        )
        return [out.x, out.edge_attr, out.score]

    return [pool], forward


def build_edge_pooling(graph: GraphInput) -> Built:
    """PyG's operator, which takes no edge weights."""
    pool = EdgePooling(NUM_CHANNELS)

    def forward(x: Tensor, edge_weight: Tensor) -> list[Tensor]:
        pooled, _, _, info = pool(x, graph.edge_index, graph.batch)
        return [pooled, info.new_edge_score]

    return [pool], forward


def _tgp_outputs(pool: torch.nn.Module, graph: GraphInput) -> Forward:
    def forward(x: Tensor, edge_weight: Tensor) -> list[Tensor]:
        out = pool(x, graph.edge_index, edge_weight, batch=graph.batch)
        given = [out.x, out.edge_weight, out.so.weight]
        return [each for each in given if each is not None]

    return forward


def build_tgp(graph: GraphInput, make: Callable[[], torch.nn.Module]) -> Built:
    """An operator of tgp."""
    pool = make()
    return [pool], _tgp_outputs(pool, graph)


def _contraction() -> torch.nn.Module:
    from tgp.poolers import EdgeContractionPooling

    return EdgeContractionPooling(in_channels=NUM_CHANNELS)


def _kmis() -> torch.nn.Module:
    from tgp.poolers import KMISPooling

    return KMISPooling(in_channels=NUM_CHANNELS)


@torch.no_grad()
def check_sizes(graph: GraphInput) -> dict[str, float]:
    """How far our operator shrinks the input."""
    from pyg_pool import GraphParsingPooling

    torch.manual_seed(0)
    out = GraphParsingPooling(NUM_CHANNELS)(graph.x, graph.edge_index)
    num_nodes, num_edges = graph.x.size(0), graph.edge_index.size(1)
    return {
        "share_of_nodes": out.x.size(0) / num_nodes,
        "share_of_edges": out.edge_index.size(1) / num_edges,
    }


OURS = ("pyg_pool",)
PARSING = Side("pyg_pool.GraphParsingPooling", build_parsing, OURS)
PLAIN = Side(
    'pyg_pool.GraphParsingPooling(deepsets_layers=0, edge_reduce="sum")',
    partial(build_parsing, deepsets_layers=0, edge_reduce="sum"),
    OURS,
)
EDGE_POOLING = Side("torch_geometric.nn.EdgePooling", build_edge_pooling)
TGP = ("tgp", "torch_scatter")
CONTRACTION = Side(
    "tgp.poolers.EdgeContractionPooling", partial(build_tgp, make=_contraction), TGP
)
KMIS = Side("tgp.poolers.KMISPooling", partial(build_tgp, make=_kmis), TGP)

DEEPSETS = "Ours also runs DeepSets (two linear maps and norms), the peer sums."
NO_WEIGHTS = (
    "The peer takes no edge weights and pools none; on c it takes over 25 s a step."
)
SIZES = "The peer chooses other clusters, so sizes and losses differ."

ROWS = (
    Row("edge_pooling", PARSING, EDGE_POOLING, ("a", "b"), weight_gradient=False,
        note=f"{NO_WEIGHTS} {DEEPSETS}", check=check_sizes),
    Row("edge_pooling_plain", PLAIN, EDGE_POOLING, ("a", "b"), weight_gradient=False,
        note=NO_WEIGHTS),
    Row("contraction", PARSING, CONTRACTION, note=f"{SIZES} {DEEPSETS}"),
    Row("contraction_plain", PLAIN, CONTRACTION, note=SIZES),
    Row("kmis", PARSING, KMIS, note=f"{SIZES} {DEEPSETS}"),
    Row("kmis_plain", PLAIN, KMIS, note=SIZES),
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(main(["bench_graph_parsing"]))
