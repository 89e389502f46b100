"""Two-hop adjacencies between kept nodes against the full dense square."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyg_pool import Selection
from pyg_pool.core.augment import augmented

few = settings(
    derandomize=True,
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
Edges = list[tuple[int, int]]
PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@st.composite
def cases(draw: st.DrawFn) -> tuple[Selection, Tensor, Tensor]:
    """Directed graphs with loops and parallel edges; kept nodes in any order."""
    n = draw(st.integers(1, 6))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=12))
    order = draw(st.permutations(range(n)))
    kept = torch.tensor(order[: draw(st.integers(0, n))]).long()
    values = st.sampled_from([0.5, 1.0, 2.0, -1.0])
    weight = draw(st.lists(values, min_size=len(edges), max_size=len(edges)))
    index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    return Selection.from_nodes(kept, n), index, torch.tensor(weight).double()


def dense(index: Tensor, weight: Tensor, n: int) -> Tensor:
    out = torch.zeros(n, n, dtype=weight.dtype)
    return out.index_put_(tuple(index), weight, accumulate=True)


@few
@given(cases(), st.sampled_from(["weighted", "square", "binary"]))
def test_equals_the_dense_square(
    backend: str, case: tuple[Selection, Tensor, Tensor], how: str
) -> None:
    selection, edges, weight = case
    n, kept = selection.num_nodes, selection.node_index
    a = dense(edges, weight, n)
    if how == "weighted":
        a = a - torch.diag(a.diag()) + torch.eye(n).double()
    elif how == "binary":
        a = dense(edges, torch.ones_like(weight), n).clamp(max=1.0)
    wanted = (a @ a)[kept][:, kept]
    if how == "weighted":
        wanted = wanted - torch.diag(wanted.diag())
    elif how == "binary":
        wanted = (wanted > 0).double()
    index, value = augmented(selection, edges, weight, how=how)  # type: ignore[arg-type]
    assert value is not None
    assert value.dtype == torch.double
    size = kept.numel()
    torch.testing.assert_close(dense(index, value, size), wanted)
    key = index[0] * max(size, 1) + index[1]
    assert bool((key[1:] > key[:-1]).all()), "sorted and without repeats"


def test_forms_of_weights(backend: str) -> None:
    ends = Selection.from_nodes(torch.tensor([0, 2]), 3)
    index, bare = augmented(ends, PATH)
    assert bare is not None
    assert bare.dtype == torch.get_default_dtype()
    _, double = augmented(ends, PATH, dtype=torch.double)
    assert double is not None
    assert double.dtype == torch.double
    _, flat = augmented(ends, PATH, torch.full((4,), 2.0))
    _, column = augmented(ends, PATH, torch.full((4, 1), 2.0))
    assert flat is not None
    assert column is not None
    assert flat.tolist() == [4.0, 4.0]
    assert column.tolist() == [[4.0], [4.0]]
    assert index.tolist() == [[0, 1], [1, 0]]


def test_binary_has_no_weights_of_its_own(backend: str) -> None:
    ends = Selection.from_nodes(torch.tensor([0, 2]), 3)
    index, nothing = augmented(ends, PATH, how="binary")
    assert nothing is None
    assert index.tolist() == [[0, 0, 1, 1], [0, 1, 0, 1]]
    weight = torch.tensor([3.0, 3.0, 0.0, 3.0])  # 1 -> 2 is no edge
    index, ones = augmented(ends, PATH, weight, how="binary")
    assert index.tolist() == [[0, 1], [0, 0]]
    assert ones is not None
    assert ones.tolist() == [1.0, 1.0]
    # Direct links vanish where nodes have no loops.
    pair = Selection.from_nodes(torch.tensor([0, 1]), 3)
    assert augmented(pair, PATH, how="binary")[0].tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize("how", ["weighted", "square"])
def test_gradients(backend: str, how: str) -> None:
    selection = Selection.from_nodes(torch.tensor([3, 0, 2]), 5)
    edges = torch.randint(0, 5, (2, 12))
    weight = torch.randn(12, dtype=torch.double, requires_grad=True)

    def run(weight: Tensor) -> Tensor:
        out = augmented(selection, edges, weight, how=how)[1]  # type: ignore[arg-type]
        assert out is not None
        return out

    assert torch.autograd.gradcheck(run, (weight,))
    assert torch.autograd.gradgradcheck(run, (weight,))


def test_limit_on_edges(backend: str) -> None:
    star = torch.stack([torch.zeros(9).long(), torch.arange(1, 10)])
    star = torch.cat([star, star.flip(0)], dim=1)
    leaves = Selection.from_nodes(torch.arange(1, 10), 10)
    assert augmented(leaves, star, max_edges=72)[0].size(1) == 72
    with pytest.raises(ValueError, match=r"expected at most max_edges=71; raise"):
        augmented(leaves, star, max_edges=71)


def test_wrong_input_is_explained() -> None:
    ends = Selection.from_nodes(torch.tensor([0, 2]), 3)
    with pytest.raises(ValueError, match=r"edge_attr of shape \[4, 2\], expected one"):
        augmented(ends, PATH, torch.ones(4, 2))
    with pytest.raises(ValueError, match="augmented got how='none'"):
        augmented(ends, PATH, how="none")


@pytest.mark.parametrize("how", ["weighted", "binary"])
def test_compiled_equals_eager(how: str) -> None:
    def run(
        nodes: Tensor, edges: Tensor, weight: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        selection = Selection.from_nodes(nodes, 6)
        return augmented(selection, edges, weight, how=how)  # type: ignore[arg-type]

    fast = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    for size in (3, 5):
        case = torch.randperm(6)[:size], torch.randint(0, 6, (2, 15)), torch.rand(15)
        torch.testing.assert_close(fast(*case), run(*case))
