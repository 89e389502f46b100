"""Weights of layers from their logits: signed, bounded, softmax or fixed."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_pool.errors import check_choice

__all__ = ["layer_weights"]

LAYER_ATTENTIONS = ("signed", "softmax", "signed_abs", "mean", "last")
# Least denominator, and largest factor, whose quotients and products stay finite.
LEAST, LARGEST = 1e-30, 1e18


def layer_weights(
    logits: Tensor, square: Tensor, how: str, eps: float, max_weight: float | None
) -> Tensor:
    r"""Turns the logits of layers into weights.

    .. math::
        \alpha_l = \frac{c_l}{\sum_k c_k}, \qquad
        \alpha_l = \frac{c_l}{\max(\sum_k |c_k|, \varepsilon)}, \qquad
        \alpha_l = \mathrm{softmax}_l(c)

    Args:
        logits: Logits, each row times its ``square``.
        square: Factor of each row, 1 where the logits are as they are.
        how: ``"signed"``, ``"signed_abs"``, ``"softmax"`` (the formulas above), or
            ``"mean"`` and ``"last"``, which look at no logits.
        eps: Sums of ``"signed"`` below it, or below the rounding error of the sum,
            give equal weights without a gradient.
        max_weight: Bound of the largest magnitude in a row.

    Returns:
        Weights, one per layer.

    Shapes:
        logits: ``[B, L]``; square: ``[B]``; returns ``[B, L]``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.layer_weights import layer_weights
        >>> logits, one = torch.tensor([[3.0, -1.0], [0.0, 0.0]]), torch.ones(2)
        >>> layer_weights(logits, one, "signed", 1e-6, None)
        tensor([[ 1.5000, -0.5000],
                [ 0.5000,  0.5000]])
    """
    check_choice("layer_weights", "how", how, LAYER_ATTENTIONS)
    number = logits.size(1)
    if how == "mean":
        weights = torch.full_like(logits, 1.0 / number)
    elif how == "last":
        weights = torch.zeros_like(logits)
        weights = weights.index_fill(1, _last(logits), 1.0)
    elif how == "softmax":
        top = logits.detach().amax(-1, keepdim=True)
        inverse = 1.0 / square.clamp(min=1.0 / LARGEST)
        weights = ((logits - top) * inverse.unsqueeze(-1)).softmax(-1)
    else:
        weights = _signed(logits, square, how, eps)
    if max_weight is None:
        return weights
    largest = weights.abs().amax(-1, keepdim=True).clamp(min=max_weight)
    return weights * (max_weight / largest)


def _last(logits: Tensor) -> Tensor:
    return torch.tensor([logits.size(1) - 1], device=logits.device)


def _signed(logits: Tensor, square: Tensor, how: str, eps: float) -> Tensor:
    """Logits divided by their sum, or by the sum of their magnitudes."""
    size = logits.abs().sum(-1, keepdim=True)
    least = (eps * square).clamp(min=LEAST).unsqueeze(-1)
    if how == "signed_abs":
        return logits / torch.maximum(size, least)
    if logits.size(1) == 1:  # exactly 1, and no rounding error as its gradient
        return logits * 0.0 + 1.0
    total = logits.sum(-1, keepdim=True)
    # A sum as small as its own rounding error has no sign to divide by.
    noise = torch.finfo(logits.dtype).eps * size.detach()
    is_small = (total.abs() < least) | (total.abs() <= noise)
    quotient = logits / total.masked_fill(is_small, 1.0)
    return torch.where(is_small, 1.0 / logits.size(1), quotient)
