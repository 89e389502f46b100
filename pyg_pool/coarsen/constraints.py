"""What users ask of clusters: together, apart, alone, connected, not too heavy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyg_pool.coarsen.edge_text import COMMENTS, split_fields
from pyg_pool.coarsen.graph import Graph
from pyg_pool.coarsen.group import ANCHOR, FREE, KEPT, Limits
from pyg_pool.coarsen.labels import compact
from pyg_pool.coarsen.state import State

__all__ = ["Constraints", "read_groups"]

Array = NDArray[Any]
Groups = Sequence[Sequence[int]]


@dataclass(eq=False)
class Constraints:
    """Restrictions of one call, on nodes that must-link groups have already joined.

    Args:
        linked: Joined node of each node; ``None`` where nothing must be linked.
        lock: What each joined node may do, see :class:`Limits`; empty if all is free.
        cap: Largest share of the mass of a cluster.
        connected: Whether clusters must be connected.
    """

    linked: Array | None
    lock: Array
    cap: float | None
    connected: bool

    @classmethod
    def of(
        cls,
        graph: Graph,
        must_link: Groups | None,
        never_merge: Groups | None,
        keep: Sequence[int] | Tensor | None,
        cap: float | None,
        connected: bool,
    ) -> Constraints:
        """Checks what the caller asks for.

        Raises:
            ValueError: If ids are out of range, or two wishes contradict each other.
        """
        size = graph.num_nodes
        if cap is not None and not 0 < cap <= 1:
            raise ValueError(
                f"coarsen got max_cluster_mass={cap}, expected a share of the mass "
                f"above 0 and at most 1; pass 0.05 for a twentieth."
            )
        linked = None
        if must_link:
            linked = _linked([_nodes("must_link", g, size) for g in must_link], size)
        place = np.arange(size) if linked is None else linked
        count = int(place.max(initial=-1)) + 1
        lock = np.full(count, FREE, dtype=np.uint8)
        for group in never_merge or ():
            nodes = place[_nodes("never_merge", group, size)]
            if np.unique(nodes).size < nodes.size:
                raise ValueError(
                    f"coarsen got never_merge group {list(group)}, of which two nodes "
                    f"are also in one must_link group, expected no contradiction; take "
                    f"one of them out."
                )
            lock[nodes] = ANCHOR
        if keep is not None:
            kept = place[_nodes("keep", keep, size)]
            joined = np.bincount(place, minlength=count)[kept] > 1
            if joined.any():
                raise ValueError(
                    "coarsen got a node in keep that is also in a must_link group, "
                    "expected kept nodes to stay alone; take it out of one of them."
                )
            lock[kept] = KEPT
        if not lock.any():
            lock = lock[:0]
        return cls(linked, lock, cap, connected)

    @property
    def are_set(self) -> bool:
        """Whether there are any."""
        return (
            self.linked is not None
            or self.lock.size > 0
            or self.cap is not None
            or self.connected
        )

    def limits(self, state: State, lock: Array) -> Limits:
        """The same for the nodes of a level."""
        cap = np.inf if self.cap is None else self.cap * float(state.mass.sum())
        return Limits(cap, self.connected, lock)


def _nodes(option: str, nodes: Any, size: int) -> Array:
    """Node ids, checked."""
    if isinstance(nodes, Tensor):
        if nodes.dtype == torch.bool:
            nodes = nodes.nonzero().view(-1)
        nodes = nodes.detach().cpu().numpy()
    out = np.asarray(nodes)
    if out.size == 0:
        return np.empty(0, dtype=np.int64)
    if (
        out.ndim != 1
        or out.dtype.kind not in "iu"
        or out.min() < 0
        or out.max() >= size
    ):
        raise ValueError(
            f"coarsen got {option} with {out.ravel()[:5].tolist()}…, expected node ids "
            f"in 0..{size - 1}; pass ids of this graph."
        )
    return np.unique(out)


def _linked(groups: list[Array], size: int) -> Array:
    """Number of the joined node of each node; overlapping groups become one."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    first = [np.full(max(g.size - 1, 0), g[0] if g.size else 0) for g in groups]
    rest = [g[1:] for g in groups]
    row, col = np.concatenate(first), np.concatenate(rest)
    links = coo_matrix((np.ones(row.size), (row, col)), (size, size))
    label = compact(connected_components(links, directed=False)[1])
    return label.astype(np.int32 if size < 2**31 else np.int64)


def read_groups(path: Path, graph: Graph) -> list[list[int]]:
    """Groups of nodes from a text file: one group a line, nodes by their own names.

    Args:
        path: The file; names stand between spaces, commas, tabs or semicolons.
        graph: The graph that they are nodes of.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a name is that of no node.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"read_groups got {str(path)!r}, expected an existing file with one group "
            f"of nodes a line; check the path."
        )
    lines = [line for line in path.read_bytes().splitlines() if line.strip()]
    plain = [line for line in lines if not line.lstrip().startswith(COMMENTS)]
    names = [
        [field.decode("utf-8", "replace") for field in split_fields(line) if field]
        for line in plain
    ]
    flat = _places([name for group in names for name in group], graph, path)
    ends = np.cumsum([len(group) for group in names])
    return [part.tolist() for part in np.split(flat, ends[:-1])] if names else []


def _places(names: list[str], graph: Graph, path: Path) -> Array:
    """Numbers of nodes by their names, which ascend in a graph from a file."""
    known = np.arange(graph.num_nodes) if graph.ids is None else np.asarray(graph.ids)
    found: Array = np.array(names, dtype=str)
    if known.dtype.kind in "iu":
        whole = np.array([_is_id(name) for name in names], dtype=bool)
        numbers = (int(n) if w else -1 for n, w in zip(names, whole, strict=True))
        found = np.array(list(numbers), dtype=np.int64)
    else:
        whole = np.ones(found.size, dtype=bool)
    place = np.searchsorted(known, found)
    inside = whole & (place < known.size)
    inside[inside] = known[place[inside]] == found[inside]
    if not inside.all():
        raise ValueError(
            f"{path} names the node {names[int(np.argmin(inside))]!r}, expected nodes "
            f"of the graph, such as {known[:1].tolist()}; mend or remove it."
        )
    return place


def _is_id(name: str) -> bool:
    """Whether a word is a number of 64 bits."""
    digits = name.removeprefix("-")
    return digits.isdecimal() and len(digits) < 20 and abs(int(name)) < 2**63
