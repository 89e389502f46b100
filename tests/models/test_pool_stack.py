from __future__ import annotations

import pytest
import torch

from pyg_pool import GPool, Pooling, Selection
from pyg_pool.models.pool_stack import (
    Graph,
    PoolStack,
    graph_of,
    hierarchy_of,
    make_pools,
    per_level,
    sum_losses,
    with_loops,
)

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


class First(Pooling):
    """Keeps the first ``keep`` rows."""

    def __init__(self, keep: int = 2) -> None:
        super().__init__()
        self.keep = keep

    def select(self, x, edge_index, edge_attr, batch, batch_size):
        return Selection.from_nodes(torch.arange(self.keep), x.size(0))


def test_per_level() -> None:
    assert per_level("Net", "ratio", 0.5, 3) == [0.5, 0.5, 0.5]
    assert per_level("Net", "ratio", [0.9, 4], 3) == [0.9, 4, 4]
    for wrong in ([], [1, 2, 3, 4]):
        with pytest.raises(ValueError, match="expected 1 to 3, one per level"):
            per_level("Net", "ratio", wrong, 3)


def test_pools_from_words_classes_functions_and_lists() -> None:
    pools = make_pools("Net", "gpool", 4, [0.5, 3], {"nonlinearity": "tanh"})
    assert [pool.ratio for pool in pools] == [0.5, 3]
    assert pools[0].nonlinearity == "tanh"
    pools = make_pools("Net", First, 4, [0.5, 3], {"keep": 1})
    assert [pool.keep for pool in pools] == [1, 1]
    pools = make_pools("Net", lambda width, ratio: GPool(width, ratio), 4, [2], {})
    assert (pools[0].in_channels, pools[0].ratio) == (4, 2)
    given = [First(), GPool(4)]
    assert make_pools("Net", given, 4, [1, 1], {}) == given
    only = GPool(4)
    assert make_pools("Net", only, 4, [1], {}) == [only]
    assert make_pools("Net", "precomputed", 4, [1], {}) == []


def test_wrong_pools_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Net got pool='gpol'.*did you mean 'gpool'"):
        make_pools("Net", "gpol", 4, [1], {})
    with pytest.raises(ValueError, match="got 1 pooling operators, expected 2"):
        make_pools("Net", [GPool(4)], 4, [1, 1], {})
    with pytest.raises(ValueError, match="set them where it is built"):
        make_pools("Net", [GPool(4)], 4, [1], {"bias": True})
    with pytest.raises(ValueError, match="set them where it is built"):
        make_pools("Net", "precomputed", 4, [1], {"bias": True})
    with pytest.raises(TypeError, match="of type Linear"):
        make_pools("Net", [torch.nn.Linear(1, 1)], 4, [1], {})
    with pytest.raises(TypeError):
        make_pools("Net", "gpool", 4, [1], {"biass": True})


def stack(pool="gpool", levels: int = 1, **options) -> PoolStack:
    return PoolStack("Net", pool, 2, [2] * levels, options, "mean")


def test_coarsening_runs_the_pool_of_the_level() -> None:
    pools = stack([First(2), First(1)], levels=2)
    x, graph = pools.begin(torch.ones(3, 2), 2, (EDGES, None, None, None), None)
    assert (graph.batch, graph.batch_size) == (None, 1)
    out = pools.coarsen(1, x, graph, None)
    assert out.x.size(0) == 1
    assert graph_of(pools.coarsen(0, x, graph, None)).edge_index.tolist() == [
        [0, 1],
        [1, 0],
    ]


def test_coarsening_follows_a_hierarchy() -> None:
    graph = Graph(EDGES, None, torch.tensor([1, 1, 0]), 2)
    x = torch.tensor([[1.0], [2.0], [3.0]])
    selection = Selection.from_clusters(torch.tensor([1, 1, 0]))
    pooled = First(2)(x, EDGES)
    pooled.selection, pooled.batch = selection, None
    hierarchy = hierarchy_of(x, graph, [pooled])
    pools = stack("precomputed")
    out = pools.coarsen(0, x, graph, hierarchy)
    assert out.x.tolist() == [[3.0], [1.5]]
    assert out.batch.tolist() == [0, 1]
    assert out.batch_size == 2


def test_a_hierarchy_brings_its_own_batch() -> None:
    graph = Graph(EDGES, None, torch.tensor([0, 0, 1]), 3)
    x = torch.ones(3, 2)
    hierarchy = hierarchy_of(x, graph, [First(2)(x, EDGES)])
    _, found = stack("precomputed").begin(x, 2, (EDGES, None, None, None), hierarchy)
    assert found.batch is graph.batch
    assert found.batch_size == 3


def test_edge_channels_follow_the_two_hop_variant() -> None:
    assert stack(levels=2).edge_channels(2, 3) == 3
    assert stack(augment="binary").edge_channels(0, 3) == 3
    assert stack(augment="binary").edge_channels(1, 3) is None
    assert stack(augment="weighted", levels=2).edge_channels(2, 1) == 1
    assert stack(augment="weighted").edge_channels(1, None) is None
    with pytest.raises(ValueError, match="set augment='none'"):
        stack(augment="square").edge_channels(1, 2)


def test_small_helpers() -> None:
    graph = with_loops(Graph(EDGES, torch.ones(4), None, 1), 3)
    assert graph.edge_index.size(1) == 7
    out = First(2)(torch.ones(3, 2), EDGES)
    out.loss = torch.tensor(1.5)
    assert sum_losses([out, out]) == 3.0


def test_reset_parameters_reaches_the_pools() -> None:
    pools = stack()
    pools[0].weight.data.fill_(99.0)
    pools.reset_parameters()
    assert (pools[0].weight != 99).all()
