"""Options of a readout of layer histories, checked and completed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pyg_pool.errors import check_choice

__all__ = ["HistoryForm", "sinusoids"]

CHOICES = {
    "layer_attention": ("signed", "softmax", "signed_abs", "mean", "last"),
    "node_attention": (True, False, "induced"),
    "norm": ("layer", None),
    "positional": ("sinusoidal", "learned", "none"),
    "pool": ("mean", "sum", "max", "none"),
    "scope": ("graph", "batch"),
    "init": ("tied", "free"),
}


@dataclass(frozen=True)
class HistoryForm:
    """What the options of a readout of histories come to.

    Attributes:
        widths: Width of each layer.
        starts: First column of each layer, and the number of columns.
        given_channels: The widths as they were given, ready to be printed.
        options: All options as they were given.
    """

    widths: tuple[int, ...]
    starts: tuple[int, ...]
    given_channels: int | list[int]
    options: Mapping[str, Any]

    @property
    def num_layers(self) -> int:
        """Number of layers."""
        return len(self.widths)

    @property
    def looks_at_layers(self) -> bool:
        """Whether the weights of layers depend on the activations."""
        return self.options["layer_attention"] not in ("mean", "last")

    @property
    def has_norm(self) -> bool:
        """Whether there is a normalisation."""
        return bool(self.options["node_attention"]) and self.options["norm"] is not None

    def parameter_shapes(self) -> dict[str, list[int] | None]:
        """Shapes of the weights beside the maps of layers; ``None`` for absent ones."""
        width = self.options["hidden_channels"]
        attends, layers = self.options["node_attention"], self.looks_at_layers
        is_induced = attends == "induced"
        is_learned = self.options["positional"] == "learned"
        table: dict[str, tuple[bool, list[int]]] = {
            "positions": (is_learned, [self.num_layers, width]),
            "w_q": (layers, [width, width]),
            "w_k": (layers, [width, width]),
            "in_proj_weight": (bool(attends), [3 * width, width]),
            "in_proj_bias": (bool(attends), [3 * width]),
            "out_proj_weight": (bool(attends), [width, width]),
            "out_proj_bias": (bool(attends), [width]),
            "points": (is_induced, [self.options["num_points"], width]),
            "point_proj_weight": (is_induced, [2 * width, width]),
            "point_proj_bias": (is_induced, [2 * width]),
        }
        return {
            name: shape if there else None for name, (there, shape) in table.items()
        }

    @classmethod
    def of(cls, owner: str, given: Mapping[str, Any]) -> HistoryForm:
        """Checks the options of a constructor.

        Raises:
            ValueError: If an option does not fit.

        Example:
            >>> from pyg_pool import HistographAggregation
            >>> HistographAggregation(8, 16, 3).form.widths
            (8, 8, 8)
        """
        for name, words in CHOICES.items():
            _check_word(owner, name, given[name], words)
        widths = _widths(owner, given["in_channels"], given["num_layers"])
        _check_numbers(owner, given, widths)
        starts = [0]
        for width in widths:
            starts.append(starts[-1] + width)
        channels = given["in_channels"]
        return cls(
            widths=widths,
            starts=tuple(starts),
            given_channels=channels if isinstance(channels, int) else list(channels),
            options={name: given[name] for name in given if name != "__class__"},
        )

    def check(self, owner: str, x: Tensor, dim: int) -> Tensor:
        """Returns a history as ``[N, W]``.

        Args:
            owner: Name of the operator, for messages.
            x: ``[N, W]``, or ``[N, L, F]`` with ``dim`` 0 or -3.
            dim: Dimension of the nodes.

        Raises:
            ValueError: If the shape does not fit.
        """
        layers = [self.num_layers, self.widths[0]]
        stacked = x.dim() == 3 and dim in (0, -3) and list(x.shape[1:]) == layers
        if stacked and len(set(self.widths)) == 1:
            return x.flatten(1)
        fits = x.dim() == 2 and dim in (0, -2) and x.size(1) == self.starts[-1]
        if not fits or not x.is_floating_point():
            raise ValueError(
                f"{owner} got x of shape {list(x.shape)} and dtype {x.dtype} with "
                f"dim={dim}, expected floats of shape [num_nodes, {self.starts[-1]}], "
                f"the {self.num_layers} layers of widths {list(self.widths)} side by "
                f"side; concatenate all of them, or pass them to from_history."
            )
        return x

    def join(self, owner: str, history: Sequence[Tensor]) -> Tensor:
        """Puts the layers of a history side by side.

        Raises:
            ValueError: If their number or widths do not fit.
        """
        shapes = [list(layer.shape) for layer in history]
        if [shape[-1:] for shape in shapes] != [[width] for width in self.widths]:
            raise ValueError(
                f"{owner} got a history of shapes {shapes}, expected "
                f"{self.num_layers} layers of widths {list(self.widths)}; pass the "
                f"layers that it was built for, the input of the first included."
            )
        return torch.cat(list(history), -1)


def _check_word(owner: str, name: str, value: Any, words: Sequence[Any]) -> None:
    if not any(value is word or value == word for word in words):
        check_choice(owner, name, value, [str(word) for word in words])


def _widths(owner: str, channels: Any, num_layers: int | None) -> tuple[int, ...]:
    """Width of each layer."""
    if isinstance(channels, int):
        widths = (channels,) * (num_layers or 0)
    else:
        widths = tuple(int(width) for width in channels)
    if not widths or min(widths) < 1 or num_layers not in (None, len(widths)):
        raise ValueError(
            f"{owner} got in_channels={channels} and num_layers={num_layers}, expected "
            f"the width of each layer, or one width and the number of layers; pass "
            f"for instance [16, 64, 64], or 64 and num_layers=3."
        )
    return widths


def _check_numbers(owner: str, given: Mapping[str, Any], widths: Sequence[int]) -> None:
    """Raises ``ValueError`` for numbers that do not go together."""
    hidden, heads = given["hidden_channels"], given["heads"]
    if hidden < 1 or heads < 1 or (given["node_attention"] and hidden % heads):
        raise ValueError(
            f"{owner} got hidden_channels={hidden} and heads={heads}, expected a "
            f"multiple of the number of heads; change either."
        )
    if given["shared_projection"] and len(set(widths)) > 1:
        raise ValueError(
            f"{owner} got shared_projection=True with layers of widths "
            f"{list(widths)}, expected equal widths; use shared_projection=False."
        )
    bound, least = given["max_weight"], 1.0 / len(widths)
    is_loose = bound is None or bound >= least
    positive = min(given["num_points"], given["chunk_size"], given["eps"]) > 0
    if not (is_loose and positive and 0.0 <= given["dropout"] < 1.0):
        raise ValueError(
            f"{owner} got max_weight={bound}, num_points={given['num_points']}, "
            f"chunk_size={given['chunk_size']}, eps={given['eps']} and dropout="
            f"{given['dropout']}, expected a bound of at least {least:g}, positive "
            f"numbers and a rate in [0, 1); correct these options."
        )


def sinusoids(num_layers: int, width: int, like: Tensor) -> Tensor:
    r"""The position code of layers, in type and place of ``like``.

    .. math::
        P_{l, 2k} = \sin(l / 10000^{2k / F}), \qquad
        P_{l, 2k + 1} = \cos(l / 10000^{2k / F})

    Shapes:
        returns ``[num_layers, width]``; of an odd width the last column is a sine.

    Example:
        >>> import torch
        >>> from pyg_pool.core.history_form import sinusoids
        >>> sinusoids(2, 2, torch.zeros(()))
        tensor([[0.0000, 1.0000],
                [0.8415, 0.5403]])
    """
    layer = torch.arange(num_layers, dtype=like.dtype, device=like.device)
    even = torch.arange(0, width, 2, dtype=like.dtype, device=like.device)
    angle = layer.unsqueeze(-1) * 10000.0 ** (-even / width)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :width]
