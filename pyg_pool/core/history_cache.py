"""Histories of many graphs in one table, in memory and on disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from pyg_pool.core.archive import load_tensors, save_tensors
from pyg_pool.typing import OptTensor

__all__ = ["HistoryBatch", "HistoryCache", "history_key"]

KIND = "history"


@dataclass(frozen=True, eq=False)
class HistoryBatch:
    """Some graphs of a cache, as a readout takes them.

    Attributes:
        x: ``[N, W]`` layers side by side.
        index: ``[N]`` int64 graph of each node, ascending.
        dim_size: Number of graphs.
        y: Labels, one row per graph; ``None`` where the data had none.
    """

    x: Tensor
    index: Tensor
    dim_size: int
    y: OptTensor


@dataclass(eq=False)
class HistoryCache:
    """Activations of all layers of a model on some graphs, without their edges.

    Attributes:
        x: ``[N, W]`` layers side by side, in the type they are stored in.
        sizes: ``[G]`` int64 number of nodes of each graph.
        layers: Name of each layer.
        widths: Width of each layer, what ``HistographAggregation`` takes as
            ``in_channels``.
        y: Labels, one row per graph.

    Example:
        >>> import torch
        >>> from pyg_pool.core.history_cache import HistoryCache
        >>> x, sizes = torch.rand(5, 6), torch.tensor([2, 3])
        >>> cache = HistoryCache(x, sizes, ["input", "convs.0"], [2, 4])
        >>> cache.batch([1]).x.shape
        torch.Size([3, 6])
    """

    x: Tensor
    sizes: Tensor
    layers: Sequence[str]
    widths: Sequence[int]
    y: OptTensor = None

    def __post_init__(self) -> None:
        """Checks that the parts belong together."""
        fits = int(self.sizes.sum()) == self.x.size(0)
        fits = fits and sum(self.widths) == self.x.size(1)
        fits = fits and len(self.widths) == len(self.layers)
        if not fits or (self.y is not None and self.y.size(0) != len(self)):
            raise ValueError(
                f"HistoryCache got x of shape {list(self.x.shape)}, {len(self)} graphs "
                f"of {int(self.sizes.sum())} nodes, widths {list(self.widths)} and "
                f"{len(self.layers)} layers, expected as many rows, columns and labels "
                f"as these say; build it with collect_history."
            )
        self._start = self.sizes.cumsum(0) - self.sizes

    def __len__(self) -> int:
        """Number of graphs."""
        return self.sizes.numel()

    def batch(self, graphs: Sequence[int] | Tensor) -> HistoryBatch:
        """Returns some graphs, in that order."""
        ids = torch.as_tensor(graphs, dtype=torch.long)
        sizes = self.sizes.index_select(0, ids)
        index = torch.repeat_interleave(torch.arange(ids.numel()), sizes)
        shift = self._start.index_select(0, ids) - (sizes.cumsum(0) - sizes)
        rows = torch.arange(index.numel()) + shift.index_select(0, index)
        y = None if self.y is None else self.y.index_select(0, ids)
        return HistoryBatch(self.x.index_select(0, rows), index, ids.numel(), y)

    def batches(
        self,
        batch_size: int,
        *,
        graphs: Sequence[int] | Tensor | None = None,
        shuffle: bool = False,
        generator: torch.Generator | None = None,
    ) -> Iterator[HistoryBatch]:
        """Yields all graphs, or some, in batches.

        Args:
            batch_size: Graphs per batch.
            graphs: The graphs; ``None`` for all.
            shuffle: Whether their order is drawn anew.
            generator: Source of that order.
        """
        ids = torch.arange(len(self))
        if graphs is not None:
            ids = torch.as_tensor(graphs, dtype=torch.long)
        if shuffle:
            ids = ids[torch.randperm(ids.numel(), generator=generator)]
        for part in ids.split(batch_size):
            yield self.batch(part)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file: ``.npz`` without pickle, atomically."""
        tensors = {"x": self.x, "sizes": self.sizes}
        if self.y is not None:
            tensors["y"] = self.y
        header = {"layers": list(self.layers), "widths": list(self.widths)}
        save_tensors(path, KIND, tensors, header)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> HistoryCache:
        """Reads what :meth:`save` wrote.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If the file is damaged or holds something else.
        """
        tensors, header = load_tensors(path, KIND)
        return cls(
            tensors["x"], tensors["sizes"], header["layers"], header["widths"],
            tensors.get("y"),
        )  # fmt: skip


def history_key(
    model: Module,
    layers: Sequence[str],
    graphs: Sequence[Any],
    dtype: torch.dtype | None,
) -> str:
    """A word that changes with weights, layers, data and stored type.

    Example:
        >>> import torch
        >>> from pyg_pool.core.history_cache import history_key
        >>> model = torch.nn.Linear(1, 1)
        >>> before = history_key(model, ["input"], [], None)
        >>> _ = torch.nn.init.zeros_(model.weight)
        >>> history_key(model, ["input"], [], None) == before
        False
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((str(model), list(layers), str(dtype))).encode())
    for name, tensor in model.state_dict().items():
        _update(digest, name, tensor)
    for graph in graphs:
        for name, value in sorted(graph.to_dict().items()):
            _update(digest, name, value)
    return digest.hexdigest()


def _update(digest: Any, name: str, value: Any) -> None:
    """Adds a named value to the digest."""
    if not isinstance(value, Tensor):
        digest.update(f"{name}={value!r}".encode())
        return
    plain = value.detach().cpu().contiguous()
    digest.update(f"{name}:{plain.dtype}:{list(plain.shape)}".encode())
    digest.update(plain.view(-1).view(torch.uint8).numpy().tobytes())


def cache_file(folder: str | os.PathLike[str], key: str) -> Path:
    """The file of a key in a folder, which is made where it is missing."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    return place / f"{key}.npz"
