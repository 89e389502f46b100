"""What users ask of clusters: together, apart, alone, connected, not too heavy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyg_pool.coarsen.graph import Graph
from pyg_pool.coarsen.group import ANCHOR, FREE, KEPT, Limits
from pyg_pool.coarsen.labels import compact
from pyg_pool.coarsen.state import State

__all__ = ["Constraints"]

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
