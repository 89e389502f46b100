from __future__ import annotations

import torch

from pyg_pool.kernels.derive import gradients


def test_gradients_can_be_derived_again() -> None:
    x, y = torch.tensor([2.0], requires_grad=True), torch.tensor([5.0])
    grad, none = gradients(x**3 * y, [x, y], torch.ones(1))
    assert none is None
    assert grad.item() == 60.0
    (second,) = torch.autograd.grad(grad, x)
    assert second.item() == 60.0
