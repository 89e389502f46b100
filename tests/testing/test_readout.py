"""Each check of readouts finds a readout that breaks its promise."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch_geometric.nn.aggr import Aggregation

from pyg_pool.kernels import segment_reduce, segment_softmax
from pyg_pool.testing import READOUT_CHECKS, ReadoutSpec, check_readout
from pyg_pool.testing import readout as checks


class Reduce(Aggregation):
    """Plain reductions on this library's kernels; keeps the contract."""

    def __init__(self, how: str = "mean") -> None:
        super().__init__()
        self.how = how

    def rows(self, x: Tensor, index, ptr, dim_size) -> Tensor:
        return segment_reduce(x, index, ptr, dim_size, self.how)

    def forward(self, x, index=None, ptr=None, dim_size=None, dim=-2) -> Tensor:
        out = self.rows(x.movedim(dim, 0), index, None if index is not None else ptr,
                        dim_size)  # fmt: skip
        return out.movedim(0, dim)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.how!r})"


class Attention(Aggregation):
    """Softmax of a trainable projection; keeps the contract."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.weight = torch.nn.Parameter(torch.empty(in_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        torch.nn.init.uniform_(self.weight, -1, 1)

    def forward(self, x, index=None, ptr=None, dim_size=None, dim=-2) -> Tensor:
        x = x.movedim(dim, 0)
        ptr = None if index is not None else ptr
        with torch.autocast(x.device.type, enabled=False):
            wide = x if x.dtype == torch.float64 else x.float()
            score = wide @ self.weight.to(wide)
            share = segment_softmax(score, index, ptr, dim_size).unsqueeze(-1)
            out = segment_reduce(wide * share, index, ptr, dim_size)
        return out.to(x.dtype).movedim(0, dim)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels})"


class WantsSorted(Reduce):
    def rows(self, x, index, ptr, dim_size):
        if index is not None and bool((index[1:] < index[:-1]).any()):
            raise ValueError("unsorted")
        return super().rows(x, index, ptr, dim_size)


class NoPtr(Reduce):
    def rows(self, x, index, ptr, dim_size):
        return super().rows(x, index, None, dim_size)


class DropsTrailingGroups(Reduce):
    """An empty graph at the end disappears."""

    def rows(self, x, index, ptr, dim_size):
        return super().rows(x, index, ptr, None)


class ReadsMates(Reduce):
    def rows(self, x, index, ptr, dim_size):
        return super().rows(x, index, ptr, dim_size) / x.size(0)


class ReadsPadding(Reduce):
    """Divides by the size of the largest group."""

    def rows(self, x, index, ptr, dim_size):
        ones = x.new_ones(x.size(0))
        count = segment_reduce(ones, index, ptr, dim_size).max()
        return segment_reduce(x, index, ptr, dim_size) / count


class TakesFirst(Reduce):
    def rows(self, x, index, ptr, dim_size):
        out = super().rows(x, index, ptr, dim_size)
        return out.index_copy(0, index[:1], x[:1])


class SortsByLastColumn(Reduce):
    """Keeps the row with the largest last column; ties by position."""

    def rows(self, x, index, ptr, dim_size):
        order = x[:, -1].argsort(stable=True)
        best = torch.zeros(dim_size, dtype=torch.long).index_put((index[order],), order)
        return x[best]


class Floor(Reduce):
    """Leaves an empty group at 1e-3."""

    def rows(self, x, index, ptr, dim_size):
        return super().rows(x, index, ptr, dim_size).abs().clamp(min=1e-3)


class RootOfSum(Reduce):
    """Its shift has no gradient beside an empty group."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = torch.nn.Parameter(torch.zeros(1))

    def rows(self, x, index, ptr, dim_size):
        return (segment_reduce(x * x, index, ptr, dim_size) + 0 * self.shift).sqrt()


class Deviation(Reduce):
    """E[x^2] - E[x]^2: overflows, cancels, and has no gradient at equal rows."""

    def rows(self, x, index, ptr, dim_size):
        mean = super().rows(x, index, ptr, dim_size)
        square = super().rows(x * x, index, ptr, dim_size)
        return (square - mean * mean).clamp(min=0).sqrt()


class PlainExponential(Reduce):
    def rows(self, x, index, ptr, dim_size):
        return segment_reduce(x.exp(), index, ptr, dim_size)


class HidesNaN(Reduce):
    def rows(self, x, index, ptr, dim_size):
        return super().rows(x.nan_to_num(), index, ptr, dim_size)


class SpreadsNaN(Reduce):
    def rows(self, x, index, ptr, dim_size):
        return super().rows(x, index, ptr, dim_size) + 0 * x.sum()


class CountsInHalf(Reduce):
    def rows(self, x, index, ptr, dim_size):
        total = x.new_zeros(dim_size, x.size(1))
        for row in x:  # as a kernel that adds in the type of its input
            total = total + row
        return total / x.size(0)


class WrongDim(Reduce):
    def forward(self, x, index=None, ptr=None, dim_size=None, dim=-2):
        out = super().forward(x, index, ptr, dim_size, dim)
        return out if x.dim() == 2 else out.flip(1)


class ReturnsFloat64(Reduce):
    def rows(self, x, index, ptr, dim_size):
        return super().rows(x.double(), index, ptr, dim_size)


class NoDim(Aggregation):
    """Cannot be called as PyG's containers call it."""

    def forward(self, x, index=None, ptr=None, dim_size=None):
        return segment_reduce(x, index, None, dim_size)


BROKEN = [
    (WantsSorted, checks.check_forms, "unsorted"),
    (NoPtr, checks.check_forms, "ptr only|ValueError"),
    (DropsTrailingGroups, checks.check_forms, "rows for"),
    (DropsTrailingGroups, checks.check_empty, "rows for 4 groups"),
    (ReadsMates, checks.check_batch_independence, "alone"),
    (ReadsPadding, checks.check_batch_independence, "alone"),
    (TakesFirst, checks.check_permutation, "another order"),
    (SortsByLastColumn, checks.check_permutation, "tied rows"),
    (Floor, checks.check_empty, "rows of empty groups"),
    (RootOfSum, checks.check_empty, "gradient"),
    (Deviation, checks.check_extremes, "not finite"),
    (PlainExponential, checks.check_extremes, "not finite"),
    (HidesNaN, checks.check_nan, "hidden"),
    (SpreadsNaN, checks.check_nan, "beside a NaN"),
    (CountsInHalf, checks.check_counts, "bfloat16"),
    (ReturnsFloat64, checks.check_counts, "out"),
    (WrongDim, checks.check_dims, "slice"),
    (NoDim, checks.check_hosts, "TypeError"),
]


@pytest.mark.parametrize(
    ("cls", "check", "message"),
    [
        pytest.param(*case, id=f"{case[0].__name__}-{case[1].__name__}")
        for case in BROKEN
    ],
)
def test_broken_readout_is_found(
    cls: type[Aggregation], check: Callable[[ReadoutSpec], None], message: str
) -> None:
    spec = ReadoutSpec(lambda _: cls(), cls.__name__)
    with pytest.raises(AssertionError, match=f"(?s){cls.__name__} fails.*({message})"):
        check(spec)


SLOW = {"compile", "compile_gradients"}


@pytest.mark.parametrize("check", sorted(set(READOUT_CHECKS) - SLOW))
@pytest.mark.parametrize("how", ["sum", "mean", "max", "min", "logsumexp"])
def test_plain_reductions_keep_the_contract(how: str, check: str) -> None:
    spec = ReadoutSpec(lambda _: Reduce(how), f"Reduce({how!r})")
    assert check_readout(spec, only=[check]) == {check: "passed"}


@pytest.mark.parametrize("check", sorted(READOUT_CHECKS))
def test_attention_keeps_the_contract(check: str) -> None:
    assert check_readout(Attention, only=[check]) == {check: "passed"}


def test_neutral_value_of_a_product_is_one() -> None:
    spec = ReadoutSpec(lambda _: Reduce("prod"), neutral=1.0)
    report = check_readout(spec, only=["forms", "empty"])
    assert set(report.values()) == {"passed"}
    with pytest.raises(AssertionError, match="empty groups"):
        checks.check_empty(ReadoutSpec(lambda _: Reduce("prod")))
