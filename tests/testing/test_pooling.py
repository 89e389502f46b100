"""Each check of poolings finds an operator that breaks its promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from pyg_pool import Pooling, PoolOutput, Selection
from pyg_pool.core import connect
from pyg_pool.kernels import topk
from pyg_pool.testing import POOLING_CHECKS, PoolingSpec, check_pooling
from pyg_pool.testing import pooling as checks


class Half(Pooling):
    """Keeps the half with the largest sums; keeps the contract."""

    gate = staticmethod(torch.sigmoid)

    def score(self, x: Tensor, batch: Tensor) -> Tensor:
        return x.sum(dim=1)

    def select(self, x, edge_index, edge_attr, batch, batch_size) -> Selection:
        score = self.score(x, batch)
        kept = topk(score, 0.5, batch=batch, batch_size=batch_size)
        return Selection.from_nodes(kept, x.size(0), self.gate(score[kept]))


class Pairs(Pooling):
    """Joins nodes with equal signs of the first feature; keeps the contract."""

    def select(self, x, edge_index, edge_attr, batch, batch_size) -> Selection:
        key = 2 * batch + (x[:, 0] > 0).long()
        cluster = torch.unique(key, return_inverse=True)[1]
        return Selection.from_clusters(cluster)


class EdgesInNodeOrder(Half):
    """Rows by score, edges by node: neighbours that never were."""

    def connect(self, selection, edge_index, edge_attr, batch):
        ordered = Selection.from_nodes(
            selection.node_index.sort().values, selection.num_nodes
        )
        edges = connect(ordered, edge_index, edge_attr)
        edges.batch = batch[selection.node_index]
        return edges


class RowsInNodeOrder(Half):
    def reduce(self, x, selection):
        rows = super().reduce(x, selection)
        return rows[selection.node_index.argsort()]


class ReadsMates(Half):
    def score(self, x, batch):
        return x.sum(dim=1) - x.mean()


class ReadsPosition(Half):
    def score(self, x, batch):
        return x.sum(dim=1) + torch.arange(x.size(0)) / 3


class WantsSorted(Half):
    """Takes the rows of graph 0 to come first."""

    def select(self, x, edge_index, edge_attr, batch, batch_size):
        kept = topk(x.sum(1), 0.5, batch=batch.sort().values, batch_size=batch_size)
        return Selection.from_nodes(kept, x.size(0))


class LastOfTies(Half):
    def select(self, x, edge_index, edge_attr, batch, batch_size):
        score = self.score(x, batch).flip(0)
        kept = topk(score, 0.5, batch=batch.flip(0), batch_size=batch_size)
        return Selection.from_nodes(x.size(0) - 1 - kept, x.size(0))


class TiesByDtype(Pairs):
    def select(self, x, edge_index, edge_attr, batch, batch_size):
        if x.dtype == torch.bfloat16:
            batch = torch.arange(x.size(0))
        return super().select(x, edge_index, edge_attr, batch, batch_size)


class HidesNaN(Half):
    def reduce(self, x, selection):
        return super().reduce(x, selection).nan_to_num()


class SpreadsNaN(Half):
    def reduce(self, x, selection):
        return super().reduce(x, selection) + 0 * x.sum()


class LosesSmallGraphs(Half):
    def select(self, x, edge_index, edge_attr, batch, batch_size):
        kept = topk(x.sum(1), 0.5, batch=batch, batch_size=batch_size)
        large = torch.bincount(batch, minlength=batch_size) > 1
        return Selection.from_nodes(kept[large[batch[kept]]], x.size(0))


class GuessesNodes(Half):
    """Takes the largest id in the edges for the number of nodes."""

    def select(self, x, edge_index, edge_attr, batch, batch_size):
        size = int(edge_index.max()) + 1 if edge_index.numel() > 0 else 0
        kept = topk(x[:size].sum(1), 0.5, batch=batch[:size], batch_size=batch_size)
        return Selection.from_nodes(kept, x.size(0))


class GuessesGraphs(Half):
    def pack(self, x, edges, selection, score, loss, batch_size):
        size = int(edges.batch.max()) + 1 if edges.batch.numel() > 0 else 0
        return super().pack(x, edges, selection, score, loss, size)


class DropsWeights(Half):
    def connect(self, selection, edge_index, edge_attr, batch):
        return super().connect(selection, edge_index, None, batch)


class FirstWeightOnly(Half):
    def connect(self, selection, edge_index, edge_attr, batch):
        edges = super().connect(selection, edge_index, edge_attr, batch)
        if edges.edge_attr is not None and edges.edge_attr.dim() == 2:
            edges.edge_attr = edges.edge_attr[:, 0]
        return edges


class GatesEdges(Half):
    """The gate acts on the edges as well."""

    def connect(self, selection, edge_index, edge_attr, batch):
        return connect(selection, edge_index, edge_attr, weighted=True, batch=batch)


class InventsLoops(Half):
    def connect(self, selection, edge_index, edge_attr, batch):
        edges = super().connect(selection, edge_index, edge_attr, batch)
        loops = torch.arange(selection.num_clusters).expand(2, -1)
        edges.edge_index = torch.cat([edges.edge_index, loops], dim=1)
        if edges.edge_attr is not None:
            ones = edges.edge_attr.new_ones([loops.size(1), *edges.edge_attr.shape[1:]])
            edges.edge_attr = torch.cat([edges.edge_attr, ones])
        return edges


class JoinsGraphs(Half):
    def connect(self, selection, edge_index, edge_attr, batch):
        edges = super().connect(selection, edge_index, edge_attr, batch)
        edges.edge_index[1] = edges.edge_index[1].flip(0)
        return edges


class OtherForOneGraph(Half):
    def forward(self, x, edge_index, edge_attr=None, *, batch=None, batch_size=None):
        factor = 2.0 if batch is None else 1.0
        return super().forward(
            factor * x, edge_index, edge_attr, batch=batch, batch_size=batch_size
        )


class InfiniteGradient(Half):
    def reduce(self, x, selection):
        rows = super().reduce(x, selection)
        return (
            rows + 0 * torch.linalg.vector_norm(0 * rows, dim=-1, keepdim=True).sqrt()
        )


class DividesByScore(Half):
    gate = staticmethod(lambda score: score * 0)

    def reduce(self, x, selection):
        return super().reduce(x, selection) / selection.weight.unsqueeze(-1)


class LiftedTwice(PoolOutput):
    def lift(self, x, how="transpose", *, weighted=False):
        return 2 * super().lift(x, how, weighted=weighted)


class LiftsUnchecked(PoolOutput):
    def lift(self, x, how="transpose", *, weighted=False):
        return super().lift(x[: self.selection.num_clusters], how, weighted=weighted)


class Forgetful(Selection):
    def compose(self, coarser):
        return Selection.from_nodes(coarser.node_index, self.num_nodes)


class BadLift(Half):
    kind: type[PoolOutput] = LiftedTwice

    def pack(self, *args):
        return self.kind(**vars(super().pack(*args)))


class UncheckedLift(BadLift):
    kind = LiftsUnchecked


class BadLevels(Half):
    def pack(self, *args):
        out = super().pack(*args)
        found = out.selection
        return replace(
            out,
            selection=Forgetful(
                found.node_index,
                found.num_nodes,
                found.cluster_index,
                found.num_clusters,
                found.weight,
                kind="one_to_one",
            ),
        )


BROKEN = [
    (LosesSmallGraphs, checks.check_gallery, "nothing is left"),
    (GuessesNodes, checks.check_gallery, "nothing is left of graphs"),
    (GuessesGraphs, checks.check_gallery, "batch_size changed"),
    (DropsWeights, checks.check_gallery, "dropped"),
    (FirstWeightOnly, checks.check_gallery, "edge_attr has shape"),
    (InfiniteGradient, checks.check_gallery, "gradient of x is not finite"),
    (DividesByScore, checks.check_gallery, "not finite"),
    (JoinsGraphs, checks.check_gallery, "joins two graphs"),
    (ReadsPosition, checks.check_permutation, "members"),
    (RowsInNodeOrder, checks.check_permutation, "features"),
    (WantsSorted, checks.check_permutation, "members|clusters"),
    (ReadsMates, checks.check_batch_independence, "members"),
    (RowsInNodeOrder, checks.check_batch_independence, "features"),
    (OtherForOneGraph, checks.check_single_graph, "without batch"),
    (WantsSorted, checks.check_groups, "ascending graphs"),
    (GuessesGraphs, checks.check_groups, None),
    (EdgesInNodeOrder, checks.check_adjacency, "pattern"),
    (InventsLoops, checks.check_adjacency, "come from nowhere"),
    (GatesEdges, checks.check_adjacency, "values"),
    (BadLevels, checks.check_levels, "composed"),
    (BadLift, checks.check_lift, "lift"),
    (UncheckedLift, checks.check_lift, "another level"),
    (LastOfTies, checks.check_ties, "equal nodes"),
    (TiesByDtype, checks.check_ties, "another run or dtype"),
    (HidesNaN, checks.check_nan, "hidden"),
    (SpreadsNaN, checks.check_nan, "beside a NaN"),
]


@pytest.mark.parametrize(
    ("cls", "check", "message"),
    [
        pytest.param(*case, id=f"{case[0].__name__}-{case[1].__name__}")
        for case in BROKEN
    ],
)
def test_broken_operator_is_found(
    cls: type[Pooling], check: Callable[[PoolingSpec], None], message: str | None
) -> None:
    spec = PoolingSpec(lambda _: cls())
    if message is None:
        check(spec)
        return
    with pytest.raises(AssertionError, match=f"(?s){cls.__name__} fails.*({message})"):
        check(spec)


@pytest.mark.parametrize("cls", [Half, Pairs])
def test_sound_operator_passes(cls: type[Pooling]) -> None:
    only = [
        "gallery",
        "permutation",
        "batch_independence",
        "single_graph",
        "groups",
        "adjacency",
        "levels",
        "lift",
        "ties",
        "nan",
    ]
    assert set(only) <= set(POOLING_CHECKS)
    spec = PoolingSpec(lambda _: cls())
    assert set(check_pooling(spec, only=only).values()) == {"passed"}


def test_refused_attributes_need_a_clear_error() -> None:
    spec = PoolingSpec(lambda _: Half(), takes_attributes=False)
    with pytest.raises(AssertionError, match="neither pooled nor refused"):
        checks.check_gallery(spec)


def test_documented_matrix_is_the_one_compared_with() -> None:
    spec = PoolingSpec(lambda _: Half(), adjacency=lambda a: a @ a)
    with pytest.raises(AssertionError, match="pattern"):
        checks.check_adjacency(spec)
