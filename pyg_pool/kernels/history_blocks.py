"""A readout of histories, a few groups at a time: projections, attention, mean.

All that lies between the history and the rows of the groups is made in memory of the
size of a block, which stays in the cache; only queries, keys and values, and what
attention made of them, are kept for the gradient.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_pool.kernels.history_run import BlockPlan, BlockRun, BlockWeights, call
from pyg_pool.kernels.segment_twin import step_of
from pyg_pool.typing import OptTensor

__all__ = ["history_readout"]


def history_readout(x: Tensor, weights: BlockWeights, plan: BlockPlan) -> Tensor:
    r"""Mean or sum over the nodes of each group after both attentions.

    Shapes:
        x: ``[N, W]``; returns ``[B, F]``.
    """
    out: Tensor = _readout(x, *weights, plan)
    return out


class _Readout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, *given: Any) -> Tensor:
        plan: BlockPlan = given[-1]
        x, weights = x.contiguous(), BlockWeights(*given[:-1])
        run, size = BlockRun(x, weights, plan), plan.groups.size
        logits = torch.zeros(size, run.layers)
        if weights.slope is not None:
            rows = run.memory(run.joint)
            for block in run.blocks:
                n = block.stop - block.start
                run.dots(block, run.asked(block, rows[:n]), logits)
            logits /= _counts(plan)
        with torch.enable_grad():
            logits.requires_grad_(weights.slope is not None)
            alpha = plan.softened(logits)
        shapes = run.width, 3 * run.width, run.width, run.heads, 2
        kept = [torch.empty(x.size(0), width) for width in shapes]
        sums = torch.empty(size, run.width)
        _forward(run, alpha.detach().contiguous(), kept, sums)
        ctx.plan, ctx.logits, ctx.alpha = plan, logits, alpha
        ctx.save_for_backward(x, *weights, *kept, sums)
        factor, count = _factors(plan)
        return (sums * weights.norm_weight + count * weights.norm_bias) * factor

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        x, *others = ctx.saved_tensors
        weights, kept, sums = BlockWeights(*others[:9]), others[9:14], others[14]
        if torch.is_grad_enabled():  # second derivatives are asked for
            return *_again(ctx, x, weights, grad), None
        factor, count = _factors(ctx.plan)
        scaled = grad * factor
        run, slopes = BlockRun(x, weights, ctx.plan), _Slopes(x, weights)
        alpha = ctx.alpha.detach().contiguous()
        with torch.autocast("cpu", enabled=False):
            up = scaled * weights.norm_weight
            grad_alpha = _backward(run, alpha, kept, up, slopes)
            if weights.slope is not None and ctx.alpha.requires_grad:
                found = torch.autograd.grad(
                    ctx.alpha, ctx.logits, grad_alpha, retain_graph=True
                )[0]
                _logit_slopes(run, found / _counts(ctx.plan), slopes)
        norm = (scaled * sums).sum(0), (scaled * count).sum(0)
        return slopes.x, *slopes.of_weights(), *norm, None


_readout = step_of(_Readout)


def _counts(plan: BlockPlan) -> Tensor:
    """Number of rows of each group, at least 1, ``[B, 1]``."""
    return plan.twin.query_ptr.diff().clamp(min=1).float().unsqueeze(1)


def _factors(plan: BlockPlan) -> tuple[Tensor, Tensor]:
    """What sums are multiplied with, and numbers of rows, ``[B, 1]``."""
    count = plan.twin.query_ptr.diff().float().unsqueeze(1)
    factor = 1.0 / count.clamp(min=1.0) if plan.mean else torch.ones_like(count)
    return factor, count


def _forward(run: BlockRun, alpha: Tensor, kept: list[Tensor], sums: Tensor) -> None:
    """Fills what is kept, and the sums of the normalised rows."""
    weights, (mixed, qkv, found, total, stats) = run.weights, kept
    rows, last = run.memory(run.joint), run.memory(run.width)
    for block in run.blocks:
        part, n = slice(block.start, block.stop), block.stop - block.start
        torch.mm(run.mixed(block, alpha, rows[:n]), weights.maps.t(), out=mixed[part])
        torch.addmm(weights.in_bias, mixed[part], weights.in_weight.t(), out=qkv[part])
        run.attend(
            block, run.attention.forward, qkv, found.data_ptr(), total.data_ptr()
        )
        out = last[:n]
        torch.addmm(weights.out_bias, found[part], weights.out_weight.t(), out=out)
        call(
            run.norm.pool, n, run.width, block.last - block.first,
            run.local[block.start :], out, mixed[part], stats[part],
            sums[block.first :],
        )  # fmt: skip


class _Slopes:
    """Gradients that grow block by block."""

    def __init__(self, x: Tensor, weights: BlockWeights) -> None:
        self.x = torch.empty_like(x)
        self.each = [None if w is None else torch.zeros_like(w) for w in weights[:7]]

    def of_weights(self) -> list[OptTensor]:
        """Gradients of all weights but those of the norm."""
        return self.each


def _backward(
    run: BlockRun, alpha: Tensor, kept: list[Tensor], up: Tensor, slopes: _Slopes
) -> Tensor:
    """Adds up the gradients behind the weights of layers; returns those of these."""
    weights, (mixed, qkv, found, total, stats) = run.weights, kept
    width, size = run.width, up.size(0)
    rows, grad_rows = run.memory(run.joint), run.memory(run.joint)
    last, back, joint = (run.memory(w) for w in (width, width, 3 * width))
    grad_alpha = torch.empty(size, run.layers)
    maps, in_weight, in_bias, out_weight, out_bias = (
        t for t in slopes.each[2:] if t is not None
    )
    for block in run.blocks:
        part, n = slice(block.start, block.stop), block.stop - block.start
        local, out, grad = run.local[block.start :], last[:n], back[:n]
        torch.addmm(weights.out_bias, found[part], weights.out_weight.t(), out=out)
        call(
            run.norm.unpool, n, width, local, out, mixed[part], stats[part],
            up[block.first :], grad,
        )  # fmt: skip
        out_weight.addmm_(grad.t(), found[part])
        out_bias += grad.sum(0)
        torch.mm(grad, weights.out_weight, out=out)
        # Kernels count from the first row of all.
        own = joint.data_ptr() - 12 * width * block.start
        run.attend(
            block, run.attention.backward, qkv, found.data_ptr(), total.data_ptr(),
            out.data_ptr() - 4 * width * block.start, 3 * width, 3 * width, own,
            own + 4 * width, own + 8 * width,
        )  # fmt: skip
        in_weight.addmm_(joint[:n].t(), mixed[part])
        in_bias += joint[:n].sum(0)
        grad.addmm_(joint[:n], weights.in_weight)
        maps.addmm_(grad.t(), run.mixed(block, alpha, rows[:n]))
        torch.mm(grad, weights.maps, out=grad_rows[:n])
        call(
            run.mix.mix_backward, *run.head(block), block.last - block.first,
            run.plan.history.first, alpha[block.first :], run.x[block.start :],
            local, run.plan.history.scale, grad_rows, run.total,
            grad_alpha[block.first :], slopes.x[block.start :],
        )  # fmt: skip
    return grad_alpha


def _logit_slopes(run: BlockRun, grad: Tensor, slopes: _Slopes) -> None:
    """Adds the gradients that come through the logits."""
    begin, end = run.plan.history.starts[-2:]
    grad, (for_slope, for_constant, *_) = grad.contiguous(), slopes.each
    rows, grad_rows = run.memory(run.joint), run.memory(run.joint)
    more = run.memory(run.x.size(1))
    slope: Any = run.weights.slope
    for block in run.blocks:
        part, n = slice(block.start, block.stop), block.stop - block.start
        call(
            run.mix.dots_backward, *run.head(block), run.plan.history.first,
            run.asked(block, rows[:n]), run.x[part], run.local[part],
            run.plan.history.scale, grad[block.first :], grad_rows, more,
        )  # fmt: skip
        slopes.x[part] += more[:n]
        slopes.x[part, begin:end].addmm_(grad_rows[:n], slope.t())
        if for_slope is not None and for_constant is not None:
            for_slope.addmm_(run.x[part, begin:end].t(), grad_rows[:n])
            for_constant += grad_rows[:n].sum(0)


def _again(ctx: Any, x: Tensor, weights: BlockWeights, grad: Tensor) -> list[OptTensor]:
    """Gradients in steps that can be differentiated again."""
    # Views, as one input may have been made of another.
    inputs: Any = [None if t is None else t.view_as(t) for t in (x, *weights)]
    wants = ctx.needs_input_grad[:-1]
    out = ctx.plan.again(inputs[0], BlockWeights(*inputs[1:]))
    wanted = [t for t, w in zip(inputs, wants, strict=True) if w]
    found = iter(torch.autograd.grad(out, wanted, grad, create_graph=True))
    return [next(found) if w else None for w in wants]
