"""First and second derivatives of the compiled selection."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from pyg_pool.kernels import use_backend
from pyg_pool.kernels.pick import Form, pick

BATCH = torch.tensor([0, 1, 0, 1, 0, 1])
INDEX = torch.tensor([[0, 1, 2, 3, 4, 5, 0, 2], [2, 3, 4, 5, 0, 1, 0, 2]])


def leaves() -> tuple[Tensor, ...]:
    torch.manual_seed(3)
    shapes = (6, 3), (1, 3), (1,), (8, 2)
    return tuple(torch.randn(s).double().requires_grad_() for s in shapes)


def run(form: Form, *given: Tensor | None) -> tuple[Tensor, ...]:
    x, weight, bias, attr = given
    assert x is not None
    assert weight is not None
    with use_backend("numba"):
        out = pick(x, INDEX, attr, BATCH, 2, weight, bias, form)
    assert out is not None
    assert out.edge_attr is None or out.edge_attr.size(0) > 0
    return tuple(t for t in (out.x, out.score, out.edge_attr) if t is not None)


@pytest.mark.parametrize("gate", ["sigmoid", "tanh", "identity"])
@pytest.mark.parametrize("normalize", [True, False])
def test_derivatives(gate: str, normalize: bool) -> None:
    form, given = Form(0.7, gate, normalize), leaves()
    assert gradcheck(lambda *t: run(form, *t), given)
    assert gradgradcheck(lambda *t: run(form, *t), given)
    without = lambda x, weight: run(form, x, weight, None, None)  # noqa: E731
    assert gradcheck(without, given[:2])
    assert gradgradcheck(without, given[:2])


@pytest.mark.parametrize("asked", range(4))
def test_any_input_alone(asked: int) -> None:
    given = leaves()
    full = torch.autograd.grad(sum(t.sum() for t in run(Form(), *given)), given)
    alone = [t.detach().requires_grad_(i == asked) for i, t in enumerate(given)]
    for create in (False, True):
        loss = sum(t.sum() for t in run(Form(), *alone))
        (grad,) = torch.autograd.grad(loss, [alone[asked]], create_graph=create)
        torch.testing.assert_close(grad, full[asked])


@pytest.mark.parametrize("part", range(3))
def test_any_output_alone(part: int) -> None:
    given = leaves()
    outs = run(Form(), *given)
    grads = torch.autograd.grad(outs[part].sum(), given, allow_unused=True)
    reached = [grad is not None and bool((grad != 0).any()) for grad in grads]
    assert reached == ([False] * 3 + [True] if part == 2 else [True] * 3 + [False])


def test_a_zero_vector_has_a_finite_gradient() -> None:
    x, weight, bias, attr = leaves()
    zero = torch.zeros_like(weight).requires_grad_()
    run(Form(), x, zero, bias, attr)[0].sum().backward()
    assert zero.grad is not None
    assert zero.grad.isfinite().all()


def test_no_gradient_without_a_leaf() -> None:
    given = [t.detach() for t in leaves()]
    assert not any(out.requires_grad for out in run(Form(), *given))
