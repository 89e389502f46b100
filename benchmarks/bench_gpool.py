"""gPool and the graph U-net beside PyTorch Geometric and tgp.

Both sides get the same tensors, the same projection vector and the same tanh gate,
so their losses agree; the record keeps the relative gap. Rows that square the
adjacency hold the edge weights constant, since PyG's gradient through its sparse
square fills a dense nodes x nodes matrix; the rows ending in ``_grad`` show that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from torch_geometric.nn import GraphUNet as PyGGraphUNet
from torch_geometric.nn import TopKPooling
from torch_geometric.nn.pool.select import SelectOutput

from benchmarks.harness import Forward, Row, Side
from benchmarks.inputs import NUM_CHANNELS, GraphInput
from benchmarks.runner import main

DEPTH = 3
Built = tuple[Sequence[torch.nn.Module], Forward]


def _projection() -> Tensor:
    """The projection vector shared by both sides of a row."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(1, NUM_CHANNELS, generator=generator)


def build_gpool(graph: GraphInput, augment: str) -> Built:
    """Our operator with the form of PyG's."""
    from pyg_pool import GPool

    pool = GPool(NUM_CHANNELS, 0.5, preset="pyg", augment=augment)
    pool.load_state_dict({"select.weight": _projection()})

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


def build_topk(graph: GraphInput, augment: str) -> Built:
    """PyG's operator, after PyG's squaring of the adjacency if asked for."""
    pool = TopKPooling(NUM_CHANNELS, 0.5)
    pool.load_state_dict({"select.weight": _projection()})
    square = PyGGraphUNet(1, 1, 1, depth=1).augment_adj

    def forward(x: Tensor, edge_weight: Tensor) -> list[Tensor]:
        edge_index = graph.edge_index
        if augment == "weighted":
            edge_index, edge_weight = square(edge_index, edge_weight, x.size(0))
        x, _, edge_weight, _, _, score = pool(x, edge_index, edge_weight, graph.batch)
        return [x, edge_weight, score]

    return [pool], forward


def build_tgp(graph: GraphInput) -> Built:
    """The tgp operator; its edges are added up and lose their loops by default."""
    from tgp.poolers import TopkPooling

    pool = TopkPooling(NUM_CHANNELS, 0.5)
    pool.load_state_dict({"selector.weight": _projection()})

    def forward(x: Tensor, edge_weight: Tensor) -> list[Tensor]:
        out = pool(x, graph.edge_index, edge_weight, batch=graph.batch)
        return [out.x, out.edge_weight, out.so.weight]

    return [pool], forward


def build_unet(graph: GraphInput) -> Built:
    """Our U-net with PyG's form and weights."""
    from pyg_pool.models import GraphUNet

    model = GraphUNet(
        NUM_CHANNELS, NUM_CHANNELS, NUM_CHANNELS, depth=DEPTH, preset="pyg"
    )
    model.load_state_dict(_pyg_unet().state_dict())

    def forward(x: Tensor, edge_weight: Tensor) -> list[Tensor]:
        return [
            model(
                x,
                graph.edge_index,
                edge_weight,
                batch=graph.batch,
                batch_size=graph.num_graphs,
            )
        ]

    return [model], forward


def _pyg_unet() -> PyGGraphUNet:
    """PyG's U-net with weights that depend on nothing but the seed."""
    torch.manual_seed(1)
    return PyGGraphUNet(NUM_CHANNELS, NUM_CHANNELS, NUM_CHANNELS, depth=DEPTH)


def build_pyg_unet(graph: GraphInput) -> Built:
    """PyG's U-net."""
    model = _pyg_unet()

    def forward(x: Tensor, edge_weight: Tensor) -> list[Tensor]:
        return [model(x, graph.edge_index, graph.batch, edge_weight)]

    return [model], forward


def _share_of_true_edges(
    graph: GraphInput, selection: SelectOutput, edge_index: Tensor
) -> float:
    """Share of pooled edges whose end rows stem from neighbours in the input."""
    origin = torch.empty_like(selection.node_index)
    origin[selection.cluster_index] = selection.node_index
    num_nodes = graph.x.size(0)
    known = graph.edge_index[0] * num_nodes + graph.edge_index[1]
    row, column = origin[edge_index]
    return torch.isin(row * num_nodes + column, known).double().mean().item()


@torch.no_grad()
def check_tgp_edges(graph: GraphInput) -> dict[str, float]:
    """How many pooled edges of either side join nodes that were joined before."""
    from tgp.poolers import TopkPooling

    from pyg_pool import GPool

    theirs = TopkPooling(NUM_CHANNELS, 0.5)
    theirs.load_state_dict({"selector.weight": _projection()})
    ours = GPool(NUM_CHANNELS, 0.5, preset="pyg")
    ours.load_state_dict({"select.weight": _projection()})
    peer = theirs(graph.x, graph.edge_index, graph.edge_weight, batch=graph.batch)
    own = ours(graph.x, graph.edge_index, graph.edge_weight, batch=graph.batch)
    return {
        "peer_true_edges": _share_of_true_edges(graph, peer.so, peer.edge_index),
        "ours_true_edges": _share_of_true_edges(graph, own.selection, own.edge_index),
    }


OURS = ("pyg_pool",)
GPOOL = Side("pyg_pool.GPool", partial(build_gpool, augment="none"), OURS)
GPOOL_SQUARE = Side(
    'pyg_pool.GPool(augment="weighted")', partial(build_gpool, augment="weighted"), OURS
)
TOPK = Side("torch_geometric.nn.TopKPooling", partial(build_topk, augment="none"))
TOPK_SQUARE = Side(
    "torch_geometric GraphUNet.augment_adj + TopKPooling",
    partial(build_topk, augment="weighted"),
)
TGP = Side("tgp.poolers.TopkPooling", build_tgp, ("tgp", "torch_scatter"))
UNET = Side("pyg_pool.models.GraphUNet, depth 3", build_unet, OURS)
PYG_UNET = Side("torch_geometric.nn.GraphUNet, depth 3", build_pyg_unet)

WRONG_EDGES = (
    "The peer's pooled edges are wrong: its rows are ordered by score, its edges by "
    "node number, so most pooled edges join nodes that were never linked. It does "
    "less than the task asks for."
)
CONSTANT = "Edge weights held constant."
DENSE = "With gradients to edge weights the peer fills a dense nodes x nodes matrix."

ROWS = (
    Row(
        "noise",
        TOPK,
        TOPK,
        note="One thing against itself: how far from 1 a quotient may be by chance.",
    ),
    Row("plain", GPOOL, TOPK),
    Row("square", GPOOL_SQUARE, TOPK_SQUARE, weight_gradient=False, note=CONSTANT),
    Row("square_grad", GPOOL_SQUARE, TOPK_SQUARE, note=DENSE),
    Row("tgp", GPOOL, TGP, note=WRONG_EDGES, check=check_tgp_edges),
    Row("unet", UNET, PYG_UNET, weight_gradient=False, note=CONSTANT),
    Row("unet_grad", UNET, PYG_UNET, note=DENSE),
)

if __name__ == "__main__":
    raise SystemExit(main(["bench_gpool"]))
