"""Norms of the rows of a mesh, which take few rows and none."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import BatchNorm1d, GroupNorm, Module
from torch.nn.functional import batch_norm

from pyg_pool.models.traced_norm import is_open, plain_batch_norm

__all__ = ["MeshNorm", "RowBatchNorm", "RowGroupNorm", "make_norm"]

MeshNorm = Literal["group", "batch", "none"]


class RowBatchNorm(BatchNorm1d):
    """Batch norm whose running statistics serve where a batch has under two rows."""

    def forward(self, x: Tensor) -> Tensor:
        """Returns normalised rows."""
        if is_open(self):
            return plain_batch_norm(x, self)
        if not self.training or x.size(0) > 1:
            return super().forward(x)
        return batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )


class RowGroupNorm(GroupNorm):
    """Normalises each row inside groups of its channels."""

    def forward(self, x: Tensor) -> Tensor:
        """Returns normalised rows."""
        if torch.compiler.is_compiling():
            return self._plain(x)
        if x.size(0) == 0:
            return x
        # torch's own check refuses one row with as many groups as channels.
        return torch.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def _plain(self, x: Tensor) -> Tensor:
        """The same as arithmetic that does not ask whether there are rows."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        groups = wide.unflatten(1, (self.num_groups, -1))
        centred = groups - groups.mean(2, keepdim=True)
        var = centred.square().mean(2, keepdim=True)
        out = (centred * (var + self.eps).rsqrt()).flatten(1)
        if self.affine:
            out = out * self.weight + self.bias
        return out.to(x.dtype)


def make_norm(norm: MeshNorm, channels: int, groups: int) -> Module:
    """The norm at the end of a residual block."""
    if norm == "group" and channels % groups:
        raise ValueError(
            f"a group norm got {channels} channels (width times heads) and norm_groups="
            f"{groups}, expected channels divisible by the groups; change either."
        )
    if norm == "group":
        return RowGroupNorm(groups, channels)
    return RowBatchNorm(channels) if norm == "batch" else torch.nn.Identity()
