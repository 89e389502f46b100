"""Learned and given labels, and orders that are left out."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GCN

from pyg_pool.models import IDMPNN, KLGNN
from pyg_pool.relational import (
    RelationalPooling,
    expand_copies,
    find_tuples,
    lay_ground,
)
from pyg_pool.relational.labeller import Labeller

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("join", ["cat", "add", "multiply"])
def test_learned_labels_equal_a_loop(join: str, ordered: bool) -> None:
    torch.manual_seed(1)
    labeller = Labeller(2, "learned", ordered=ordered, channels=3, join=join).double()
    ground, tuples = lay_ground(EDGES, None), find_tuples(EDGES, None, 2, "star")
    copies = expand_copies(ground, tuples)
    x = torch.randn(4, 3, dtype=torch.float64)[copies.pair_node]
    label = labeller.features(ground, copies, None, x)
    got = labeller(x, label)
    table = labeller.table.weight
    assert table.shape == (2 if ordered else 1, 3)
    for row, (t, u) in enumerate(
        zip(copies.pair_tuple.tolist(), copies.pair_node.tolist(), strict=True)
    ):
        places = [i for i, v in enumerate(tuples.index[t].tolist()) if v == u]
        rows = [table[i if ordered else 0] for i in places]
        own = sum(rows, torch.zeros(3, dtype=torch.float64))
        want = {
            "cat": torch.cat([x[row], own]),
            "add": x[row] + own,
            "multiply": x[row] * (rows[0] if rows else 1.0),
        }[join]
        torch.testing.assert_close(got[row], want)
    got.sum().backward()
    assert table.grad is not None
    assert labeller.width == (3 if join == "cat" else 0)
    before = table.detach().clone()
    labeller.reset_parameters()
    assert not torch.equal(before, table)


@pytest.mark.parametrize("encoding", ["learned", "mark"])
def test_all_orders_of_learned_labels_are_symmetric(encoding: str) -> None:
    torch.manual_seed(2)
    wide = {"label_channels": 2} if encoding == "learned" else {}
    options: dict[str, Any] = {"encoding": encoding, "node_pool": "mean", **wide}
    base = GCN(4, 5, 2, 5)
    subset = RelationalPooling(base, 2, domain="subset", perms=True, **options).double()
    every = RelationalPooling(base, 2, domain="distinct", **options).double()
    every.load_state_dict(subset.state_dict())
    x = torch.randn(4, 2, dtype=torch.float64)
    torch.testing.assert_close(subset(x, EDGES), every(x, EDGES))


def test_given_labels_stand_beside_the_features() -> None:
    torch.manual_seed(3)
    given = RelationalPooling(GCN(3, 5, 2, 5), 1, encoding="given", label_channels=1)
    marked = RelationalPooling(given.base, 1)
    ground = lay_ground(EDGES, None)
    copies = expand_copies(ground, find_tuples(EDGES, None, 1, "distinct"))
    label = marked.labeller.features(ground, copies, None, torch.ones(1))
    x = torch.randn(4, 2)
    out = given(x, EDGES, copies=copies, label=label)
    torch.testing.assert_close(out, marked(x, EDGES))
    for model, wrong in ((given, None), (given, label[1:]), (marked, label)):
        with pytest.raises(ValueError, match="pass a row for each pair"):
            model(x, EDGES, copies=copies, label=wrong)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "learned"}, "give label_channels"),
        ({"encoding": "mark", "label_channels": 2}, "give label_channels"),
        ({"encoding": "mark", "label_join": "add"}, "give label_channels"),
        ({"encoding": "learn"}, "did you mean 'learned'"),
        ({"drop_perm": 0.5}, "perms=True"),
        ({"drop_perm": 1.0, "perms": True}, "from 0 to below 1"),
        ({"encoding": "given", "label_channels": 1, "perms": True}, "leave perms out"),
    ],
)
def test_options_that_do_not_go_together(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RelationalPooling(GCN(3, 5, 2, 5), 2, **options)


def test_widths_must_meet() -> None:
    model = KLGNN(3, 4, 1, encoding="learned", label_channels=2, label_join="add")
    with pytest.raises(ValueError, match="label_channels=3"):
        model(torch.ones(4, 3), EDGES)
    model = KLGNN(3, 4, 1, 1, encoding="learned", label_channels=3, label_join="add")
    assert model(torch.ones(4, 3), EDGES).shape == (1, 1)
    model = KLGNN(3, 4, 1, 1, l=0, encoding="learned", label_channels=3)
    assert model(torch.ones(4, 3), EDGES).shape == (1, 1)


def drawn(model: Any, seed: int, train: bool) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        return model.train(train)(torch.ones(4, 2), EDGES, generator=generator)


@pytest.mark.parametrize("kind", ["joint", "two", "net"])
def test_dropped_orders(kind: str) -> None:
    torch.manual_seed(4)
    options: dict[str, Any] = {"l": 3, "domain": "path", "drop_perm": 0.8}
    if kind == "net":
        model: Any = IDMPNN(2, 6, 3, **options)
    else:
        options["streams"] = kind
        more = {"perms": True, "norm": "layer"} if kind == "joint" else {}
        model = KLGNN(2, 6, 3, 2, **options, **more)
    torch.testing.assert_close(drawn(model, 1, True), drawn(model, 1, True))
    outputs = [drawn(model, seed, True) for seed in range(5)]
    assert any(not torch.allclose(outputs[0], out) for out in outputs[1:])
    assert torch.equal(drawn(model, 1, False), drawn(model, 2, False))


def test_one_order_stays_and_the_mean_over_draws_is_that_of_all() -> None:
    labeller = Labeller(3, perms=True, drop_perm=0.6)
    every = [torch.tensor([float(i)]) for i in range(6)]
    generator = torch.Generator().manual_seed(0)
    kept = [labeller.kept(every, generator) for _ in range(2000)]
    assert {len(some) for some in kept} == {2}
    mean = sum(float(torch.cat(some).mean()) for some in kept) / len(kept)
    assert abs(mean - 2.5) < 0.1
    assert len(Labeller(1, perms=True, drop_perm=0.9).kept(every[:1], None)) == 1
