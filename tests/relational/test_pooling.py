"""Pooling steps by name, their order, and samples."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GCNConv, SoftmaxAggregation

from pyg_pool.relational import (
    CopyPooling,
    RelationalPooling,
    expand_copies,
    find_tuples,
    lay_ground,
)
from pyg_pool.relational.pooling import Pool

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.mark.parametrize(
    "word", ["sum", "mean", "max", "min", "gnp", "median", "softmax", "std"]
)
def test_every_pool_takes_any_order_and_empty_groups(word: str) -> None:
    pool, x = Pool(word).double(), torch.randn(6, 2, dtype=torch.float64)
    index = torch.tensor([3, 0, 3, 1, 0, 3])
    out = pool(x, index, 5)
    assert out[[2, 4]].eq(0).all()
    order = torch.randperm(6)
    torch.testing.assert_close(pool(x[order], index[order], 5), out)
    torch.testing.assert_close(pool(x[index == 0], index[index == 0] * 0, 1), out[:1])


def test_pools_may_be_modules_and_unknown_ones_are_refused() -> None:
    assert Pool(SoftmaxAggregation(learn=True)).word == "SoftmaxAggregation"
    with pytest.raises(ValueError, match="expected one of"):
        Pool("summ")
    with pytest.raises(ValueError, match="for each position"):
        CopyPooling("nested")
    with pytest.raises(ValueError, match="did you mean 'root'"):
        CopyPooling("roots")


def test_orders_equal_loops() -> None:
    tuples = find_tuples(EDGES, None, 2, "star")
    copies = expand_copies(lay_ground(EDGES, None), tuples)
    x = torch.randn(copies.num_pairs, 2, dtype=torch.float64)
    h, batch = x.view(4, 3, 2), torch.zeros(3, dtype=torch.long)
    rows = tuples.index
    ids = torch.arange(4)
    labelled = torch.stack([h[ids, rows[:, i]] for i in range(2)])
    wants = {
        "tuple": h.sum(1).max(0).values,
        "node": h.max(0).values.sum(0),
        "root": labelled[0].max(0).values,
        "labelled": labelled.sum(0).max(0).values,
    }
    for word, want in wants.items():
        pooling = CopyPooling(word, node_pool="sum", tuple_pool="max")
        torch.testing.assert_close(pooling(x, copies, batch)[0], want)
    nested = CopyPooling(nested=["sum", "max"])
    inner = torch.stack([h.sum(1)[rows[:, 0] == v].max(0).values for v in range(3)])
    torch.testing.assert_close(nested(x, copies, batch)[0], inner.sum(0))
    node = CopyPooling(nested=["sum", "max"], level="node")
    torch.testing.assert_close(node(x, copies, batch), inner)
    with pytest.raises(ValueError, match="one per position"):
        CopyPooling(nested=["sum"])(x, copies, batch)


def test_a_map_between_the_poolings() -> None:
    tuples = find_tuples(EDGES, None, 1, "distinct")
    copies = expand_copies(lay_ground(EDGES, None), tuples)
    x, batch = torch.randn(9, 2), torch.zeros(3, dtype=torch.long)
    square = x.view(3, 3, 2)
    for word, dim in (("tuple", 1), ("node", 0)):
        pooling = CopyPooling(word, tuple_pool="sum", middle=torch.nn.ReLU())
        want = square.sum(dim).relu().sum(0)
        torch.testing.assert_close(pooling(x, copies, batch)[0], want)
    assert not torch.allclose(square.sum(0).relu().sum(0), square.sum((0, 1)).relu())


@pytest.mark.parametrize("readout", ["tuple", "node", "root"])
@pytest.mark.parametrize("pool", ["mean", "sum"])
def test_samples_are_unbiased(readout: str, pool: str) -> None:
    ring = torch.stack([torch.arange(5), (torch.arange(5) + 1) % 5])
    x = torch.randn(5, 2, dtype=torch.float64)
    model = RelationalPooling(
        GCNConv(4, 2).double(),
        2,
        readout=readout,
        tuple_pool=pool,
        num_samples=12,
    )
    whole = model.eval()(x, ring)
    assert torch.equal(model(x, ring), whole)  # evaluation uses all tuples
    model.train()
    draws = torch.stack([model(x, ring) for _ in range(300)])
    assert draws.std(0).sum() > 0
    if readout == "node" and pool == "mean":
        return  # a ratio of sums: unbiased for pools over tuples first only
    off = (draws.mean(0) - whole).abs() / (draws.std(0) / 300**0.5 + 1e-12)
    assert off.max() < 5
