"""KLGNN: properties that follow from its construction, and odd inputs."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor

from pyg_pool.models import KLGNN
from pyg_pool.relational import CopyGIN, RelationalPooling
from tests.relational.families import graph

EDGES = torch.tensor([[0, 1, 1, 2, 2, 0, 3, 2, 5, 6], [1, 0, 2, 1, 0, 2, 2, 3, 6, 5]])
BATCH = torch.tensor([0] * 5 + [2] * 2)
FORMS: list[dict[str, Any]] = [
    {"l": 1, "ego": 2, "encoding": "spd"},
    {"l": 2, "domain": "star", "nested": ("sum", "max")},
    {"l": 2, "domain": "subset", "perms": True, "readout": "labelled"},
    {"l": 1, "readout": "node", "tuple_pool": "max"},
    {"l": 1, "readout": "node", "level": "node", "context": ("across", "root")},
    {"l": 2, "domain": "dist<=2", "ego": 1, "ego_mode": "union", "level": "node"},
    {"k": 2, "l": 1},
    {"k": 2, "l": 0, "max_distance": 2},
    {"l": 2, "streams": "two", "domain": "subset"},
    {"l": 1, "policy": "delete_edge"},
]


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    x = torch.randn(7, 3, dtype=torch.float64)
    return x, EDGES, torch.randn(10, 2, dtype=torch.float64)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_permutation_batch_and_state(form: dict[str, Any]) -> None:
    model = KLGNN(3, 6, 2, 2, edge_channels=2, **form).double().eval()
    x, edges, attr = inputs()
    out = model(x, edges, attr, batch=BATCH, batch_size=4)
    is_node = form.get("level") == "node"
    assert out.shape == (7 if is_node else 4, 2)
    order = torch.cat([torch.randperm(5), 5 + torch.randperm(2)])
    place, shuffle = torch.argsort(order), torch.randperm(10)
    moved = model(
        x[order], place[edges][:, shuffle], attr[shuffle], batch=BATCH, batch_size=4
    )
    torch.testing.assert_close(moved, out[order] if is_node else out)
    alone = model(x[:5], edges[:, :8], attr[:8])
    torch.testing.assert_close(alone, out[:5] if is_node else out[:1])
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        torch.testing.assert_close(
            again(x, edges, attr, batch=BATCH, batch_size=4), out
        )


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_odd_graphs(form: dict[str, Any]) -> None:
    model = KLGNN(3, 6, 2, 2, **form).eval()
    none = EDGES[:, :0]
    empty = torch.zeros(0, dtype=torch.long)
    rows = model(torch.ones(0, 3), none, batch=empty, batch_size=2)
    assert rows.isfinite().all()
    lone = model(torch.ones(1, 3), none)
    assert lone.isfinite().all()
    x = torch.ones(7, 3)
    x[6] = torch.nan
    out = model(x, EDGES, batch=BATCH, batch_size=4)
    if form.get("level") != "node":
        assert out[[0, 1, 3]].isfinite().all()
    # Loops and doubled edges reach the messages, not the tuples and balls.
    double = torch.cat([EDGES, EDGES, torch.tensor([[4], [4]])], dim=1)
    twice = model(torch.ones(7, 3), double, batch=BATCH, batch_size=4)
    assert twice.isfinite().all()


def test_no_labels_are_the_base_itself() -> None:
    base = CopyGIN(3, 4, 2).double().eval()
    x, edges, _ = inputs()
    model = RelationalPooling(base, 0, node_pool="sum").eval()
    got = model(x, edges, batch=BATCH, batch_size=3)
    rows = base(x, edges)
    want = torch.stack([rows[:5].sum(0), rows[:0].sum(0), rows[5:].sum(0)])
    torch.testing.assert_close(got, want)


def test_unordered_labels_are_the_mean_of_the_orders_for_linear_bases() -> None:
    """With a symmetric readout all orders of ``distinct`` are one ``subset``."""
    x, edges, _ = inputs()
    base = CopyGIN(5, 4, 2).double().eval()
    every = RelationalPooling(base, 2, domain="distinct", tuple_pool="mean")
    mean = RelationalPooling(base, 2, domain="subset", tuple_pool="mean", perms=True)
    one = every(x[:5], edges[:, :8])
    two = mean(x[:5], edges[:, :8])
    torch.testing.assert_close(one, two)


def test_chunks_equal_all_at_once_with_gradients() -> None:
    x, edges, attr = inputs()
    model = KLGNN(3, 6, 2, 2, l=2, domain="star", norm="layer", edge_channels=2)
    model.double()
    out = model(x, edges, attr, batch=BATCH, batch_size=4)
    grads = torch.autograd.grad(out.square().sum(), list(model.parameters()))
    model.network.chunk_size = 2
    parts = model(x, edges, attr, batch=BATCH, batch_size=4)
    torch.testing.assert_close(parts, out)
    again = torch.autograd.grad(parts.square().sum(), list(model.parameters()))
    for one, two in zip(grads, again, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize(
    ("pair", "weak", "strong"),
    [
        (("EhEG", "EwCW"), {"l": 0}, {"l": 1}),
        (("O~`HW}GPHDaNaGPCcPWaN", "OlfJHsHBGK_\\oHWKeBK_\\"), {"l": 1}, {"l": 2}),
    ],
)
def test_power(pair: Any, weak: dict[str, int], strong: dict[str, int]) -> None:
    graphs = [graph(text) for text in pair]
    for options, is_apart in ((weak, False), (strong, True)):
        gaps = []
        for seed in range(3):
            torch.manual_seed(seed)
            form: dict[str, Any] = {"domain": "star", **options}
            model = KLGNN(1, 16, 2, 4, **form).double().eval()
            with torch.no_grad():
                one, two = (
                    model(torch.ones(g.num_nodes, 1).double(), g.edge_index)
                    for g in graphs
                )
            gaps.append(float((one - two).abs().max() / one.abs().max()))
        assert (max(gaps) > 1e-9) if is_apart else (max(gaps) < 1e-12)


def test_state_does_not_depend_on_the_number_of_labels_when_unordered() -> None:
    one = KLGNN(3, 6, 2, l=1, ordered=False).state_dict()
    three = KLGNN(3, 6, 2, l=3, ordered=False, domain="star").state_dict()
    assert {k: v.shape for k, v in one.items()} == {
        k: v.shape for k, v in three.items()
    }


def test_half_precision_and_resetting() -> None:
    model = KLGNN(3, 6, 2, 2, norm="layer").to(torch.bfloat16)
    x, edges, _ = inputs()
    out = model(x.bfloat16(), edges, batch=BATCH, batch_size=3)
    assert out.dtype == torch.bfloat16
    before = model(x.bfloat16(), edges, batch=BATCH, batch_size=3)
    model.reset_parameters()
    after = model(x.bfloat16(), edges, batch=BATCH, batch_size=3)
    assert not torch.equal(before, after)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 3}, "expected k=1 or k=2"),
        ({"k": 2, "ego": 2}, "take k=1 for these"),
        ({"streams": "two", "l": 0}, "take streams='joint'"),
        ({"streams": "three"}, "expected one of"),
        ({"l": -1}, "l >= 0"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KLGNN(3, 6, 2, **options)


@pytest.mark.parametrize("k", [1, 2])
def test_wrong_features_and_edges_are_named(k: int) -> None:
    model = KLGNN(2, 8, 3, 2, k=k, l=1)
    with pytest.raises(ValueError, match=r"x of shape \[3, 5\], expected \[num_nodes,"):
        model(torch.ones(3, 5), torch.tensor([[0], [1]]))
    with pytest.raises(ValueError, match=r"edge_index of dtype torch\.float32"):
        model(torch.ones(3, 2), torch.zeros(2, 2))
