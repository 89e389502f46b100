"""The activations of a trained model, computed once and kept for its readout."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Batch, Data

from pyg_pool.core.history_cache import HistoryCache, cache_file, history_key
from pyg_pool.core.history_hooks import call_model, default_layers, frozen, recording

__all__ = ["collect_history"]


def collect_history(
    model: Module,
    layers: Sequence[str] | None,
    data: Data | Iterable[Data],
    *,
    cache: str | os.PathLike[str] | None = None,
    dtype: torch.dtype | None = None,
    batch_size: int = 128,
    call: Callable[[Module, Any], Any] | None = None,
) -> HistoryCache:
    """Runs a frozen model once over graphs and keeps what its layers return.

    A readout is then trained from the cache alone: no edges, no backbone.

    Args:
        model: Any PyG model. It runs in evaluation mode without gradients, and is
            left as it was.
        layers: Names of modules as ``named_modules()`` gives them, ``"input"`` for
            the features; ``None`` for the input and all layers of one of PyG's basic
            models. A subset saves memory.
        data: A graph, a batch, or a data set.
        cache: Folder of files that are found again by weights, layers and data;
            ``None`` computes anew each time.
        dtype: Type to store, for instance ``torch.bfloat16``; ``None`` as computed.
        batch_size: Graphs per call of the model.
        call: Function ``(model, batch)`` that runs the model, where it takes other
            arguments than features, edges and graph ids.

    Returns:
        All layers of all graphs, with the labels ``y`` where every graph has some.

    Raises:
        ValueError: If a layer is unknown, does not run or has no row per node, or
            there is no graph.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.nn import GIN
        >>> from pyg_pool import HistographAggregation
        >>> from pyg_pool.readout import collect_history
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> graphs = [Data(x=torch.rand(2, 3), edge_index=edges) for _ in range(4)]
        >>> history = collect_history(GIN(3, 8, 2), None, graphs)
        >>> head = HistographAggregation(history.widths, 16)
        >>> batch = history.batch([0, 3])
        >>> head(batch.x, batch.index, dim_size=batch.dim_size).shape
        torch.Size([2, 16])
    """
    graphs = _graphs(data)
    names = default_layers(model) if layers is None else list(layers)
    file = None
    if cache is not None:
        file = cache_file(cache, history_key(model, names, graphs, dtype))
        if file.exists():
            return HistoryCache.load(file)
    run = call_model if call is None else call
    parts, labels, widths = [], [], []
    with frozen(model):
        device = next((p.device for p in model.parameters()), torch.device("cpu"))
        for start in range(0, len(graphs), batch_size):
            batch: Any = Batch.from_data_list(graphs[start : start + batch_size])
            batch = batch.to(device)
            with recording(model, names) as record:
                run(model, batch)
            history = record.history(batch.x)
            widths = [layer.size(1) for layer in history]
            joined = torch.cat(history, -1).cpu()
            parts.append(joined if dtype is None else joined.to(dtype))
            labels.append(_labels(batch))
            found = [name for name in names for _ in record.calls.get(name, [None])]
    sizes = torch.tensor([graph.num_nodes for graph in graphs])
    y = None
    if all(label is not None for label in labels):
        y = torch.cat([label for label in labels if label is not None])
    out = HistoryCache(torch.cat(parts), sizes, found, widths, y)
    if file is not None:
        out.save(file)
    return out


def _graphs(data: Data | Iterable[Data]) -> list[Data]:
    """The graphs one by one."""
    if isinstance(data, Batch):
        graphs = data.to_data_list()
    elif isinstance(data, Data):
        graphs = [data]
    else:
        graphs = list(data)
    if not graphs:
        raise ValueError(
            "collect_history got no graph, expected at least one; pass a graph, a "
            "batch or a data set."
        )
    return graphs


def _labels(batch: Any) -> Tensor | None:
    """Labels with one row per graph."""
    y = getattr(batch, "y", None)
    if not isinstance(y, Tensor) or y.dim() == 0 or y.size(0) != batch.num_graphs:
        return None
    return y.cpu()
