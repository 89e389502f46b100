"""Batch norm as plain arithmetic, for traced graphs whose number of rows is open."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import BatchNorm1d

__all__ = ["is_open", "plain_batch_norm"]


def is_open(norm: BatchNorm1d) -> bool:
    """Whether torch's own form would break a traced graph after a pooling step.

    It asks whether there are rows at all, which such a graph cannot know.
    """
    has_statistics = norm.running_mean is not None and norm.momentum is not None
    return torch.compiler.is_compiling() and has_statistics


def plain_batch_norm(x: Tensor, norm: BatchNorm1d) -> Tensor:
    """What ``norm`` makes of rows; under two of them take the running statistics.

    Shapes:
        x: ``[N, F]``; returns ``[N, F]``.

    Example:
        >>> from pyg_pool.models.traced_norm import plain_batch_norm
        >>> norm = torch.nn.BatchNorm1d(1, affine=False)
        >>> plain_batch_norm(torch.tensor([[1.0], [3.0]]), norm).round().view(-1)
        tensor([-1.,  1.])
        >>> norm.running_mean
        tensor([0.2000])
    """
    mean, var = norm.running_mean, norm.running_var
    if norm.training and mean is not None and var is not None:
        # The number of rows as a tensor: no guard depends on it.
        count = x.new_ones(x.size(0), dtype=var.dtype).sum()
        is_many = count > 1
        wide = x.to(var.dtype)
        ours = wide.sum(0) / count.clamp(min=1.0)
        spread = (wide - ours).square().sum(0)
        with torch.no_grad():
            step = is_many.to(var.dtype) * float(norm.momentum or 0.0)
            old_mean, old_var = mean.clone(), var.clone()
            mean.add_(step * (ours - mean))
            var.add_(step * (spread / (count - 1).clamp(min=1.0) - var))
            if norm.num_batches_tracked is not None:
                norm.num_batches_tracked.add_(is_many.long())
        mean = torch.where(is_many, ours, old_mean)
        var = torch.where(is_many, spread / count.clamp(min=1.0), old_var)
    if mean is None or var is None:
        return norm(x)
    out = (x.to(var.dtype) - mean) * (var + norm.eps).rsqrt()
    if norm.weight is not None:
        out = out * norm.weight + norm.bias
    return out.to(x.dtype)
