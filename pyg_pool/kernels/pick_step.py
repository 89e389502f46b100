"""The part of ``pick.py`` that is differentiated, as one step of autograd."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyg_pool.kernels.gate import CODES, gate_of, project, unit
from pyg_pool.kernels.scatter import put_rows
from pyg_pool.kernels.segment_twin import step_of, typed
from pyg_pool.kernels.threads import shared
from pyg_pool.typing import OptTensor

__all__ = ["Form", "Plan", "picked", "room"]


@functools.cache
def room() -> Any:
    """The kernels; loaded when the first is needed."""
    from pyg_pool.kernels import pick_numba

    return pick_numba


class Form(NamedTuple):
    """What is picked and how.

    Args:
        ratio: Share or number of rows to keep of each graph.
        gate: ``"sigmoid"``, ``"tanh"`` or ``"identity"``.
        normalize: Whether to divide the vector by its length.
        rounding: ``"ceil"`` or ``"floor"`` of the share.
        min_nodes: Rows to keep at least.
    """

    ratio: float = 0.5
    gate: str = "sigmoid"
    normalize: bool = True
    rounding: str = "ceil"
    min_nodes: int = 1


class Plan(NamedTuple):
    """What of a step is not differentiated; numbers are sizes and addresses.

    ``held`` holds the vector with its length, the new number of each row, and the
    positions of kept edges. ``kept`` is filled in with the rest of the output.
    """

    form: Form
    held: Tensor
    vector: int
    place: int
    ids: int
    edges: int
    between: int
    kept: Tensor


def picked(
    x: Tensor, weight: Tensor, bias: OptTensor, edge_attr: OptTensor, plan: Plan,
    rest: tuple[Any, ...],
) -> tuple[Tensor, Tensor, OptTensor]:  # fmt: skip
    """Gated rows, their gates and the attributes of edges that are kept.

    Args:
        x: Rows.
        weight: The vector.
        bias: Added to each product.
        edge_attr: Attributes of edges.
        plan: What was chosen.
        rest: Addresses of the kept rows, graphs, edges and scores, then of the
            numbers, graphs and edges to be written; whether there are graphs.

    Shapes:
        x: ``[N, F]``; weight: ``[1, F]``; bias: ``[1]``; edge_attr: ``[E, *]``;
        returns ``[K, F]``, ``[K]``, ``[E', *]``.
    """
    out: tuple[Tensor, Tensor, OptTensor] = _run(x, weight, bias, edge_attr, plan, rest)
    return out


class _Pick(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: OptTensor, edge_attr: OptTensor,
        plan: Plan, rest: tuple[Any, ...],
    ) -> tuple[Tensor, Tensor, OptTensor]:  # fmt: skip
        kernel, kept, width = room(), plan.kept, x.shape[1]
        first, batch, index, raw, clusters, graph, edges, many = rest
        rows, count, columns, source, target = kept.shape[0], plan.between, 0, 0, 0
        score = torch.empty(rows, dtype=x.dtype)
        pooled = torch.empty((rows, width), dtype=x.dtype)
        attr = None
        if edge_attr is not None:
            edge_attr = edge_attr.contiguous()
            attr = torch.empty((count, *edge_attr.shape[1:]), dtype=x.dtype)
            columns = attr.numel() // count if count else 0
            source, target = edge_attr.data_ptr(), attr.data_ptr()
        typed(kernel.head, x)(
            rows, count, plan.edges, columns, many, first, batch, index, plan.place,
            plan.ids, raw, source, score.data_ptr(), target, kept.data_ptr(),
            clusters, graph, edges,
        )  # fmt: skip
        if plan.form.gate == "sigmoid":
            score.sigmoid_()
        elif plan.form.gate == "tanh":
            score.tanh_()
        shared(
            typed(kernel.gather, x), rows, rows * width, rows, width, x.data_ptr(),
            kept.data_ptr(), score.data_ptr(), pooled.data_ptr(),
        )  # fmt: skip
        ctx.plan, ctx.columns = plan, columns
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, weight, bias, score)
        return pooled, score, attr

    @staticmethod
    def backward(
        ctx: Any, up: OptTensor, up_score: OptTensor, up_attr: OptTensor
    ) -> tuple[OptTensor, ...]:
        x, weight, bias, score = ctx.saved_tensors
        plan, wanted = ctx.plan, ctx.needs_input_grad
        attr = None
        if up_attr is not None and wanted[3]:
            attr = _put_edges(up_attr, plan, ctx.columns)
        if (up is None and up_score is None) or not any(wanted[:3]):
            return None, None, None, attr, None, None
        up = x.new_zeros(score.size(0), x.size(1)) if up is None else up
        up_score = torch.zeros_like(score) if up_score is None else up_score
        if torch.is_grad_enabled():  # second derivatives are asked for
            found = _derived(wanted, (x, weight, bias), plan, (up, up_score))
            return *found, attr, None, None
        grads = _compiled_backward(x, weight, bias, score, plan, up, up_score, wanted)
        return *grads, attr, None, None


_run = step_of(_Pick)


def _put_edges(up: Tensor, plan: Plan, columns: int) -> Tensor:
    """Gradients of all edges from those of the kept ones."""
    if torch.is_grad_enabled():
        start = plan.held.numel() - plan.edges
        ids = plan.held[start : start + plan.between]
        return put_rows(up, ids.long(), plan.edges)
    up = up.contiguous()
    out = torch.empty((plan.edges, *up.shape[1:]), dtype=up.dtype)
    if columns == 0:
        return out.zero_()
    typed(room().put_edges, up)(
        plan.edges, plan.between, columns, plan.ids, up.data_ptr(), out.data_ptr()
    )
    return out


def _derived(
    wanted: tuple[bool, ...],
    inputs: tuple[Tensor, Tensor, OptTensor],
    plan: Plan,
    ups: tuple[Tensor, Tensor],
) -> list[OptTensor]:
    """Gradients that have gradients themselves, by torch's operations."""
    x, weight, bias = inputs
    form, vector = plan.form, weight.view(-1)
    rows = x.index_select(0, plan.kept)
    raw = project(rows, unit(vector) if form.normalize else vector, bias)
    score = gate_of(raw, form.gate)
    parts = rows * score.unsqueeze(-1), score
    flags = wanted[:3]
    asked = [
        t for t, is_on in zip(inputs, flags, strict=True) if is_on and t is not None
    ]
    found = iter(torch.autograd.grad(parts, asked, ups, create_graph=True))
    return [next(found) if is_on else None for is_on in flags]


def _compiled_backward(
    x: Tensor, weight: Tensor, bias: OptTensor, score: Tensor, plan: Plan,
    up: Tensor, up_score: Tensor, wanted: tuple[bool, ...],
) -> tuple[OptTensor, Tensor, OptTensor]:  # fmt: skip
    """Gradients of the rows, the vector and the bias."""
    kernel, (rows, width), bytes_each = room(), x.shape, x.element_size()
    blocks = -(-rows // kernel.BLOCK)
    up, up_score = up.contiguous(), up_score.contiguous()
    floats = blocks * (width + 1) + 1
    scratch = torch.empty(2 * floats + rows, dtype=torch.int32)
    partial = scratch.data_ptr()
    slopes = partial + bytes_each * blocks * width
    shift = None if bias is None else torch.empty_like(bias)
    out = torch.empty_like(x) if wanted[0] else None
    vector = torch.empty(weight.shape, dtype=x.dtype)
    shared(
        typed(kernel.backward, x), blocks, rows * width, rows, width,
        CODES[plan.form.gate], wanted[0], x.data_ptr(), plan.vector,
        score.data_ptr(), plan.place, partial + 8 * floats, up.data_ptr(),
        up_score.data_ptr(), 0 if out is None else out.data_ptr(), partial, slopes,
        step=1,
    )  # fmt: skip
    typed(kernel.unit_backward, x)(
        width, blocks, plan.form.normalize, plan.vector, partial, slopes,
        vector.data_ptr(),
        slopes + bytes_each * blocks if shift is None else shift.data_ptr(),
    )  # fmt: skip
    return out, vector, shift
