"""Each check of dtypes, devices and derivatives finds a broken operator."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch_geometric.nn.aggr import Aggregation

from pyg_pool import GPool, Pooling, Selection
from pyg_pool.kernels import segment_reduce, topk
from pyg_pool.testing import PoolingSpec, ReadoutSpec, check_pooling, check_readout
from pyg_pool.testing import numbers as checks


class Half(Pooling):
    def score(self, x: Tensor) -> Tensor:
        return x.sum(dim=1)

    def select(self, x, edge_index, edge_attr, batch, batch_size) -> Selection:
        score = self.score(x)
        kept = topk(score, 0.5, batch=batch, batch_size=batch_size)
        return Selection.from_nodes(kept, x.size(0), torch.sigmoid(score[kept]))


class AlwaysFloat32(Half):
    def reduce(self, x, selection):
        return super().reduce(x.float(), selection)


class CountsInHalf(Half):
    """The number of kept nodes is computed in the dtype of the scores."""

    def select(self, x, edge_index, edge_attr, batch, batch_size):
        share = torch.tensor(0.3, dtype=x.dtype) * x.size(0)
        kept = topk(self.score(x), k=int(share.ceil()))
        return Selection.from_nodes(kept, x.size(0))


class NarrowIndex(Half):
    def pack(self, *args):
        out = super().pack(*args)
        out.batch = out.batch.int()
        return out


class MixesDtypes(Half):
    def reduce(self, x, selection):
        product = x @ torch.eye(x.size(1)).to(x)  # bfloat16 under autocast
        out = x.new_zeros(selection.num_clusters, x.size(1))
        return out.index_put((selection.cluster_index,), product[selection.node_index])


class DefaultDevice(Half):
    def select(self, x, edge_index, edge_attr, batch, batch_size):
        kept = topk(self.score(x), 0.5, batch=batch, batch_size=batch_size)
        return Selection.from_nodes(
            kept, x.size(0), torch.ones(kept.size(0)).to(x.dtype)
        )


class HalfAGradient(Half):
    def score(self, x):
        return x.detach().sum(dim=1) * 2 - x.sum(dim=1)


class NoWeightGradient(Half):
    def connect(self, selection, edge_index, edge_attr, batch):
        edges = super().connect(selection, edge_index, edge_attr, batch)
        edges.edge_attr = edges.edge_attr.detach() + 0 * edge_attr.sum()
        return edges


class Smooth(Aggregation):
    """The sum of squares of each group, perhaps with a wrong second derivative."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        self.wrong = wrong

    def forward(self, x, index=None, ptr=None, dim_size=None, dim=-2):
        square = Square.apply(x) if self.wrong else x * x
        return segment_reduce(square, index, ptr, dim_size)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0].detach()


BROKEN = [
    (AlwaysFloat32, checks.check_dtypes, "input of"),
    (CountsInHalf, checks.check_dtypes, "rows of 1001"),
    (NarrowIndex, checks.check_dtypes, "not int64"),
    (MixesDtypes, checks.check_autocast, "dtype"),
    (NarrowIndex, checks.check_autocast, "under autocast"),
    (DefaultDevice, checks.check_device, "default device|meta"),
    (HalfAGradient, checks.check_gradcheck, "Jacobian"),
    (NoWeightGradient, checks.check_gradcheck, "Jacobian"),
]


@pytest.mark.parametrize(
    ("cls", "check", "message"),
    [
        pytest.param(*case, id=f"{case[0].__name__}-{case[1].__name__}")
        for case in BROKEN
    ],
)
def test_broken_operator_is_found(
    cls: type[Pooling], check: Callable[[PoolingSpec], None], message: str
) -> None:
    spec = PoolingSpec(lambda _: cls())
    with pytest.raises(AssertionError, match=f"(?s){cls.__name__} fails.*({message})"):
        check(spec)


def test_wrong_second_derivative_is_found() -> None:
    checks.check_gradcheck(ReadoutSpec(lambda _: Smooth(wrong=False)))
    wrong = ReadoutSpec(lambda _: Smooth(wrong=True))
    with pytest.raises(AssertionError, match="gradcheck"):
        checks.check_gradcheck(wrong)
    without = ReadoutSpec(lambda _: Smooth(wrong=True), has_second_derivative=False)
    checks.check_gradcheck(without)


def test_sound_operators_pass() -> None:
    only = ["dtypes", "autocast", "device", "gradcheck"]
    for cls in (lambda _: Half(), GPool):
        assert set(check_pooling(cls, only=only).values()) == {"passed"}
    spec = ReadoutSpec(lambda _: Smooth(wrong=False))
    assert set(check_readout(spec, only=only).values()) == {"passed"}
