"""Input checks and the warnings and errors that every room words the same way.

Every message has three parts: what was given, what was expected, how to mend it.
Checks of shapes and types always run. Checks that read values would force a
device synchronisation, so on an accelerator they run only in PyG's debug mode.
"""

from __future__ import annotations

import difflib
import importlib
import warnings
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch_geometric import is_debug_enabled

__all__ = [
    "PygPoolWarning",
    "check_batch",
    "check_choice",
    "check_edges",
    "check_features",
    "deprecated",
    "require",
]


class PygPoolWarning(UserWarning):
    """Category of every warning of this library."""


def require(package: str, extra: str) -> ModuleType:
    """Imports an optional package, or says how to install it.

    Args:
        package: The module to import, for instance ``"lightning"``.
        extra: The extra of this library that brings it.

    Returns:
        The imported module.

    Raises:
        ImportError: If the package is not installed; names the extra.
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name != package.split(".")[0]:
            raise
        raise ImportError(
            f"The package {package!r} is not installed, but this call needs it; "
            f"install it with: pip install 'pyg_pool[{extra}]'"
        ) from error


def deprecated(name: str, *, since: str, gone: str, instead: str) -> None:
    """Warns that a public name is going away.

    Args:
        name: What the caller used.
        since: Version from which it is discouraged.
        gone: Version that no longer has it.
        instead: What to use.
    """
    warnings.warn(
        f"{name} is deprecated since pyg_pool {since} and will be gone in "
        f"{gone}; use {instead} instead.",
        FutureWarning,
        stacklevel=3,
    )


def check_choice(owner: str, option: str, value: Any, choices: Iterable[str]) -> None:
    """Raises ``ValueError`` unless ``value`` is one of the option words."""
    words = list(choices)
    if value in words:
        return
    near = difflib.get_close_matches(str(value), words, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "choose one of these."
    raise ValueError(f"{owner} got {option}={value!r}, expected one of {words}; {hint}")


def reads_values(tensor: Tensor) -> bool:
    """Whether checks that read values may run: on the CPU or in debug mode."""
    if torch.compiler.is_compiling():
        return False
    return tensor.device.type == "cpu" or bool(is_debug_enabled())


def check_features(owner: str, x: Any, in_channels: int | None = None) -> Tensor:
    """Checks a node feature matrix; a vector becomes one column.

    Args:
        owner: Name of the operator, for the message.
        x: ``[N, F]`` or ``[N]`` floating point tensor.
        in_channels: Expected ``F``.

    Returns:
        ``x`` as ``[N, F]``.

    Raises:
        TypeError: If ``x`` is no floating point tensor.
        ValueError: If its shape does not fit.
    """
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{owner} got x of type {type(x).__name__}, expected a torch.Tensor of "
            f"shape [num_nodes, num_features]; convert it with torch.as_tensor."
        )
    if not x.is_floating_point():
        raise TypeError(
            f"{owner} got x of dtype {x.dtype}, expected a floating point tensor; "
            f"convert it with x.float() or embed categories first."
        )
    if x.dim() == 1:
        x = x.unsqueeze(-1)
    if x.dim() != 2:
        raise ValueError(
            f"{owner} got x of shape {list(x.shape)}, expected [num_nodes, "
            f"num_features]; flatten further dimensions into features."
        )
    if in_channels is not None and x.size(1) != in_channels:
        raise ValueError(
            f"{owner} got x of shape {list(x.shape)}, expected [num_nodes, "
            f"{in_channels}]; build it with in_channels={x.size(1)} or project x "
            f"first."
        )
    return x


def check_edges(
    owner: str, edge_index: Any, edge_attr: Tensor | None, num_nodes: int | None
) -> Tensor:
    """Checks ``edge_index`` and the number of rows of ``edge_attr``.

    Args:
        owner: Name of the operator, for the message.
        edge_index: ``[2, E]`` int64 tensor or PyG ``EdgeIndex``.
        edge_attr: ``[E]``, ``[E, 1]`` or ``[E, D]``.
        num_nodes: Every id must be below it; ``None`` where any number will do.

    Returns:
        ``edge_index`` as a plain ``[2, E]`` tensor.

    Raises:
        TypeError: For sparse adjacencies and other types.
        ValueError: For wrong shapes, dtypes and ids.
    """
    if type(edge_index) is not Tensor or edge_index.layout != torch.strided:
        edge_index = _plain_edge_index(owner, edge_index)
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(
            f"{owner} got edge_index of shape {list(edge_index.shape)}, expected "
            f"[2, num_edges]; transpose an edge list of shape [num_edges, 2]."
        )
    if edge_index.dtype != torch.long:
        raise ValueError(
            f"{owner} got edge_index of dtype {edge_index.dtype}, expected "
            f"torch.int64; convert it with edge_index.long()."
        )
    if edge_attr is not None and (
        edge_attr.dim() == 0 or edge_attr.size(0) != edge_index.size(1)
    ):
        raise ValueError(
            f"{owner} got edge_attr of shape {list(edge_attr.shape)} for "
            f"{edge_index.size(1)} edges, expected one row per edge: [E], [E, 1] or "
            f"[E, D]; pass the attributes of exactly these edges."
        )
    if reads_values(edge_index) and edge_index.numel() > 0:
        low, high = (int(v) for v in torch.aminmax(edge_index))
        if low < 0 or (num_nodes is not None and high >= num_nodes):
            nodes = high + 1 if num_nodes is None else num_nodes
            raise ValueError(
                f"{owner} got edge_index with node ids {low} to {high} for "
                f"{nodes} nodes, expected ids in 0..{nodes - 1}; pass x with "
                f"one row per node or renumber the edges."
            )
    return edge_index


def _plain_edge_index(owner: str, edge_index: Any) -> Tensor:
    """Unwraps PyG's EdgeIndex; refuses sparse adjacencies with a way out."""
    sparse = type(edge_index).__name__ == "SparseTensor" or (
        isinstance(edge_index, Tensor) and edge_index.layout != torch.strided
    )
    if sparse:
        raise TypeError(
            f"{owner} got edge_index as a sparse adjacency "
            f"({type(edge_index).__name__}), expected edge ids of shape [2, E]; "
            f"convert it with torch_geometric.utils.to_edge_index(adj), and flip the "
            f"two rows if it is PyG's transposed adj_t."
        )
    if hasattr(edge_index, "as_tensor"):
        plain = edge_index.as_tensor()
        if isinstance(plain, Tensor):
            return plain
    if isinstance(edge_index, Tensor):
        return edge_index
    raise TypeError(
        f"{owner} got edge_index of type {type(edge_index).__name__}, expected an "
        f"int64 tensor of shape [2, num_edges]; build it with "
        f"torch.tensor(edges, dtype=torch.long).t()."
    )


def check_batch(
    owner: str, batch: Tensor | None, batch_size: int | None, num_nodes: int
) -> int:
    """Checks the graph ids and returns the number of graphs.

    Args:
        owner: Name of the operator, for the message.
        batch: ``[N]`` int64 graph ids in any order, or ``None`` for one graph.
        batch_size: Number of graphs; without it the largest id sets it, which
            costs a device synchronisation.
        num_nodes: ``N``.

    Returns:
        The number of graphs ``B``.

    Raises:
        ValueError: If shape, dtype, ids or the number of graphs do not fit.
    """
    if batch is None:
        if batch_size not in (None, 1):
            raise ValueError(
                f"{owner} got batch_size={batch_size} without batch, expected a "
                f"graph id per node; pass batch, or leave batch_size out for one "
                f"graph."
            )
        return 1
    if batch.dim() != 1 or batch.size(0) != num_nodes or batch.dtype != torch.long:
        raise ValueError(
            f"{owner} got batch of shape {list(batch.shape)} and dtype "
            f"{batch.dtype}, expected [{num_nodes}] and torch.int64; pass one graph "
            f"id per row of x."
        )
    if batch_size is None:
        batch_size = int(batch.max()) + 1 if batch.numel() > 0 else 0
    if reads_values(batch) and batch.numel() > 0:
        low, high = (int(v) for v in torch.aminmax(batch))
        if low < 0 or high >= batch_size:
            raise ValueError(
                f"{owner} got batch with graph ids {low} to {high} for batch_size="
                f"{batch_size}, expected ids in 0..{batch_size - 1}; pass the number "
                f"of graphs of the whole batch."
            )
    return batch_size
