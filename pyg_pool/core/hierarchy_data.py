"""A hierarchy inside a PyG ``Data``, so that PyG's loaders batch it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_pool.core.hierarchy import Hierarchy, Level
from pyg_pool.core.select import Selection

__all__ = ["HierarchyData", "pack"]


def pack(hierarchy: Hierarchy, data: Data) -> HierarchyData:
    """A copy of ``data`` that holds the coarser levels.

    See :meth:`pyg_pool.Hierarchy.attach`.
    """
    first = hierarchy.levels[0]
    if data.num_nodes != first.num_nodes or first.batch_size != 1:
        raise ValueError(
            f"Hierarchy.attach got data of {data.num_nodes} nodes and a hierarchy of "
            f"{first.batch_size} graphs whose level 0 has {first.num_nodes} nodes, "
            f"expected the one graph that the hierarchy was built from; attach each "
            f"graph's hierarchy, then batch."
        )
    out = HierarchyData(**data.to_dict())
    if out.edge_index is None:
        out.edge_index, out.edge_attr = first.edge_index, first.edge_attr
    out.h_num_levels = hierarchy.num_levels
    for i, level in enumerate(hierarchy.levels):
        out[f"h{i}_size"] = level.num_nodes
        if i > 0:
            out[f"h{i}_edge_index"] = level.edge_index
            out[f"h{i}_edge_attr"] = level.edge_attr
            out[f"h{i}_x"] = level.x
            out[f"h{i}_score"] = level.score
    for i, selection in enumerate(hierarchy.selections):
        out[f"h{i}_node_index"] = selection.node_index
        out[f"h{i}_cluster_index"] = selection.cluster_index
        out[f"h{i}_weight"] = selection.weight
        out[f"h{i}_hard"] = selection.is_hard
        out[f"h{i}_single"] = selection.is_one_to_one
    return out


class HierarchyData(Data):
    """A PyG ``Data`` that carries the coarser levels of its graph.

    Made by :meth:`Hierarchy.attach`. It goes through PyG's ``Batch``, ``DataLoader``
    and disk caches like any ``Data``; all graphs of a batch need the same number of
    levels.
    """

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Node and cluster ids grow by the size of their level."""
        level = _level_of(key)
        if level is not None:
            if key.endswith(("_edge_index", "_node_index")):
                return self[f"h{level}_size"]
            if key.endswith("_cluster_index"):
                return self[f"h{level + 1}_size"]
            return 0
        return super().__inc__(key, value, *args, **kwargs)

    def __cat_dim__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Edges are joined along the last dimension, all else along the first."""
        level = _level_of(key)
        if level is not None:
            return -1 if key.endswith("_edge_index") else 0
        return super().__cat_dim__(key, value, *args, **kwargs)

    def hierarchy(self) -> Hierarchy:
        """Returns the hierarchy of this graph, or of the whole batch.

        Raises:
            ValueError: If the graphs of the batch have different numbers of levels.
        """
        counts = torch.as_tensor(self.h_num_levels).view(-1)
        if counts.numel() == 0 or bool((counts != counts[0]).any()):
            raise ValueError(
                f"HierarchyData.hierarchy got graphs with {counts.tolist()} levels, "
                f"expected the same number in every graph of a batch; build them with "
                f"one depth."
            )
        sizes = [
            torch.as_tensor(self[f"h{i}_size"]).view(-1) for i in range(int(counts[0]))
        ]
        levels = [self._level(i, size) for i, size in enumerate(sizes)]
        return Hierarchy(
            levels, [self._selection(i, levels) for i in range(len(levels) - 1)]
        )

    def _level(self, i: int, size: Tensor) -> Level:
        get = self.to_dict().get
        key = (lambda name: name) if i == 0 else (lambda name: f"h{i}_{name}")
        edge_index = get(key("edge_index"))
        ids = torch.arange(size.numel(), device=edge_index.device)
        batch = torch.repeat_interleave(ids, size.to(edge_index.device))
        return Level(
            int(size.sum()),
            edge_index,
            get(key("edge_attr")),
            batch,
            size.numel(),
            get(key("x")),
            get(key("score")),
        )

    def _selection(self, i: int, levels: list[Level]) -> Selection:
        single = bool(torch.as_tensor(self[f"h{i}_single"]).all())
        hard = bool(torch.as_tensor(self[f"h{i}_hard"]).all())
        return Selection(
            self[f"h{i}_node_index"],
            levels[i].num_nodes,
            self[f"h{i}_cluster_index"],
            levels[i + 1].num_nodes,
            self.to_dict().get(f"h{i}_weight"),
            kind="one_to_one" if single else "hard" if hard else "soft",
        )


def _level_of(key: str) -> int | None:
    """The level that a stored tensor belongs to, or ``None`` for other keys."""
    head, _, rest = key.partition("_")
    if rest and head[:1] == "h" and head[1:].isdigit():
        return int(head[1:])
    return None


# As PyG does for its own classes: disk caches load it without running code.
torch.serialization.add_safe_globals([HierarchyData])
