"""Features back on the fine nodes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyg_pool import Selection
from pyg_pool.core import lift, reduce

few = settings(derandomize=True, max_examples=60, deadline=None)


@st.composite
def selections(draw: st.DrawFn) -> Selection:
    n, k = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    unique = draw(st.sampled_from([lambda p: p[0], lambda p: p]))
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, k - 1))
    pairs = draw(st.lists(pair, max_size=8, unique_by=unique))
    index = torch.tensor(pairs, dtype=torch.long).view(-1, 2)
    values = st.sampled_from([0.25, 0.5, 1.0, 2.0])
    weights = draw(st.lists(values, min_size=len(pairs), max_size=len(pairs)))
    weight = torch.tensor(weights).double() if draw(st.booleans()) else None
    out = Selection(index[:, 0], n, index[:, 1], k, weight)
    if draw(st.booleans()):  # decides which code runs
        assert out.kind
    return out


@few
@given(selections(), st.booleans(), st.sampled_from([(), (2,), (0,), (2, 2)]))
def test_transpose_is_a_matrix_product(
    selection: Selection, weighted: bool, shape: tuple[int, ...]
) -> None:
    x = torch.randn(selection.num_clusters, *shape, dtype=torch.double)
    dense = selection.to_dense(weighted).double()
    wanted = torch.einsum("nk,k...->n...", dense, x)
    torch.testing.assert_close(lift(x, selection, weighted=weighted), wanted)


@few
@given(selections(), st.booleans())
def test_mean_divides_by_the_membership(selection: Selection, weighted: bool) -> None:
    x = torch.randn(selection.num_clusters, 2, dtype=torch.double)
    dense = selection.to_dense(weighted).double()
    degree = dense.sum(1, keepdim=True)
    wanted = (dense @ x) / torch.where(degree == 0, 1.0, degree)
    torch.testing.assert_close(lift(x, selection, "mean", weighted=weighted), wanted)
    constant = lift(torch.ones_like(x), selection, "mean", weighted=weighted)
    torch.testing.assert_close(constant, (degree > 0).double().expand(-1, 2).clone())


@few
@given(selections())
def test_pinv_is_the_pseudo_inverse(selection: Selection) -> None:
    x = torch.randn(selection.num_clusters, 2, dtype=torch.double)
    dense = selection.to_dense(weighted=True).double()
    out = lift(x, selection, "pinv")
    torch.testing.assert_close(out, torch.linalg.pinv(dense.t()) @ x)
    # What can be reached comes back: P P+ P x = P x.
    fine = torch.randn(selection.num_nodes, 2, dtype=torch.double)
    pooled = reduce(fine, selection, "weighted")
    again = reduce(lift(pooled, selection, "pinv"), selection, "weighted")
    torch.testing.assert_close(again, pooled)


def test_pinv_of_unweighted_soft_selection_keeps_the_precision() -> None:
    index = torch.tensor([[0, 1, 1, 2], [0, 0, 1, 1]])
    selection = Selection(index[0], 3, index[1], 2)
    x = torch.tensor([[1.0], [1e-9]], dtype=torch.double)
    out = lift(x, selection, "pinv")
    exact = torch.linalg.pinv(selection.to_dense().double().t()) @ x
    torch.testing.assert_close(out, exact, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
@pytest.mark.parametrize("how", ["transpose", "mean", "pinv"])
def test_half_types_are_kept(dtype: torch.dtype, how: str) -> None:
    index = torch.tensor([[0, 1, 1, 2], [0, 0, 1, 1]])
    for size in (3, 4):  # hard, then soft
        kind = "hard" if size == 3 else "soft"
        entries = index[:, [0, 1, 3]] if size == 3 else index
        weight = torch.ones(size, dtype=dtype)
        selection = Selection(entries[0], 3, entries[1], 2, weight)
        assert selection.kind == kind
        x = torch.tensor([[1.0], [3.0]])
        out = lift(x.to(dtype), selection, how)  # type: ignore[arg-type]
        assert out.dtype == dtype
        wanted = lift(x, selection.detach(), how)  # type: ignore[arg-type]
        torch.testing.assert_close(out, wanted.to(dtype))


def test_dropped_nodes_get_zeros() -> None:
    kept = Selection.from_nodes(torch.tensor([2, 0]), 4, torch.tensor([0.5, 0.25]))
    x = torch.tensor([[1.0], [2.0]])
    assert lift(x, kept).view(-1).tolist() == [2.0, 0.0, 1.0, 0.0]
    assert lift(x, kept, weighted=True).view(-1).tolist() == [0.5, 0.0, 0.5, 0.0]
    pairs = Selection.from_clusters(torch.tensor([0, 0, 1, -1]))
    assert lift(x, pairs).view(-1).tolist() == [1.0, 1.0, 2.0, 0.0]


@pytest.mark.parametrize("how", ["transpose", "mean", "pinv"])
@pytest.mark.parametrize("kind", ["one_to_one", "hard", "soft"])
def test_gradients(how: str, kind: str) -> None:
    nodes, clusters = {
        "one_to_one": ([2, 0], [1, 0]),
        "hard": ([2, 0, 1], [1, 1, 0]),
        "soft": ([2, 0, 2], [1, 1, 0]),
    }[kind]
    weight = torch.rand(len(nodes), dtype=torch.double) + 0.5
    x = torch.randn(2, 2, dtype=torch.double)

    def run(x: Tensor, weight: Tensor) -> Tensor:
        selection = Selection(
            torch.tensor(nodes), 4, torch.tensor(clusters), 2, weight, kind=kind
        )
        return lift(x, selection, how, weighted=True)  # type: ignore[arg-type]

    inputs = x.requires_grad_(), weight.requires_grad_()
    assert torch.autograd.gradcheck(run, inputs)


def test_wrong_input_is_explained() -> None:
    selection = Selection.from_nodes(torch.tensor([1]), 3)
    with pytest.raises(ValueError, match=r"x of shape \[3, 2\] .* of 1 clusters"):
        lift(torch.ones(3, 2), selection)
    with pytest.raises(ValueError, match=r"x of shape \[\]"):
        lift(torch.tensor(1.0), selection)
    with pytest.raises(ValueError, match=r"lift got how='main', .*'mean'"):
        lift(torch.ones(1, 2), selection, "main")  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["transpose", "mean"])
def test_compiled_equals_eager(how: str) -> None:
    def run(x: Tensor, cluster: Tensor, weight: Tensor) -> Tensor:
        nodes = torch.arange(cluster.size(0))
        size = cluster.size(0)
        selection = Selection(nodes, size, cluster, x.size(0), weight, kind="hard")
        return lift(x, selection, how, weighted=True)  # type: ignore[arg-type]

    fast = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (5, 8):
        case = torch.randn(4, 2), torch.randint(0, 4, (n,)), torch.rand(n)
        torch.testing.assert_close(fast(*case), run(*case))


def test_pinv_of_small_half_precision_weights_does_not_underflow() -> None:
    weight = torch.tensor([1e-4, 1e-4], dtype=torch.float16)
    pair = Selection.from_clusters(torch.tensor([0, 0]), weight=weight)
    x = torch.tensor([[1e-3]], dtype=torch.float16)
    expected = lift(x.float(), pair, "pinv")
    torch.testing.assert_close(
        lift(x, pair, "pinv").float(), expected, rtol=1e-2, atol=0
    )
