"""Small trained parts of operators, which work in the type of their input.

Weights of half precision meet wider features here: sums are held in the wider type.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import Dropout, Identity, LayerNorm, Linear, Module, Sequential
from torch.nn.functional import layer_norm, linear
from torch.utils.checkpoint import checkpoint

from pyg_pool.core.pair_scorer import PairScorer
from pyg_pool.kernels.deepsets import Residual
from pyg_pool.kernels.dispatch import is_traced
from pyg_pool.kernels.norm_sum import norm_sum
from pyg_pool.kernels.pair_product import pair_product
from pyg_pool.kernels.pairs import pair_logits
from pyg_pool.kernels.relu_dropout import relu_dropout
from pyg_pool.typing import OptTensor

__all__ = ["PairMLP", "ReLUDropout", "ResidualMLP", "activation", "run_layers"]

# Entries of a product of features that may be held at once.
CHUNK = 1 << 22


def run_layers(layers: Iterable[Any], x: Tensor) -> Tensor:
    """Applies layers one after the other, all in the type of ``x``.

    Example:
        >>> import torch
        >>> from pyg_pool.core.blocks import run_layers
        >>> layer = torch.nn.Linear(2, 3).to(torch.bfloat16)
        >>> run_layers([layer, torch.nn.ReLU()], torch.ones(1, 2)).dtype
        torch.float32
    """
    for layer in layers:
        if isinstance(layer, Linear):
            x = linear(x, layer.weight.to(x.dtype), layer.bias.to(x.dtype))
        elif isinstance(layer, LayerNorm):
            scale, shift = layer.weight.to(x.dtype), layer.bias.to(x.dtype)
            x = layer_norm(x, layer.normalized_shape, scale, shift, layer.eps)
        else:
            x = layer(x)
    return x


class ReLUDropout(Dropout):
    """ReLU, then dropout, in one pass.

    Args:
        p: Dropout rate.

    Example:
        >>> import torch
        >>> from pyg_pool.core.blocks import ReLUDropout
        >>> ReLUDropout(0.5).eval()(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Returns positive entries, some of them dropped."""
        return relu_dropout(x, self.p, training=self.training)


def activation(rate: float) -> list[Module]:
    """What follows a hidden layer, at the places of a ReLU and a Dropout.

    Example:
        >>> from pyg_pool.core.blocks import activation
        >>> activation(0.5)
        [ReLUDropout(p=0.5, inplace=False), Identity()]
    """
    return [ReLUDropout(rate), Identity()]


class PairMLP(PairScorer):
    r"""A number for each pair of nodes, the same for both orders.

    .. math::
        l_{ij} = \mathrm{MLP}(x_i \odot x_j)

    Args:
        channels: Number of features.
        num_layers: Linear layers; LayerNorm, ReLU and dropout follow each but the
            last.
        dropout: Dropout rate.

    Shapes:
        x: ``[N, F]``; pairs: ``[2, P]`` int64; returns ``[P]``.

    Note:
        With one layer no product of features is kept. With more, those of up to 4
        million features are; beyond that they are made in parts, and again for the
        gradient, so that memory is O(P) beside the features.

    Example:
        >>> import torch
        >>> from pyg_pool.core.blocks import PairMLP
        >>> PairMLP(3, 2)(torch.ones(4, 3), torch.tensor([[0, 1], [2, 3]])).shape
        torch.Size([2])
    """

    def __init__(
        self,
        channels: int,
        num_layers: int,
        dropout: float = 0.0,
        attr_channels: int = 0,
    ) -> None:
        super().__init__()
        layers: list[Module] = []
        width = channels + attr_channels
        for _ in range(num_layers - 1):
            layers += [Linear(width, channels), LayerNorm(channels)]
            layers += activation(dropout)
            width = channels
        self.mlp = Sequential(*layers, Linear(width, 1))
        self.is_random = dropout > 0.0 and num_layers > 1
        self.attr_channels = attr_channels

    @property
    def dtype(self) -> torch.dtype:
        """Type of the weights."""
        last: Any
        *_, last = self.mlp._modules.values()
        dtype: torch.dtype = last.weight.dtype
        return dtype

    def only_layer(self, dtype: torch.dtype) -> tuple[Tensor, Tensor] | None:
        """Weight and bias in another type, where there is a single layer."""
        if len(self.mlp) > 1 or self.attr_channels > 0:
            return None
        last: Any
        (last,) = self.mlp._modules.values()
        return last.weight.view(-1).to(dtype), last.bias.to(dtype)

    def forward(self, x: Tensor, pairs: Tensor, attr: OptTensor = None) -> Tensor:
        """Returns one number per pair."""
        layer = self.only_layer(x.dtype)
        if layer is not None:
            return pair_logits(x, pairs, layer[0]) + layer[1]
        size = max(CHUNK // max(x.size(1), 1), 1)
        parts = pairs.split(size, dim=1)
        if len(parts) == 1 or is_traced():
            return self._of(x, pairs, attr)
        # Only one part at a time is held, and made again for the gradient.
        run: Any = self._of
        if torch.is_grad_enabled():
            run = partial(checkpoint, self._of, use_reentrant=False)
        rows = [None] * len(parts) if attr is None else attr.split(size)
        return torch.cat([run(x, *part) for part in zip(parts, rows, strict=True)])

    def _of(self, x: Tensor, pairs: Tensor, attr: OptTensor) -> Tensor:
        rows = pair_product(x, pairs)
        if attr is not None:
            rows = torch.cat([rows, attr.to(rows.dtype)], dim=1)
        return run_layers(self.mlp, rows).view(-1)


class ResidualMLP(Module):
    r"""An MLP whose input is added to its output, and a LayerNorm.

    Args:
        channels: Number of features.
        num_layers: Linear layers; ReLU and dropout follow each but the last.
        dropout: Dropout rate.

    Shapes:
        x: ``[N, F]``; returns ``[N, F]``.

    Example:
        >>> import torch
        >>> from pyg_pool.core.blocks import ResidualMLP
        >>> ResidualMLP(3, 2)(torch.ones(4, 3)).shape
        torch.Size([4, 3])
    """

    def __init__(self, channels: int, num_layers: int, dropout: float = 0.0) -> None:
        super().__init__()
        layers: list[Module] = [Linear(channels, channels)]
        for _ in range(num_layers - 1):
            layers += [*activation(dropout), Linear(channels, channels)]
        self.mlp = Sequential(*layers)
        self.norm = LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        """Returns transformed rows."""
        return run_layers([self.norm], self._raised(x))

    def group_sum(self, x: Tensor, group: Tensor, num_groups: int) -> Tensor:
        """Returns the sum of the transformed rows of each group.

        Args:
            x: ``[N, F]`` rows.
            group: ``[N]`` int64 group of each row.
            num_groups: Number of groups.
        """
        scale, shift = self.norm.weight.to(x.dtype), self.norm.bias.to(x.dtype)
        rows = self._raised(x)
        return norm_sum(rows, scale, shift, self.norm.eps, group, num_groups)

    @property
    def is_single(self) -> bool:
        """Whether there is one linear layer, which :func:`deepsets` knows."""
        return len(self.mlp) == 1

    def only_layer(self, dtype: torch.dtype) -> Residual:
        """The weights of a single layer and of its norm in another type."""
        only: Any
        (only,) = self.mlp._modules.values()
        norm = self.norm
        weight, bias = only.weight, only.bias
        scale: Tensor = norm.weight
        shift: Tensor = norm.bias
        if weight.dtype != dtype:
            weight, bias = weight.to(dtype), bias.to(dtype)
            scale, shift = scale.to(dtype), shift.to(dtype)
        return weight, bias, scale, shift, norm.eps

    def _raised(self, x: Tensor) -> Tensor:
        """The input plus the MLP of it."""
        return x + run_layers(self.mlp, x)
