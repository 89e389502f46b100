"""Checks of dtypes, devices and derivatives that poolings and readouts share."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from pyg_pool.testing.contract import (
    POOLING_CHECKS,
    READOUT_CHECKS,
    OperatorSpec,
    PoolingSpec,
    ReadoutSpec,
    expect,
    listed,
    same,
    total,
)
from pyg_pool.testing.gallery import GraphSample

__all__ = ["check_autocast", "check_device", "check_dtypes", "check_gradcheck"]

BOTH = (POOLING_CHECKS, READOUT_CHECKS)
TOLERANCE = {
    torch.float64: 1e-9,
    torch.float32: 1e-4,
    torch.bfloat16: 5e-2,
    torch.float16: 1e-2,
}


def rounded(spec: OperatorSpec) -> GraphSample:
    """Graphs whose numbers are the same in every dtype."""
    half = spec.random(9, 40, 6).to(spec.device, torch.bfloat16)
    return half.to(spec.device, torch.float64)


def _rows(result: dict[str, Tensor]) -> Tensor:
    return result["x"] if "x" in result else result["out"]


@listed("dtypes", *BOTH)
def check_dtypes(spec: OperatorSpec) -> None:
    """Forward and backward in four dtypes; output dtype and sizes follow the input."""
    operator = spec.build(torch.bfloat16).double()  # weights exact in every dtype
    sample = rounded(spec)
    wanted = spec.tensors(operator, sample)
    for dtype, tolerance in TOLERANCE.items():
        leaf = sample.to(spec.device, dtype).leaf()
        found = spec.tensors(operator.to(dtype), leaf)
        _check_types(found, dtype)
        out, reference = _rows(found), _rows(wanted)
        shapes = (list(out.shape), list(reference.shape))
        expect(shapes[0] == shapes[1], f"{dtype}: {shapes[0]} rows, not {shapes[1]}")
        chosen = [r.get("node_index", leaf.batch) for r in (found, wanted)]
        if torch.equal(*chosen):
            same(out.double(), reference, f"{dtype}", rtol=tolerance, atol=tolerance)
        total(found).backward()
        grads = {"x": leaf.x.grad} | {n: p.grad for n, p in operator.named_parameters()}
        for name, grad in grads.items():
            finite = grad is None or bool(grad.isfinite().all())
            expect(finite, f"{dtype}: the gradient of {name} is not finite")
        operator.zero_grad()
    large = spec.random(1001).to(spec.device, torch.bfloat16)
    sizes = [
        _rows(spec.tensors(operator.to(t), large.to(spec.device, t))).size(0)
        for t in TOLERANCE
    ]
    expect(len(set(sizes)) == 1, f"{sizes} rows of 1001 in {list(TOLERANCE)}")


def _check_types(result: dict[str, Tensor], dtype: torch.dtype) -> None:
    for name, value in result.items():
        if value.is_floating_point():
            fits = name == "loss" or value.dtype == dtype
            expect(fits, f"{name} is {value.dtype} for input of {dtype}")
            expect(bool(value.isfinite().all()), f"{name} is not finite in {dtype}")
        else:
            expect(value.dtype == torch.long, f"{name} is {value.dtype}, not int64")


@listed("autocast", *BOTH)
def check_autocast(spec: OperatorSpec) -> None:
    """Runs under autocast; the output dtype depends on nothing but the input's."""
    operator, device = spec.build(torch.float32), torch.device(spec.device).type
    sample = rounded(spec).to(spec.device, torch.float32)
    wanted = _rows(spec.tensors(operator, sample))
    for dtype in (torch.float32, torch.bfloat16):
        leaf = sample.to(spec.device, dtype).leaf()
        with torch.autocast(device, torch.bfloat16):
            found = spec.tensors(operator, leaf)
            small = spec.random(1).to(spec.device, dtype)
            types = [_rows(found).dtype, _rows(spec.tensors(operator, small)).dtype]
        expect(types[0] == types[1], f"autocast gives {types} for the same {dtype}")
        out = _rows(found)
        expect(out.is_floating_point(), f"autocast gives {out.dtype}")
        expect(out.shape == wanted.shape, f"autocast gives the shape {list(out.shape)}")
        for name, value in found.items():
            kept = value.is_floating_point() or value.dtype == torch.long
            expect(kept, f"{name} is {value.dtype} under autocast")
        total(found).backward()
        grad = leaf.x.grad
        finite = grad is not None and bool(grad.isfinite().all())
        expect(finite, f"autocast with {dtype}: no finite gradient of x")


@listed("device", *BOTH)
def check_device(spec: OperatorSpec) -> None:
    """The result lies on the input's device, whatever the default device is."""
    sample = spec.random()
    found = spec.tensors(spec.build(), sample)
    previous = torch.get_default_device()
    operator = spec.build()
    torch.set_default_device("meta")  # a tensor made without a device would land there
    try:
        again = spec.tensors(operator, sample)
    finally:
        torch.set_default_device(previous)
    for name, value in found.items():
        expect(value.device == sample.x.device, f"{name} lies on {value.device}")
        expect(again[name].device == value.device, f"{name} follows the default device")


@listed("gradcheck", *BOTH)
def check_gradcheck(spec: OperatorSpec) -> None:
    """Gradients in float64 agree with differences, for inputs and parameters."""
    operator = spec.build()
    leaf = spec.random(5, 1, 4).leaf()
    inputs = [leaf.x, *operator.parameters()]
    if isinstance(spec, PoolingSpec) and leaf.edge_attr is not None:
        inputs.append(leaf.edge_attr)

    def run(*_: Tensor) -> tuple[Tensor, ...]:
        found = spec.tensors(operator, leaf)
        return tuple(v for v in found.values() if v.requires_grad)

    gradcheck(run, tuple(inputs))
    if isinstance(spec, ReadoutSpec) and spec.has_second_derivative:
        gradgradcheck(run, tuple(inputs))
