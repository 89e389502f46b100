"""Pooling of features against loops over members."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.nn import aggr

from pyg_pool import Selection
from pyg_pool.core import reduce

few = settings(derandomize=True, max_examples=60, deadline=None)


@st.composite
def selections(draw: st.DrawFn) -> Selection:
    n, k = draw(st.integers(0, 5)), draw(st.integers(1, 4))
    node = st.integers(0, max(n - 1, 0))
    unique = draw(st.sampled_from([lambda p: p[0], lambda p: p]))
    pairs = draw(
        st.lists(
            st.tuples(node, st.integers(0, k - 1)),
            max_size=8 if n else 0,
            unique_by=unique,
        )
    )
    index = torch.tensor(pairs, dtype=torch.long).view(-1, 2)
    weight = torch.rand(len(pairs)).double() if draw(st.booleans()) else None
    out = Selection(index[:, 0], n, index[:, 1], k, weight)
    # The kind decides which code runs: found beforehand, or never.
    if draw(st.booleans()):
        assert out.kind
    return out


def slow(x: Tensor, selection: Selection, how: str) -> Tensor:
    out = torch.zeros(selection.num_clusters, *x.shape[1:], dtype=x.dtype)
    for c in range(selection.num_clusters):
        entries = (selection.cluster_index == c).nonzero().view(-1).tolist()
        if not entries:
            continue
        rows = torch.stack([x[selection.node_index[m]] for m in entries])
        if how == "weighted" and selection.weight is not None:
            strength = selection.weight[entries].view(-1, *[1] * (x.dim() - 1))
            rows = rows * strength
        out[c] = {
            "sum": rows.sum(0),
            "weighted": rows.sum(0),
            "mean": rows.mean(0),
            "max": rows.amax(0),
            "min": rows.amin(0),
        }[how]
    return out


@few
@given(
    selections(),
    st.sampled_from(["sum", "mean", "max", "min", "weighted"]),
    st.sampled_from([(), (3,), (0,), (2, 2)]),
)
def test_equals_a_loop(selection: Selection, how: str, shape: tuple[int, ...]) -> None:
    x = torch.randn(selection.num_nodes, *shape, dtype=torch.double)
    out = reduce(x, selection, how)  # type: ignore[arg-type]
    torch.testing.assert_close(out, slow(x, selection, how))


@few
@given(selections())
def test_weighted_is_a_matrix_product(selection: Selection) -> None:
    x = torch.randn(selection.num_nodes, 2, dtype=torch.double)
    dense = selection.to_dense(weighted=True).double()
    torch.testing.assert_close(reduce(x, selection, "weighted"), dense.t() @ x)


def test_one_to_one_in_another_order() -> None:
    selection = Selection(torch.tensor([3, 1]), 4, torch.tensor([1, 0]), 2)
    assert selection.is_one_to_one
    out = reduce(torch.arange(4.0).view(4, 1), selection)
    assert out.tolist() == [[1.0], [3.0]]


@pytest.mark.parametrize(
    "module",
    [
        aggr.SumAggregation(),
        aggr.SoftmaxAggregation(),
        aggr.StdAggregation(),
        aggr.MedianAggregation(),
        aggr.SortAggregation(k=2),
        aggr.LSTMAggregation(2, 2),
        aggr.Set2Set(2, processing_steps=2),
        aggr.MultiAggregation(["mean", "max"]),
    ],
    ids=lambda m: type(m).__name__,
)
def test_any_aggregation_of_pyg(module: aggr.Aggregation) -> None:
    """Members come cluster by cluster, also where some of them must be sorted."""
    cluster = torch.tensor([2, 0, 2, 0, -1, 2])
    x = torch.randn(6, 2)
    out = reduce(x, Selection.from_clusters(cluster, 3), module)
    order = torch.tensor([1, 3, 0, 2, 5])
    wanted = module(x[order], cluster[order], dim_size=3)
    torch.testing.assert_close(out, wanted)


@pytest.mark.parametrize("how", ["sum", "mean", "max", "min", "weighted"])
@pytest.mark.parametrize("kind", ["one_to_one", "hard", "soft"])
def test_gradients(how: str, kind: str) -> None:
    nodes, clusters = {
        "one_to_one": ([2, 0], [1, 0]),
        "hard": ([2, 0, 1], [1, 1, 0]),
        "soft": ([2, 0, 2], [1, 1, 0]),
    }[kind]
    weight = torch.rand(len(nodes), dtype=torch.double)
    x = torch.randn(4, 2, dtype=torch.double)

    def run(x: Tensor, weight: Tensor) -> Tensor:
        selection = Selection(
            torch.tensor(nodes), 4, torch.tensor(clusters), 2, weight, kind=kind
        )
        return reduce(x, selection, how)  # type: ignore[arg-type]

    inputs = x.requires_grad_(), weight.requires_grad_(how == "weighted")
    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs)


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
def test_half_types_are_kept(dtype: torch.dtype) -> None:
    weight = torch.full((512,), 0.5)  # wider than the features
    selection = Selection.from_clusters(torch.zeros(512).long(), weight=weight)
    out = reduce(torch.ones(512, 1, dtype=dtype), selection, "weighted")
    assert out.dtype == dtype
    assert out.tolist() == [[256.0]]


def test_wrong_input_is_explained() -> None:
    selection = Selection.from_nodes(torch.tensor([1]), 3)
    with pytest.raises(ValueError, match=r"x of shape \[1, 2\] .* of 3 nodes"):
        reduce(torch.ones(1, 2), selection)
    with pytest.raises(ValueError, match=r"x of shape \[\]"):
        reduce(torch.tensor(1.0), selection)
    with pytest.raises(ValueError, match=r"reduce got how='summ', .*'sum'"):
        reduce(torch.ones(3, 2), selection, "summ")  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["sum", "mean", "max", "weighted"])
def test_compiled_equals_eager(how: str) -> None:
    def run(x: Tensor, cluster: Tensor, weight: Tensor) -> Tensor:
        nodes = torch.arange(cluster.size(0))
        selection = Selection(nodes, x.size(0), cluster, 4, weight, kind="hard")
        return reduce(x, selection, how)  # type: ignore[arg-type]

    fast = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (5, 8):
        case = torch.randn(n, 2), torch.randint(0, 4, (n,)), torch.rand(n)
        torch.testing.assert_close(fast(*case), run(*case))
