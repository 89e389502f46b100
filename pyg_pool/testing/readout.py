"""Checks of readouts: groups in every form, empty ones, large numbers, hosts."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import Module

from pyg_pool.testing.contract import (
    READOUT_CHECKS,
    ReadoutSpec,
    expect,
    listed,
    same,
    total,
)

__all__ = [
    "check_batch_independence",
    "check_counts",
    "check_dims",
    "check_empty",
    "check_extremes",
    "check_forms",
    "check_hosts",
    "check_nan",
    "check_permutation",
]


def _rows(spec: ReadoutSpec, *sizes: int) -> tuple[Tensor, Tensor, int]:
    """Rows, ascending groups and their number."""
    sample = spec.random(*sizes)
    return sample.x, sample.batch, sample.batch_size


@listed("forms", READOUT_CHECKS)
def check_forms(spec: ReadoutSpec) -> None:
    """``index`` in any order, ``ptr``, both or neither; ``dim_size`` beyond the last.

    Without ``dim_size`` the last group that occurs sets the number of rows.
    """
    readout = spec.build()
    x, index, size = _rows(spec, 4, 0, 3, 6)
    wanted = readout(x, index, dim_size=size)
    expect(wanted.dim() == 2 and wanted.size(0) == size, f"shape {list(wanted.shape)}")
    ptr = torch.tensor([0, 4, 4, 7, 13], device=x.device)
    order = torch.randperm(13, generator=torch.Generator().manual_seed(5)).to(x.device)
    same(readout(x, ptr=ptr), wanted, "ptr only")
    same(readout(x, ptr=ptr, dim_size=size), wanted, "ptr and dim_size")
    same(readout(x, index, ptr, size), wanted, "index and ptr")
    same(readout(x, index), wanted, "without dim_size")
    same(readout(x[order], index[order], dim_size=size), wanted, "groups in disorder")
    more = readout(x, index, dim_size=size + 2)
    expect(more.size(0) == size + 2, f"{more.size(0)} rows for {size + 2} groups")
    same(more[:size], wanted, "two more groups")
    same(more[size:], torch.full_like(more[size:], spec.neutral), "the added groups")
    alone = readout(x[index == 3])
    same(alone, wanted[3:], "neither index nor ptr")


@listed("batch_independence", READOUT_CHECKS)
def check_batch_independence(spec: ReadoutSpec) -> None:
    """The row of a group is that of the group alone, beside small and large ones."""
    readout = spec.build()
    x, index, size = _rows(spec, 3, 1, 40, 2)
    for training in (False, True):
        readout.train(training)
        wanted = readout(x, index, dim_size=size)
        if training and not torch.equal(wanted, readout(x, index, dim_size=size)):
            break  # randomness in training, such as dropout
        for group in range(size):
            rows = x[index == group]
            alone = readout(rows, torch.zeros_like(index[: len(rows)]), dim_size=1)
            same(alone, wanted[group : group + 1], f"group {group} alone")


@listed("permutation", READOUT_CHECKS)
def check_permutation(spec: ReadoutSpec) -> None:
    """The order of the rows of a group does not matter, also among ties."""
    readout = spec.build()
    x, index, size = _rows(spec, 6, 1, 7)
    tied = x.clone()
    tied[[1, 2, 8, 9]] = tied[[0, 0, 7, 7]]
    half_tied = x.clone()
    half_tied[:, -1] = 1.0
    for name, rows in (("random", x), ("tied", tied), ("half tied", half_tied)):
        wanted = readout(rows, index, dim_size=size)
        for seed in range(3):
            chance = torch.Generator().manual_seed(seed)
            order = torch.randperm(14, generator=chance).to(x.device)
            found = readout(rows[order], index[order], dim_size=size)
            same(found, wanted, f"{name} rows in another order")


@listed("empty", READOUT_CHECKS)
def check_empty(spec: ReadoutSpec) -> None:
    """Empty groups give the neutral row and no gradient; so does empty input."""
    readout = spec.build()
    x = _rows(spec, 2)[0].requires_grad_()
    index = torch.tensor([0, 2], device=x.device)
    out = readout(x, index, dim_size=4)
    expect(out.size(0) == 4, f"{out.size(0)} rows for 4 groups")
    empty = out[[1, 3]]
    same(empty, torch.full_like(empty, spec.neutral), "rows of empty groups")
    inputs = [x, *readout.parameters()]
    grads = torch.autograd.grad(empty.sum(), inputs, allow_unused=True)
    for grad in grads:
        still = grad is None or bool((grad == 0).all())
        expect(still, f"an empty group has the gradient {grad}")
    (grad,) = torch.autograd.grad(readout(x, index, dim_size=4).sum(), [x])
    expect(bool(grad.isfinite().all()), "gradient beside empty groups is not finite")
    nothing = readout(x[:0], index[:0], dim_size=3)
    wanted = torch.full_like(out[:3], spec.neutral)
    same(nothing, wanted, "groups without a single element")
    one = readout(x[:1], index[:1], dim_size=1)
    expect(list(one.shape) == [1, out.size(1)], f"one element gives {list(one.shape)}")


@listed("extremes", READOUT_CHECKS)
def check_extremes(spec: ReadoutSpec) -> None:
    """Finite rows and gradients for zeros, equal, tiny and huge numbers."""
    readout = spec.build(torch.float32)
    x, index, size = _rows(spec, 5, 1, 3)
    ones = torch.ones_like(x)
    cases = {
        "zeros": 0 * x,
        "equal rows": 3 * ones,
        "negative rows": -x.abs() - 1,
        "1e30": 1e30 * x,
        "equal 1e30": 1e30 * ones,
        "-1e30": -1e30 * ones,
        "1e-30": 1e-30 * x,
        "1e30 beside 1e-30": torch.where(x > 0, 1e30, 1e-30) * x,
    }
    for name, rows in cases.items():
        leaf = rows.float().requires_grad_()
        out = readout(leaf, index, dim_size=size)
        expect(bool(out.isfinite().all()), f"{name}: the result is not finite")
        readout.zero_grad()
        (out / out.detach().abs().clamp(min=1.0)).sum().backward()
        grads = [leaf.grad, *(p.grad for p in readout.parameters())]
        finite = all(g is None or bool(g.isfinite().all()) for g in grads)
        expect(finite, f"{name}: a gradient is not finite")


@listed("nan", READOUT_CHECKS)
def check_nan(spec: ReadoutSpec) -> None:
    """A NaN shows in the row of its group, and in no other."""
    readout = spec.build()
    x, index, size = _rows(spec, 5, 4, 6)
    clean = readout(x, index, dim_size=size)
    x = x.clone()
    x[2, 1] = torch.nan
    found = readout(x, index, dim_size=size)
    expect(bool(found[0].isnan().any()), "the NaN of group 0 is hidden")
    same(found[1:], clean[1:], "groups beside a NaN", rtol=0.0, atol=0.0)


@listed("counts", READOUT_CHECKS)
def check_counts(spec: ReadoutSpec) -> None:
    """Half precision counts and sums in float32: 1,000 rows give what float64 gives."""
    chance = torch.Generator().manual_seed(11)
    x = torch.rand(1000, spec.in_channels, generator=chance).bfloat16()
    x = x.to(spec.device)
    index = torch.zeros(1000, dtype=torch.long, device=x.device)
    readout = spec.build(torch.bfloat16).double()
    wanted = readout(x.double(), index, dim_size=1)
    for dtype, tolerance in ((torch.bfloat16, 2e-2), (torch.float16, 5e-3)):
        found = readout.to(dtype)(x.to(dtype), index, dim_size=1)
        expect(found.dtype == dtype, f"{dtype} in, {found.dtype} out")
        same(found.double(), wanted, f"{dtype}", rtol=tolerance, atol=tolerance)


@listed("dims", READOUT_CHECKS)
def check_dims(spec: ReadoutSpec) -> None:
    """Higher rank: each slice gets its own readout, or ``ValueError`` says no."""
    readout = spec.build()
    x, index, size = _rows(spec, 4, 3)
    stacked = torch.stack([x, 2 * x, x - 1])
    for dim, rows in ((-2, stacked), (1, stacked), (0, stacked.transpose(0, 1))):
        try:
            found = readout(rows, index, dim_size=size, dim=dim)
        except ValueError as error:
            clear = "shape" in str(error) or "dim" in str(error)
            expect(clear, f"the message names no shape: {error}")
            continue
        found = found.transpose(0, 1) if dim == 0 else found
        for i, slice_ in enumerate(stacked):
            wanted = readout(slice_, index, dim_size=size)
            same(found[i], wanted, f"slice {i} with dim={dim}")


@listed("hosts", READOUT_CHECKS)
def check_hosts(spec: ReadoutSpec) -> None:
    """Works as ``aggr=`` of a convolution and inside PyG's containers."""
    sample = spec.random(6, 5)
    width = spec.build()(sample.x, sample.batch, dim_size=2).size(1)
    for name, host in _hosts(spec, width).items():
        host = host.to(spec.device, torch.float64)
        leaf = sample.leaf()
        if name in ("conv", "Sequential"):
            out = host(leaf.x, leaf.edge_index)
            rows = sample.num_nodes
        else:
            out = host(leaf.x, leaf.batch, dim_size=2)
            rows = 2
        expect(out.size(0) == rows, f"{name}: {out.size(0)} rows, expected {rows}")
        total({"out": out}).backward()
        grad = leaf.x.grad
        finite = grad is not None and bool(grad.isfinite().all())
        expect(finite, f"{name}: no finite gradient")
    _check_hetero(spec)


def _hosts(spec: ReadoutSpec, width: int) -> dict[str, Module]:
    """PyG modules that hold a readout."""
    from torch_geometric import nn

    histogram = torch.tensor([0, 2, 4, 2, 1])
    steps = [(nn.SimpleConv(aggr=spec.build()), "x, edge_index -> x"), torch.nn.ReLU()]
    hosts = {
        "conv": nn.SimpleConv(aggr=spec.build()),
        "Sequential": nn.Sequential("x, edge_index", steps),
        "MultiAggregation": nn.MultiAggregation([spec.build(), "mean"], mode="cat"),
    }
    if width == spec.in_channels:
        hosts["DegreeScalerAggregation"] = nn.DegreeScalerAggregation(
            spec.build(), ["identity", "amplification"], histogram
        )
    return hosts


class _OneConv(Module):
    """A network of one convolution."""

    def __init__(self, conv: Module) -> None:
        super().__init__()
        self.conv = conv

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Runs the convolution."""
        return self.conv(x, edge_index)

    # Before torch 2.7 the tracer behind to_hetero fails on a second set of them.
    forward.__annotations__.clear()


def _check_hetero(spec: ReadoutSpec) -> None:
    """A model with the readout in a convolution can be made heterogeneous."""
    from torch_geometric import nn

    sample = spec.random(5)
    net = _OneConv(nn.SimpleConv(aggr=spec.build()))
    kinds = (["a", "b"], [("a", "to", "b"), ("b", "to", "a")])
    model = nn.to_hetero(net, kinds).double()
    out = model(
        {"a": sample.x, "b": sample.x}, dict.fromkeys(kinds[1], sample.edge_index)
    )
    expect(out["a"].size(0) == 5, f"to_hetero gives {list(out['a'].shape)}")
