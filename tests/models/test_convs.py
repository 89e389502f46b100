from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import GCNConv

from pyg_pool.models import ColumnStochasticConv, MeanSkipConv, SymmetricConv

CONVS = [MeanSkipConv, ColumnStochasticConv, SymmetricConv]
# 0 -> 1 and 2 -> 1; node 3 alone.
EDGES = torch.tensor([[0, 2], [1, 1]])
X = torch.tensor([[1.0, 0.0], [2.0, 6.0], [9.0, 3.0], [4.0, 4.0]])


def with_identity(conv: torch.nn.Module) -> torch.nn.Module:
    """The layer with identity matrices and no bias."""
    for name, parameter in conv.named_parameters():
        value = torch.zeros_like(parameter)
        parameter.data = torch.eye(2) if name.endswith("weight") else value
    return conv


def test_mean_skip_by_hand() -> None:
    conv = with_identity(MeanSkipConv(2, 2))
    mean = torch.tensor([[1.0, 0.0], [4.0, 3.0], [9.0, 3.0], [4.0, 4.0]])
    assert_close(conv(X, EDGES), mean + X)
    weighted = conv(X, EDGES, torch.tensor([3.0, 1.0]))
    middle = torch.tensor([(3 * 1 + 9 + 2) / 5, (0 + 3 + 6) / 5])
    assert_close(weighted[1], middle + X[1])
    assert_close(conv(X, EDGES, torch.tensor([[3.0], [1.0]])), weighted)


def test_mean_skip_is_blind_to_loops_and_counts_copies() -> None:
    conv = with_identity(MeanSkipConv(2, 2))
    loops = torch.tensor([[0, 1, 3], [0, 1, 3]])
    assert_close(conv(X, torch.cat([EDGES, loops], dim=1)), conv(X, EDGES))
    twice = conv(X, torch.cat([EDGES, EDGES], dim=1))
    assert_close(twice, conv(X, EDGES, torch.tensor([2.0, 2.0])))


def test_mean_skip_survives_weights_that_cancel() -> None:
    weight = torch.tensor([-1.0, 0.0], requires_grad=True)
    out = with_identity(MeanSkipConv(2, 2))(X, EDGES, weight)
    assert_close(out[1], X[1])
    out.sum().backward()
    assert weight.grad.isfinite().all()


@pytest.mark.parametrize("name", ["authors_unet_tiny", "authors_unet_three_levels"])
def test_column_stochastic_golden(golden, name: str) -> None:
    case = golden(f"graph_unet/{name}")
    size = case.inputs["num_nodes"]
    loops = torch.arange(size).expand(2, -1)
    edges = torch.cat([torch.tensor(case.inputs["edge_index"]), loops], dim=1)
    conv = ColumnStochasticConv(size, size, bias=False).to(case.dtype)
    conv.lin.weight.data = torch.eye(size, dtype=case.dtype)
    matrix = conv(torch.eye(size, dtype=case.dtype), edges)
    case.close(matrix, case.inputs["g_normalised"])


def test_column_stochastic_shares_by_source() -> None:
    conv = with_identity(ColumnStochasticConv(2, 2))
    edges = torch.tensor([[0, 0, 2], [1, 2, 1]])
    out = conv(X, edges)
    assert_close(out[1], X[0] / 2 + X[2])
    assert_close(out[2], X[0] / 2)
    assert (out[[0, 3]] == 0).all()
    out = conv(X, edges, torch.tensor([3.0, 1.0, 5.0]))
    assert_close(out[1], 0.75 * X[0] + X[2])


def test_symmetric_equals_pyg_where_there_are_no_loops() -> None:
    theirs = GCNConv(2, 3, improved=True)
    ours = SymmetricConv(2, 3)
    ours.load_state_dict({"lin.weight": theirs.lin.weight, "lin.bias": theirs.bias})
    weight = torch.tensor([0.5, 2.0])
    assert_close(ours(X, EDGES, weight), theirs(X, EDGES, weight))


def test_symmetric_adds_to_the_loops_that_are_there() -> None:
    conv = with_identity(SymmetricConv(2, 2))
    loop = torch.tensor([[0], [0]])
    # One node with loop weight 3: (3 + 2) / (3 + 2).
    assert_close(conv(X[:1], loop, torch.tensor([3.0])), X[:1])
    pair = torch.tensor([[0, 1], [0, 0]])
    out = conv(X[:2], pair, torch.tensor([3.0, 1.0]))
    assert_close(out[0], 5 / 6 * X[0] + X[1] / 12**0.5)


def test_symmetric_survives_degree_zero() -> None:
    x = X.clone().requires_grad_()
    conv = with_identity(SymmetricConv(2, 2, self_weight=0.0))
    out = conv(x, EDGES)
    assert (out == 0).all()
    out.sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("conv_class", CONVS)
@pytest.mark.parametrize("widths", [(2, 5), (5, 2)])
def test_shapes_repr_and_gradients(conv_class, widths: tuple[int, int]) -> None:
    source, target = widths
    conv = conv_class(source, target, bias=True).double()
    assert repr(conv) == f"{conv_class.__name__}({source}, {target}, bias=True)"
    weight = torch.rand(2, dtype=torch.float64, requires_grad=True)
    x = torch.randn(4, source, dtype=torch.float64, requires_grad=True)
    assert conv(x, EDGES).shape == (4, target)
    assert torch.autograd.gradcheck(lambda a, b: conv(a, EDGES, b), (x, weight))
    assert conv(x[:0], EDGES[:, :0]).shape == (0, target)
    conv(x, EDGES).sum().backward()
    assert all(p.grad is not None for p in conv.parameters())


@pytest.mark.parametrize("conv_class", CONVS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_sums_in_float32(conv_class, dtype: torch.dtype) -> None:
    edges = torch.stack([torch.arange(1, 1500), torch.zeros(1499, dtype=torch.long)])
    x = torch.rand(1500, 2)
    conv = conv_class(2, 2)
    expected = conv(x, edges)
    half = conv.to(dtype)(x.to(dtype), edges)
    assert half.dtype == dtype
    assert_close(half.float(), expected, atol=0.05, rtol=0.02)


@pytest.mark.parametrize("conv_class", CONVS)
def test_reset_parameters_draws_anew(conv_class) -> None:
    conv = conv_class(3, 4, bias=True)
    before = {k: v.clone() for k, v in conv.state_dict().items()}
    conv.reset_parameters()
    changed = [k for k, v in conv.state_dict().items() if not torch.equal(v, before[k])]
    assert changed == [k for k in before if k.endswith("weight")]


@pytest.mark.parametrize("conv_class", CONVS)
def test_misspelt_option_is_refused(conv_class) -> None:
    with pytest.raises(TypeError):
        conv_class(3, 4, biass=True)
