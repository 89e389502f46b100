"""Gradients of a gradient, for kernels that know only the first one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pyg_pool.typing import OptTensor

__all__ = ["gradients"]


def gradients(out: Tensor, inputs: Sequence[Tensor], grad: Tensor) -> list[OptTensor]:
    """Returns the gradient of each input, itself differentiable.

    Args:
        out: What torch's own operations made of the inputs.
        inputs: Inputs; those without gradient get ``None``.
        grad: Gradient of ``out``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels.derive import gradients
        >>> x = torch.tensor([3.0], requires_grad=True)
        >>> gradients(x * x, [x, torch.ones(1)], torch.ones(1))
        [tensor([6.], grad_fn=<AddBackward0>), None]
    """
    wanted = [each for each in inputs if each.requires_grad]
    found = iter(
        torch.autograd.grad(out, wanted, grad, create_graph=True, allow_unused=True)
    )
    return [next(found) if each.requires_grad else None for each in inputs]
