"""Per-graph top-k against sorting in plain Python, on every backend."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyg_pool.kernels import topk, use_backend

few = settings(
    derandomize=True,
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
VALUES = [-math.inf, -1.5, -0.0, 0.0, 1.0, 1.0, 2.5, math.inf, math.nan]
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def number_kept(size: int, ratio: float | int, rounding: str, min_nodes: int) -> int:
    if isinstance(ratio, int):
        k = ratio
    else:
        exact = Fraction(str(ratio)) * size
        k = math.ceil(exact) if rounding == "ceil" else math.floor(exact)
    return min(size, max(min_nodes, k))


def slow(
    score: list[float],
    ratio: float | int,
    batch: list[int],
    batch_size: int,
    rounding: str,
    min_nodes: int,
) -> list[int]:
    out: list[int] = []
    for graph in range(batch_size):
        members = [i for i in range(len(score)) if batch[i] == graph]
        # NaN last; a stable sort keeps the lowest row first among equals.
        members.sort(key=lambda i: (math.isnan(score[i]), -score[i]))
        members = [i for i in members if not math.isnan(score[i])] + [
            i for i in sorted(members) if math.isnan(score[i])
        ]
        out += members[: number_kept(len(members), ratio, rounding, min_nodes)]
    return out


@st.composite
def scored(draw: st.DrawFn) -> tuple[list[float], list[int], int]:
    n, size = draw(st.integers(0, 10)), draw(st.integers(1, 4))
    score = draw(st.lists(st.sampled_from(VALUES), min_size=n, max_size=n))
    batch = draw(st.lists(st.integers(0, size - 1), min_size=n, max_size=n))
    return score, batch, size


@few
@given(
    scored(),
    st.sampled_from([0.1, 0.3, 0.5, 0.55, 1.0, 1, 3]),
    st.sampled_from(["ceil", "floor"]),
    st.integers(0, 3),
    st.sampled_from(FLOATS),
)
def test_equals_sorting(
    backend: str,
    case: tuple[list[float], list[int], int],
    ratio: float | int,
    rounding: str,
    min_nodes: int,
    dtype: torch.dtype,
) -> None:
    score, batch, size = case
    out = topk(
        torch.tensor(score, dtype=dtype),
        ratio,
        batch=torch.tensor(batch).long(),
        batch_size=size,
        rounding=rounding,  # type: ignore[arg-type]
        min_nodes=min_nodes,
    )
    assert out.dtype == torch.long
    assert out.tolist() == slow(score, ratio, batch, size, rounding, min_nodes)
    single = topk(
        torch.tensor(score, dtype=dtype),
        ratio,
        rounding=rounding,
        min_nodes=min_nodes,  # type: ignore[arg-type]
    )
    assert single.tolist() == slow(
        score, ratio, [0] * len(score), 1, rounding, min_nodes
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("ratio", "size", "kept"),
    # Products that floating point rounds to the wrong side of an integer.
    [(0.55, 100, 55), (0.07, 100, 7), (0.1, 30, 3), (0.7, 10, 7), (0.28, 25, 7)],
)
def test_rounding_does_not_follow_the_float_type(
    backend: str, dtype: torch.dtype, ratio: float, size: int, kept: int
) -> None:
    score = torch.rand(2 * size).to(dtype)
    batch = torch.arange(2).repeat_interleave(size)
    for rounding in ("ceil", "floor"):
        out = topk(score, ratio, batch=batch, batch_size=2, rounding=rounding)  # type: ignore[arg-type]
        assert out.numel() == 2 * kept
        one = topk(score[:size], ratio, rounding=rounding)  # type: ignore[arg-type]
        assert one.numel() == kept


@pytest.mark.parametrize("dtype", FLOATS)
def test_backends_agree_on_many_rows(dtype: torch.dtype) -> None:
    score = torch.randn(3000).to(dtype)
    score[::7] = score[0]
    score[::11] = torch.nan
    batch = torch.randint(0, 50, (3000,))
    results = []
    for name in ("native", "numba", "auto"):
        with use_backend(name):  # type: ignore[arg-type]
            results.append(topk(score, 0.3, batch=batch, batch_size=51))
    assert results[0].equal(results[1])
    assert results[0].equal(results[2])
    assert batch[results[0]].equal(batch[results[0]].sort().values)


def test_result_of_a_graph_does_not_depend_on_its_mates(backend: str) -> None:
    parts = [torch.randn(n) for n in (3, 0, 1, 8)]
    batch = torch.cat([torch.full((p.numel(),), g) for g, p in enumerate(parts)])
    together = topk(torch.cat(parts), 0.5, batch=batch, batch_size=4)
    start, alone = 0, []
    for part in parts:
        alone.append(topk(part, 0.5) + start)
        start += part.numel()
    assert together.equal(torch.cat(alone))


def test_layouts_and_gradients(backend: str) -> None:
    score = torch.randn(6, 2, requires_grad=True)
    column = topk(score[:, 0], 0.5)
    assert column.equal(topk(score[:, 0].detach().clone(), 0.5))
    assert topk(torch.ones(1).expand(5), k=2).tolist() == [0, 1]
    batch = torch.tensor([[0, 9], [1, 9], [0, 9], [1, 9], [0, 9], [1, 9]])[:, 0]
    out = topk(score[:, 0], k=1, batch=batch)
    assert batch[out].tolist() == [0, 1]


def test_empty_graphs_keep_nothing(backend: str) -> None:
    score = torch.tensor([1.0, 2.0])
    assert topk(score, 0.5, batch=torch.tensor([2, 2]), batch_size=5).tolist() == [1]
    assert topk(score[:0], 0.5).tolist() == []
    none = torch.empty(0).long()
    assert topk(score[:0], k=3, batch=none, batch_size=2).tolist() == []


def test_k_and_an_integer_ratio_mean_the_same(backend: str) -> None:
    score = torch.randn(9)
    assert topk(score, 4).equal(topk(score, k=4))
    assert topk(score, k=20).numel() == 9
    assert topk(score, 1.0).numel() == 9
    assert topk(score, 1).numel() == 1


ONE = torch.ones(3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: topk(ONE), "got ratio=None and k=None, expected exactly one"),
        (lambda: topk(ONE, 0.5, k=2), "got ratio=0.5 and k=2, expected exactly one"),
        (lambda: topk(ONE, 0.0), r"topk got ratio=0.0, expected a float in \(0, 1\]"),
        (lambda: topk(ONE, 1.5), "ratio=1.5"),
        (lambda: topk(ONE, k=0), "ratio=0, expected"),
        (lambda: topk(ONE, True), "ratio=True"),
        (lambda: topk(ONE, math.nan), "ratio=nan"),
        (
            lambda: topk(ONE, 0.5, rounding="cell"),  # type: ignore[arg-type]
            "got rounding='cell', .* did you mean 'ceil'",
        ),
        (lambda: topk(ONE.view(3, 1), 0.5), r"score of shape \[3, 1\]"),
        (lambda: topk(ONE, 0.5, batch=torch.zeros(2).long()), r"batch of shape \[2\]"),
        (
            lambda: topk(ONE, 0.5, batch=torch.tensor([0, 1, 2]), batch_size=2),
            "graph ids 0 to 2 for batch_size=2",
        ),
        (lambda: topk(ONE, 0.5, batch_size=2), "batch_size=2 without batch"),
    ],
)
def test_wrong_input_is_explained(call: Callable[[], Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_compiled_equals_eager(dtype: torch.dtype) -> None:
    def run(score: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
        return topk(score, 0.5), topk(score, 0.3, batch=batch, batch_size=4)

    fast = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (7, 12):
        score, batch = torch.randn(n).to(dtype), torch.randint(0, 4, (n,))
        score[1] = score[4] = torch.nan
        for got, wanted in zip(fast(score, batch), run(score, batch), strict=True):
            assert got.equal(wanted)
