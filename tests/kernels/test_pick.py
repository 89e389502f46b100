"""The compiled selection against its parts in plain torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pyg_pool.kernels import filter_edges, threads, topk, use_backend
from pyg_pool.kernels.dispatch import NUMBA_FROM, watch_backends
from pyg_pool.kernels.gate import gate_of, unit
from pyg_pool.kernels.pick import Form, Picked, pick

KINDS = [torch.float32, torch.float64]
Leaves = tuple[Tensor, Tensor, Tensor | None, Tensor | None]


def leaves(
    rows: int, width: int, edges: int, kind: torch.dtype, columns: tuple[int, ...] = ()
) -> tuple[Tensor, Leaves]:
    torch.manual_seed(rows + width)
    shapes = (rows, width), (1, width), (1,), (edges, *columns)
    made = [torch.randn(s, dtype=kind).requires_grad_() for s in shapes]
    index = torch.randint(0, max(rows, 1), (2, edges if rows else 0))
    return index, (made[0], made[1], made[2], made[3] if rows else None)


def ours(
    index: Tensor, given: Leaves, batch: Tensor | None, size: int | None, form: Form
) -> Picked:
    x, weight, bias, attr = given
    with use_backend("numba"), watch_backends() as seen:
        out = pick(x, index, attr, batch, size, weight, bias, form)
    assert ("pick", "numba") in seen
    assert out is not None
    return out


def slow(
    index: Tensor, given: Leaves, batch: Tensor | None, size: int, form: Form
) -> list[Tensor | None]:
    x, weight, bias, attr = given
    vector = unit(weight.view(-1)) if form.normalize else weight.view(-1)
    raw = x @ vector + (0.0 if bias is None else bias)
    with use_backend("native"):
        kept = topk(
            raw.detach(), form.ratio, batch=batch, batch_size=size,
            rounding=form.rounding, min_nodes=form.min_nodes,  # type: ignore[arg-type]
        )  # fmt: skip
        edges, ids = filter_edges(index, kept, x.size(0))
    gate = gate_of(raw[kept], form.gate)
    graph = torch.zeros_like(kept) if batch is None else batch[kept]
    pooled = x[kept] * gate[:, None]
    return [pooled, gate, None if attr is None else attr[ids], kept, edges, graph]


def compare(
    index: Tensor, given: Leaves, batch: Tensor | None, size: int, form: Form
) -> None:
    out = ours(index, given, batch, size, form)
    found = [out.x, out.score, out.edge_attr, out.kept, out.edge_index, out.batch]
    expected = slow(index, given, batch, size, form)
    torch.testing.assert_close(found, expected)
    assert out.clusters.equal(torch.arange(out.kept.numel()))
    assert out.batch_size == size
    asked = [leaf for leaf in given if leaf is not None]
    grads = []
    for parts in (found, expected):
        loss = sum((t.square() * 1.5).sum() for t in parts[:3] if t is not None)
        grads.append(torch.autograd.grad(loss, asked, allow_unused=True))  # type: ignore[arg-type]
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gate", ["sigmoid", "tanh", "identity"])
@pytest.mark.parametrize("normalize", [True, False])
def test_equals_its_parts(kind: torch.dtype, gate: str, normalize: bool) -> None:
    index, given = leaves(60, 19, 300, kind)
    form = Form(0.4, gate, normalize, "floor", 2)
    compare(index, given, torch.randint(0, 4, (60,)), 5, form)
    compare(index, given, None, 1, form)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ratio", [0.5, 1.0, 3])
def test_shapes_of_every_kind(kind: torch.dtype, ratio: float) -> None:
    for rows, width, edges, columns in [
        (0, 3, 0, ()), (1, 1, 2, (1,)), (7, 0, 5, ()), (7, 64, 0, (2,)),
        (40, 5, 90, (3,)), (5000, 2, 1500, ()),
    ]:  # fmt: skip
        form = Form(ratio, normalize=width > 0)
        index, (x, weight, bias, attr) = leaves(rows, width, edges, kind, columns)
        compare(index, (x, weight, bias, attr), None, 1, form)
        compare(index, (x, weight, None, None), None, 1, form)
        if rows:
            batch = torch.arange(rows) * 3 // rows
            compare(index, (x, weight, bias, attr), batch, 3, form)


def test_layouts_and_the_number_of_graphs_unknown() -> None:
    index, given = leaves(30, 4, 80, torch.float32)
    index = index.t().contiguous().t()
    batch = torch.stack([torch.randint(0, 3, (30,)), torch.ones(30).long()], 1)[:, 0]
    batch[0] = 2
    compare(index, given, batch, 3, Form())
    assert ours(index, given, batch, None, Form()).batch_size == 3


@pytest.mark.parametrize("kind", KINDS)
def test_ties_and_nan_are_ranked_as_by_topk(kind: torch.dtype) -> None:
    score = torch.tensor([0.0, torch.nan, -0.0, 2.0, torch.inf, -torch.inf, 2.0])
    x, weight = score.to(kind).view(-1, 1), torch.ones(1, 1, dtype=kind)
    index = torch.zeros(2, 0, dtype=torch.long)
    out = ours(index, (x, weight, None, None), None, 1, Form(1.0, "identity"))
    assert out.kept.tolist() == [4, 3, 6, 0, 2, 5, 1]


def test_threads_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    index, given = leaves(9000, 5, 900, torch.float32)
    form = Form(0.5, "tanh")
    results = []
    for limit in (10**9, 1):
        monkeypatch.setattr(threads, "PARALLEL_FROM", limit)
        monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
        out = ours(index, given, None, 1, form)
        grads = torch.autograd.grad(out.x.square().sum(), given[:2])
        results.append([out.x.detach(), out.score.detach(), *grads])
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)


def good() -> dict[str, Any]:
    return {
        "x": torch.ones(4, 2),
        "edge_index": torch.tensor([[0, 3], [1, 2]]),
        "edge_attr": torch.ones(2),
        "batch": torch.tensor([0, 0, 1, 1]),
        "batch_size": 2,
        "weight": torch.ones(1, 2),
        "bias": None,
        "form": Form(),
    }


@pytest.mark.parametrize(
    "change",
    [
        {"x": torch.ones(4, 3)},
        {"x": torch.ones(2, 4).t()},
        {"x": torch.ones(4, 2).half(), "weight": torch.ones(1, 2).half()},
        {"x": torch.ones(4, 2).double()},
        {"edge_index": torch.tensor([[0, 4], [1, 2]])},
        {"edge_index": torch.tensor([[0, 3], [-1, 2]])},
        {"edge_index": torch.ones(2, 2).int()},
        {"edge_index": torch.ones(3, 2).long()},
        {"edge_attr": torch.ones(3)},
        {"edge_attr": torch.tensor(1.0)},
        {"edge_attr": torch.ones(2).long()},
        {"batch": torch.tensor([0, 0, 1, 2])},
        {"batch": torch.tensor([0, 0, -1, 1])},
        {"batch": torch.tensor([0, 0, 1])},
        {"batch": None},
        {"batch": torch.zeros(4).long(), "batch_size": 0},
    ],
)
def test_other_input_is_left_to_the_longer_way(change: dict[str, Any]) -> None:
    with use_backend("numba"):
        assert pick(**good()) is not None
        assert pick(**{**good(), **change}) is None


def test_graphs_out_of_range_in_float64() -> None:
    wide = {"x": torch.ones(4, 2).double(), "weight": torch.ones(1, 2).double()}
    wide = {**good(), **wide, "edge_attr": None}
    with use_backend("numba"):
        assert pick(**wide) is not None
        assert pick(**{**wide, "batch": torch.tensor([0, 0, 1, 2])}) is None


def test_small_input_and_native_stay_away() -> None:
    assert pick(**good()) is None
    large = {**good(), "x": torch.ones(NUMBA_FROM["pick"], 2), "batch": None}
    large["batch_size"] = None
    assert pick(**large) is not None
    with use_backend("native"):
        assert pick(**large) is None
