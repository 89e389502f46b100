"""Activations, normalisations, readouts and heads from their names."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.nn import BatchNorm, Linear, aggr
from torch_geometric.nn.resolver import activation_resolver, normalization_resolver

from pyg_pool import readout
from pyg_pool.core import Selection, reduce
from pyg_pool.errors import check_choice
from pyg_pool.models.traced_norm import is_open, plain_batch_norm
from pyg_pool.typing import Activation, OptTensor

__all__ = ["Head", "NodeNorm", "Readout", "make_act", "reset"]

Norm = str | Callable[[int], Module]
ReadoutWord = str | Module | Callable[[int], Module]
Words = ReadoutWord | Sequence[ReadoutWord]

REDUCTIONS = ("sum", "mean", "max", "min")


def reset(module: Any) -> None:
    """Calls ``reset_parameters`` of a module that has it."""
    if hasattr(module, "reset_parameters"):
        module.reset_parameters()


def make_act(act: Activation | None) -> Callable[[Tensor], Tensor]:
    """An activation by name, as a function, or the identity for ``None``."""
    if act is None or act == "identity":
        return torch.nn.Identity()
    return activation_resolver(act)


class NodeNorm(Module):
    """A normalisation of node rows, by graph where it can, or none.

    Args:
        norm: Name of a PyG normalisation, a function ``channels -> module``, or
            ``None``.
        channels: Width of the rows.
    """

    def __init__(self, norm: Norm | None, channels: int) -> None:
        super().__init__()
        self.norm: Any = torch.nn.Identity()
        if isinstance(norm, str):
            self.norm = normalization_resolver(norm, channels)
        elif norm is not None:
            self.norm = norm(channels)
        if hasattr(self.norm, "allow_single_element"):
            # Otherwise one node alone in a training batch raises.
            self.norm.allow_single_element = True
        self.is_rowwise = type(self.norm) is BatchNorm
        names = inspect.signature(self.norm.forward).parameters
        self.takes_batch = "batch_size" in names

    def reset_parameters(self) -> None:
        """Resets the normalisation."""
        reset(self.norm)

    def forward(self, x: Tensor, batch: OptTensor, batch_size: int) -> Tensor:
        """Returns the normalised rows."""
        if not self.takes_batch:
            if self.is_rowwise and is_open(self.norm.module):
                return plain_batch_norm(x, self.norm.module)
            return self.norm(x)
        if batch is None:
            batch = torch.zeros(x.size(0), dtype=torch.long, device=x.device)
        return self.norm(x, batch, batch_size)


class Readout(Module):
    """Several readouts of one level: ``[N, F]`` to one row per graph.

    Args:
        owner: Name of the model, for messages.
        words: One or several of ``"sum"``, ``"mean"``, ``"max"``, ``"min"``, the
            name of a readout of this library or of PyG, an aggregation (which is
            copied), or a function ``in_channels -> aggregation``.
        in_channels: Width of the rows.
    """

    def __init__(self, owner: str, words: Words, in_channels: int) -> None:
        super().__init__()
        several: Any = [words] if is_one(words) else words
        words = list(several)
        names = [word if isinstance(word, str) else "" for word in words]
        self.words: list[Any] = ["sum" if name == "add" else name for name in names]
        self.aggrs = ModuleList(
            torch.nn.Identity()
            if name in REDUCTIONS
            else make_aggregation(owner, word, in_channels)
            for name, word in zip(self.words, words, strict=True)
        )
        self.out_channels: list[int] = [
            in_channels if name in REDUCTIONS else probe_width(module, in_channels)
            for name, module in zip(self.words, self.aggrs, strict=True)
        ]

    def reset_parameters(self) -> None:
        """Resets the aggregations that have something to reset."""
        for module in self.aggrs:
            reset(module)

    def forward(self, x: Tensor, batch: OptTensor, batch_size: int) -> list[Tensor]:
        """Returns one ``[B, F_r]`` matrix per readout."""
        if batch is None:
            batch = torch.zeros(x.size(0), dtype=torch.long, device=x.device)
        rows = torch.arange(x.size(0), device=x.device)
        groups = Selection(rows, x.size(0), batch, batch_size, kind="hard")
        index, order = batch, None
        out = []
        for name, module in zip(self.words, self.aggrs, strict=True):
            if name in REDUCTIONS:
                out.append(reduce(x, groups, name))
                continue
            if order is None:
                # Several of PyG's aggregations want ascending groups.
                index, order = torch.sort(batch, stable=True)
            sorted_x = x.index_select(0, order)
            out.append(module(sorted_x, index, dim_size=batch_size))
        return out

    def extra_repr(self) -> str:
        """The names of the plain reductions."""
        return ", ".join(name or "module" for name in self.words)


def is_one(words: Any) -> bool:
    """Whether this is one readout and not several."""
    return isinstance(words, str) or callable(words)


def make_aggregation(owner: str, word: ReadoutWord, in_channels: int) -> Module:
    """An aggregation from a name, an instance (copied) or a function."""
    if isinstance(word, Module):
        return copy.deepcopy(word)
    if not isinstance(word, str):
        return word(in_channels)
    known: dict[str, Any] = {
        name.removesuffix("Aggregation").lower(): cls
        for name, cls in {**vars(aggr), **vars(readout)}.items()
        if isinstance(cls, type) and issubclass(cls, aggr.Aggregation)
    }
    known.pop("")
    key = word.lower().replace("_", "")
    check_choice(owner, "readout", key, sorted({*REDUCTIONS, *known}))
    cls = known[key]
    parameters = inspect.signature(cls).parameters.values()
    needed = [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    if not {"in_channels", "channels"}.issuperset(needed):
        raise ValueError(
            f"{owner} got readout={word!r}, which needs {needed}, expected one that "
            f"needs no more than its width; pass the aggregation itself."
        )
    return cls(*[in_channels for _ in needed])


@torch.no_grad()
def probe_width(module: Module, in_channels: int) -> int:
    """Width that an aggregation returns, found by asking it once."""
    was_training = module.training
    with torch.random.fork_rng(devices=[]):
        rows = torch.zeros(2, in_channels)
        index = torch.zeros(2, dtype=torch.long)
        out = module.eval()(rows, index, dim_size=1)
    module.train(was_training)
    return int(out.size(-1))


class Head(Module):
    """Linear layers with an activation and dropout between them.

    Args:
        channels: Widths from input to output.
        act: Activation after every layer but the last.
        dropout: Rate in front of each layer.
    """

    def __init__(
        self, channels: Sequence[int], act: Activation | None, dropout: Sequence[float]
    ) -> None:
        super().__init__()
        self.lins = ModuleList(
            Linear(a, b, weight_initializer="glorot", bias_initializer="zeros")
            for a, b in pairwise(channels)
        )
        self.act = make_act(act)
        self.dropout = list(dropout)

    def reset_parameters(self) -> None:
        """Draws the weights anew; biases are 0."""
        for lin in self.lins:
            reset(lin)

    def forward(self, x: Tensor) -> Tensor:
        """Returns one row of outputs per row of ``x``."""
        for i, (lin, rate) in enumerate(zip(self.lins, self.dropout, strict=True)):
            x = self.act(x) if i > 0 else x
            x = lin(torch.nn.functional.dropout(x, rate, self.training))
        return x

    def extra_repr(self) -> str:
        """The dropout rates."""
        return f"dropout={self.dropout}"
