"""Standardisation of the features of both graphs, saved with the model."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import torch
from torch import Tensor

from pyg_pool.mesh.data import PrimalDualData

__all__ = ["FeatureScaling"]


class FeatureScaling(torch.nn.Module):
    r"""Brings every feature to mean 0 and standard deviation 1.

    .. math::
        x \leftarrow (x - \mu) / \sigma

    with the mean and the unbiased standard deviation of each channel over all faces
    (all dual nodes) of all training meshes together. The numbers are buffers: as a
    part of a model they are saved and moved with it.

    Args:
        in_channels: Features of a face.
        in_channels_dual: Features of a dual node.

    Note:
        A channel that does not vary, up to rounding, is only shifted: its standard
        deviation counts as 1. So is everything before :meth:`fit`.

    Example:
        >>> from pyg_pool.mesh import FeatureScaling, Mesh, primal_dual_graph
        >>> strip = Mesh([[i / 2, i % 2, 0] for i in range(6)],
        ...              [[0, 1, 2], [2, 1, 3], [2, 3, 4], [4, 3, 5]])
        >>> graph = primal_dual_graph(strip)
        >>> scaled = FeatureScaling(1, 7).fit([graph])(graph)
        >>> bool(scaled.x_dual.mean().abs() < 1e-6)
        True
    """

    mean: Tensor
    std: Tensor
    mean_dual: Tensor
    std_dual: Tensor

    def __init__(self, in_channels: int = 1, in_channels_dual: int = 7) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(in_channels))
        self.register_buffer("std", torch.ones(in_channels))
        self.register_buffer("mean_dual", torch.zeros(in_channels_dual))
        self.register_buffer("std_dual", torch.ones(in_channels_dual))

    def fit(self, graphs: Iterable[PrimalDualData]) -> FeatureScaling:
        """Measures the training meshes, one at a time.

        Args:
            graphs: The training meshes, single or in batches.

        Returns:
            Itself.

        Raises:
            ValueError: If there is no mesh or the number of features does not fit.
        """
        primal = _Moments(self.mean.numel())
        dual = _Moments(self.mean_dual.numel())
        number = 0
        for graph in graphs:
            self._check(graph)
            primal.add(graph.x)
            dual.add(graph.x_dual)
            number += 1
        if number == 0:
            raise ValueError(
                "FeatureScaling.fit got no meshes, expected at least one; pass the "
                "training meshes."
            )
        for name, moments in (("", primal), ("_dual", dual)):
            mean, std = getattr(self, f"mean{name}"), getattr(self, f"std{name}")
            mean.copy_(moments.mean)
            std.copy_(moments.std())
        return self

    def forward(self, data: PrimalDualData) -> PrimalDualData:
        """Returns a shallow copy of a mesh or a batch with scaled features."""
        self._check(data)
        out = copy.copy(data)
        out.x = self._scale(data.x, self.mean, self.std)
        out.x_dual = self._scale(data.x_dual, self.mean_dual, self.std_dual)
        return out

    @staticmethod
    def _scale(x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        """Scaled features, in their own type."""
        wide = torch.promote_types(x.dtype, mean.dtype)
        return ((x.to(wide) - mean) / std).to(x.dtype)

    def _check(self, data: PrimalDualData) -> None:
        """Raises ``ValueError`` if the features are not those that were announced."""
        got = (data.x.size(-1), data.x_dual.size(-1))
        wanted = (self.mean.numel(), self.mean_dual.numel())
        if got != wanted:
            raise ValueError(
                f"FeatureScaling got {got[0]} features of faces and {got[1]} of dual "
                f"nodes, expected {wanted[0]} and {wanted[1]}; build it with "
                f"in_channels={got[0]}, in_channels_dual={got[1]}."
            )

    def extra_repr(self) -> str:
        """Returns the numbers of features."""
        return f"{self.mean.numel()}, {self.mean_dual.numel()}"


class _Moments:
    """Mean and spread of rows that come in parts, in float64."""

    def __init__(self, size: int) -> None:
        self.count = 0
        self.mean = torch.zeros(size, dtype=torch.float64)
        self.spread = torch.zeros(size, dtype=torch.float64)
        self.largest = torch.zeros(size, dtype=torch.float64)
        self.eps = 0.0

    def add(self, x: Tensor) -> None:
        """Takes more rows in, by the update of Chan, Golub and LeVeque (1979)."""
        if x.size(0) == 0:
            return
        self.eps = max(self.eps, torch.finfo(x.dtype).eps)
        x = x.detach().to(dtype=torch.float64, device="cpu")
        count, mean = x.size(0), x.mean(0)
        total = self.count + count
        step = mean - self.mean
        self.spread += (x - mean).square().sum(0)
        self.spread += step.square() * (self.count * count / total)
        self.mean = self.mean + step * (count / total)
        self.largest = torch.maximum(self.largest, x.abs().amax(0))
        self.count = total

    def std(self) -> Tensor:
        """Unbiased standard deviations; 1 where nothing varies but by rounding."""
        std = (self.spread / max(self.count - 1, 1)).sqrt()
        noise = 10 * self.eps * self.largest
        return torch.where(std > noise, std, torch.ones_like(std))
