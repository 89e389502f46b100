"""Norms of groups along any dimension, with a rule for negative numbers."""

from __future__ import annotations

import math

from torch import Tensor

from pyg_pool.errors import check_choice, reads_values
from pyg_pool.kernels.pnorm import segment_pnorm
from pyg_pool.typing import OptTensor

__all__ = ["group_pnorm"]

NEGATIVES = ("abs", "relu", "split", "error")

Groups = tuple[OptTensor, OptTensor, int | None, int]


def group_pnorm(
    owner: str,
    x: Tensor,
    p: Tensor,
    q: Tensor,
    groups: Groups,
    *,
    eps: float,
    negative: str,
) -> Tensor:
    """Norms of groups of elements, one for each row of exponents.

    Args:
        owner: Name of the operator, for messages.
        x: Elements.
        p: Exponents, none of them 0.
        q: Exponents of the group size.
        groups: Index, offsets, number of groups, and dimension of the elements.
        eps: Added to every magnitude.
        negative: ``"abs"``, ``"relu"``, ``"split"`` or ``"error"``.

    Returns:
        Norms in the type of ``x``.

    Shapes:
        x: ``[*, N, *, F]``; p, q: ``[R, 1]`` or ``[R, F]``; returns
        ``[R, *, B, *, F]``.

    Raises:
        ValueError: If a shape or an option does not fit, or x has negative numbers
            against ``"error"``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.group_pnorm import group_pnorm
        >>> x, one = torch.tensor([[[3.0], [-4.0]]]), torch.ones(1, 1)
        >>> groups = None, None, None, 1
        >>> group_pnorm("doc", x, one, 0 * one, groups, eps=0.0, negative="split")
        tensor([[[[-1.]]]])
    """
    check_choice(owner, "negative", negative, NEGATIVES)
    index, ptr, dim_size, dim = groups
    _check_elements(owner, x, p, dim, negative)
    dim, channels = dim % x.dim(), x.size(-1)
    moved = x.movedim(dim, 0)
    width = math.prod(moved.shape[1:])
    rows = moved.reshape(moved.size(0), width)
    if p.size(1) > 1 and x.dim() > 2:
        p, q = (t.repeat(1, width // channels) for t in (p, q))
    part = "pos" if negative in ("relu", "split") else "abs"
    out = segment_pnorm(rows, p, q, index, ptr, dim_size, eps=eps, part=part)
    if negative == "split":
        lower = segment_pnorm(rows, p, q, index, ptr, dim_size, eps=eps, part="neg")
        out = out - lower
    return out.view(*out.shape[:2], *moved.shape[1:]).movedim(1, dim + 1)


def _check_elements(owner: str, x: Tensor, p: Tensor, dim: int, negative: str) -> None:
    """Raises ``ValueError`` for elements that have no such norm."""
    is_last = x.dim() < 2 or dim % x.dim() == x.dim() - 1
    if not x.is_floating_point() or is_last or p.size(1) not in (1, x.size(-1)):
        raise ValueError(
            f"{owner} got x of shape {list(x.shape)} and dtype {x.dtype} with "
            f"dim={dim} and {p.size(1)} exponents per norm, expected floats of shape "
            f"[..., elements, ..., channels] and 1 exponent or one per channel; "
            f"convert or move the dimensions, or set channels to the last one."
        )
    if negative == "error" and reads_values(x) and bool((x < 0).any()):
        raise ValueError(
            f"{owner} got x with numbers down to {float(x.min()):g}, expected none "
            f"below 0 with negative='error'; apply relu first, or choose 'abs' or "
            f"'split'."
        )
