"""Messages on copies of graphs against the same on listed edges, on every backend."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pyg_pool.kernels import copy_sum as module
from pyg_pool.kernels.copy_sum import CopyGroup, copy_sum

FIRST = torch.tensor([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]])
SECOND = torch.tensor([[0, 1, 0], [1, 0, 1]])
GROUPS = [
    CopyGroup(0, 3, 3, FIRST, torch.tensor([0, 2, 4, 6, 7])),
    CopyGroup(9, 0, 4, FIRST, torch.tensor([0, 2, 4, 6, 7])),
    CopyGroup(9, 2, 2, SECOND, torch.tensor([1, 3, 5])),
    CopyGroup(13, 1, 1, SECOND[:, :0], torch.tensor([], dtype=torch.long)),
]
FORMS = ("sum", "weight", "scale", "edge")


def listed(
    x: Tensor, values: Tensor | None, form: str, own: bool, size: int = 14
) -> Tensor:
    """A loop over copies and their edges."""
    out = [row.clone() if own else torch.zeros_like(row) for row in x]
    for group in GROUPS:
        for copy in range(group.count):
            first = group.start + copy * group.size
            ends = group.edge_index.t().tolist()
            for (u, v), i in zip(ends, group.edge_id.tolist(), strict=True):
                row = x[first + u]
                if form in ("weight", "scale"):
                    row = row * values[i]
                elif form == "edge":
                    row = (row + values[i]).relu()
                out[first + v] = out[first + v] + row
    return torch.stack(out)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_equals_a_loop(
    form: str, own: bool, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK", 11)
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(14, 2, dtype=torch.float64, generator=generator).requires_grad_()
    shape = (8,) if form == "weight" else (8, 2)
    values = torch.randn(shape, dtype=torch.float64, generator=generator)
    values.requires_grad_()
    name = "edge" if form == "edge" else "weight"
    given = {} if form == "sum" else {name: values}
    found = copy_sum(x, GROUPS, own=own, **given)
    want = listed(x, values, form, own)
    torch.testing.assert_close(found, want)
    weights = torch.arange(28.0, dtype=torch.float64).view(14, 2).cos()
    leaves = [x] if form == "sum" else [x, values]
    for got, expected in zip(
        torch.autograd.grad((found * weights).sum(), leaves),
        torch.autograd.grad((want * weights).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(got, expected)

    def run(*parts: Tensor) -> Tensor:
        more = {} if form == "sum" else {name: parts[1]}
        return copy_sum(parts[0], GROUPS, own=own, **more)

    assert torch.autograd.gradgradcheck(run, leaves)


def test_half_precision_is_added_up_in_float32() -> None:
    x = torch.ones(5000, 1, dtype=torch.float16)
    edges = torch.stack([torch.arange(5000), torch.zeros(5000, dtype=torch.long)])
    out = copy_sum(x, [CopyGroup(0, 1, 5000, edges, torch.arange(5000))])
    assert out.dtype == torch.float16
    assert float(out[0]) == 5000


def test_nan_passes(backend: str) -> None:
    x = torch.full((1, 2), torch.nan)
    loop = CopyGroup(0, 1, 1, torch.zeros(2, 1).long(), torch.tensor([0]))
    assert copy_sum(x, [loop], edge=torch.zeros(1, 2)).isnan().all()


def test_weights_and_features_at_once_are_refused() -> None:
    with pytest.raises(ValueError, match="expected one of them"):
        copy_sum(torch.ones(1, 1), [], weight=torch.ones(1), edge=torch.ones(1, 1))
