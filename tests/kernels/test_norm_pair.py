"""The pair of norms against its single steps."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from pyg_pool.kernels import use_backend
from pyg_pool.kernels.dispatch import watch_backends
from pyg_pool.kernels.norm_pair import norm_pair, pair_exponents

NUMBERS = st.one_of(
    st.floats(-(2.0**100), 2.0**100, width=32),
    st.sampled_from([0.0, -0.0, 1e30, -1e30, 1e-30, 1e-45, 1.0, -1.0]),
)
INDEX = torch.tensor([3, 0, 3, 1, 0, 3])


def both(
    backend: str, x: Tensor, index: Tensor, *raw: Tensor, **options: object
) -> list[Tensor]:
    """The result and its gradients."""
    given = [t.clone().requires_grad_() for t in (x, *raw)]
    weight = given[3] if len(given) > 3 else None
    kept = {"low": 0.05, "eps": 1e-7, "negative": "abs", **options}
    groups = index, None, 9, 0
    with use_backend(backend), watch_backends() as seen:
        out = norm_pair("test", *given[:3], weight, groups, **kept)
    assert ("segment_pnorm", backend) in seen
    torch.manual_seed(1)
    slopes = torch.autograd.grad(out, given, torch.randn(out.shape))
    return [out.detach(), *slopes]


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("negative", ["abs", "relu"])
@pytest.mark.parametrize("is_mixed", [True, False])
@pytest.mark.parametrize("channels", [1, 19])
def test_twin_equals_the_single_steps(
    channels: int, is_mixed: bool, negative: str, is_sorted: bool
) -> None:
    x, index = torch.randn(200, 19), torch.randint(0, 8, (200,))
    index = index.sort().values if is_sorted else index
    raw = list(torch.randn(3 if is_mixed else 2, 2, channels).unbind())
    eps = 0.01 if negative == "relu" else 1e-7
    wanted = both("native", x, index, *raw, negative=negative, eps=eps)
    found = both("numba", x, index, *raw, negative=negative, eps=eps)
    for new, old in zip(found, wanted, strict=True):
        assert_close(new, old, rtol=2e-4, atol=2e-5 * float(old.abs().max()))


def test_not_a_number_stays_in_its_group_and_channel() -> None:
    x = torch.rand(6, 3)
    x[2, 1] = torch.nan
    raw = torch.ones(2, 1), torch.ones(2, 1), torch.ones(2, 1)
    out, slope, *_ = both("numba", x, INDEX, *raw)
    assert out.isnan().nonzero().tolist() == [[3, 1]]
    assert slope[:, [0, 2]].isfinite().all()


@given(st.lists(NUMBERS, min_size=12, max_size=12), st.floats(-9, 9, width=32))
@settings(max_examples=40, deadline=None)
def test_all_is_finite(numbers: list[float], start: float) -> None:
    raw = torch.full((2, 1), start), torch.ones(2, 1), torch.ones(2, 1)
    for part in both("numba", torch.tensor(numbers).view(6, 2), INDEX, *raw)[:2]:
        assert part.isfinite().all()


def test_second_derivatives() -> None:
    x, raw = torch.rand(6, 2) + 0.5, torch.rand(3, 2, 1).unbind()
    found = []
    for backend in ("native", "numba"):
        given = [t.clone().requires_grad_() for t in (x, *raw)]
        with use_backend(backend):
            out = norm_pair(
                "test", *given, (INDEX, None, 5, 0), low=0.05, eps=0.1, negative="abs"
            )
            first = torch.autograd.grad(out.square().sum(), given, create_graph=True)
            total = sum((slope.square().sum() for slope in first), torch.zeros(()))
            found.append(torch.autograd.grad(total, given))
    for new, old in zip(*found, strict=True):
        assert_close(new, old, rtol=1e-4, atol=1e-5)


def test_exponents_keep_their_sign() -> None:
    found = pair_exponents(torch.tensor([[-9.0], [9.0]]), 0.05)
    assert_close(found, torch.tensor([[0.0501], [-9.0501]]), rtol=0, atol=1e-4)


def test_a_wrong_index_is_refused() -> None:
    raw = torch.ones(2, 1)
    with use_backend("numba"), pytest.raises(IndexError, match="dim_size=2"):
        norm_pair(
            "test", torch.rand(6, 2), raw, raw, None, (INDEX, None, 2, 0),
            low=0.05, eps=0.0, negative="abs",
        )  # fmt: skip
