"""The generalised norm of GNP as a function, with exponents from the caller."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_pool.kernels.group_pnorm import group_pnorm
from pyg_pool.typing import Negative, OptTensor

__all__ = ["gnp"]


def gnp(
    x: Tensor,
    p: Tensor | float,
    q: Tensor | float = 0.0,
    index: OptTensor = None,
    ptr: OptTensor = None,
    dim_size: int | None = None,
    dim: int = -2,
    *,
    eps: float = 1e-7,
    negative: Negative = "abs",
) -> Tensor:
    r"""Generalised norm of each group, for one pair of exponents.

    .. math::
        y = n^{-q} \Big( \sum_{i=1}^{n} v_i^{\,p} \Big)^{1/p}, \qquad
        v_i = |x_i| + \varepsilon

    Args:
        x: Elements of the groups.
        p: Exponent other than 0, a number or one per channel.
        q: Exponent of the size, likewise.
        index: Group of each element, in any order; without it there is one group.
        ptr: Offsets of contiguous groups, instead of ``index``.
        dim_size: Number of groups.
        dim: Dimension of the elements, any but the last.
        eps: Added to every magnitude.
        negative: ``"abs"`` takes magnitudes, ``"relu"`` takes negative numbers as 0,
            ``"split"`` subtracts the norm of the negative part from that of the
            positive part, ``"error"`` refuses negative numbers where values are
            checked: on the CPU and in PyG's debug mode.

    Returns:
        One row per group; 0 for an empty one.

    Shapes:
        x: ``[*, N, *, F]``; p, q: scalar, ``[1]`` or ``[F]``; returns
        ``[*, B, *, F]``.

    Raises:
        ValueError: If p is the number 0, a shape or an option does not fit, or x has
            negative numbers against ``negative="error"``.

    Source:
        J. Ko, T. Kwon, K. Shin, J. Lee. Learning to Pool in Graph Neural Networks for
        Extrapolation. 2021.

    Example:
        >>> import torch
        >>> from pyg_pool.readout import gnp
        >>> gnp(torch.tensor([[3.0], [4.0]]), p=2.0)
        tensor([[5.]])
    """
    if isinstance(p, (int, float)) and p == 0:
        raise ValueError(
            "gnp got p=0, expected a number other than 0, where the norm is infinite "
            "or 0; take p=0.05 with q=20 for nearly the geometric mean."
        )
    wide = torch.promote_types(x.dtype, torch.float32)
    rows = [torch.as_tensor(v, dtype=wide, device=x.device) for v in (p, q)]
    row_p, row_q = torch.broadcast_tensors(*(row.reshape(1, -1) for row in rows))
    groups = index, ptr, dim_size, dim
    return group_pnorm("gnp", x, row_p, row_q, groups, eps=eps, negative=negative)[0]
