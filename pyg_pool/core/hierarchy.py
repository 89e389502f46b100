"""Hierarchy: the levels of a graph that became smaller several times."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn.aggr import Aggregation

from pyg_pool.core.archive import load_tensors, save_tensors
from pyg_pool.core.lift import lift
from pyg_pool.core.pooling import PoolOutput
from pyg_pool.core.reduce import reduce
from pyg_pool.core.select import Selection
from pyg_pool.typing import Lift, NodeReduce, OptTensor

if TYPE_CHECKING:
    from pyg_pool.core.hierarchy_data import HierarchyData

__all__ = ["Hierarchy", "Level"]


@dataclass(eq=False)
class Level:
    """One graph of a hierarchy.

    Args:
        num_nodes: Number of nodes.
        edge_index: ``[2, E]`` int64 edges.
        edge_attr: Weights or attributes of the edges.
        batch: ``[num_nodes]`` graph of each node; ``None`` for one graph.
        batch_size: Number of graphs.
        x: ``[num_nodes, F]`` features, where they are kept.
        score: ``[num_nodes]`` gate with which each node was selected.
    """

    num_nodes: int
    edge_index: Tensor
    edge_attr: OptTensor = None
    batch: OptTensor = None
    batch_size: int = 1
    x: OptTensor = None
    score: OptTensor = None

    def _map(self, move: Any) -> Level:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return Level(
            **{k: move(v) if isinstance(v, Tensor) else v for k, v in values.items()}
        )


class Hierarchy:
    """Levels 0 (finest) to L (coarsest) and the selections between them.

    Args:
        levels: The graphs, finest first.
        selections: ``selections[i]`` leads from level ``i`` to level ``i + 1``.

    Raises:
        ValueError: If the sizes of levels and selections do not match.

    Example:
        >>> import torch
        >>> from pyg_pool import Hierarchy, Selection
        >>> from pyg_pool.core import Level
        >>> edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> pairs = Selection.from_clusters(torch.tensor([0, 0, 1, 1]))
        >>> empty = torch.empty(2, 0, dtype=torch.long)
        >>> print(Hierarchy([Level(4, edges), Level(2, empty)], [pairs]))
        Hierarchy of 2 levels, 1 graph
        level  nodes  edges  nodes kept
            0      4      4
            1      2      0       50.0%
    """

    def __init__(
        self, levels: Sequence[Level], selections: Sequence[Selection]
    ) -> None:
        self.levels = list(levels)
        self.selections = list(selections)
        if len(self.levels) != len(self.selections) + 1:
            raise ValueError(
                f"Hierarchy got {len(self.levels)} levels and {len(self.selections)} "
                f"selections, expected one selection less than levels; give the "
                f"selection between each two levels."
            )
        for i, selection in enumerate(self.selections):
            sizes = (selection.num_nodes, selection.num_clusters)
            wanted = (self.levels[i].num_nodes, self.levels[i + 1].num_nodes)
            if sizes != wanted:
                raise ValueError(
                    f"Hierarchy got selection {i} from {sizes[0]} nodes to {sizes[1]} "
                    f"clusters, expected {wanted[0]} to {wanted[1]} (the sizes of "
                    f"levels {i} and {i + 1}); pass levels in order, finest first."
                )

    @classmethod
    def from_outputs(
        cls,
        x: OptTensor,
        edge_index: Tensor,
        edge_attr: OptTensor,
        batch: OptTensor,
        batch_size: int,
        outputs: Sequence[PoolOutput],
    ) -> Hierarchy:
        """Collects the input graph and the results of pooling it repeatedly.

        Args:
            x: Features of the input graph, or ``None``.
            edge_index: Its edges.
            edge_attr: Their attributes.
            batch: Graph of each node.
            batch_size: Number of graphs.
            outputs: Results of the pools, in the order they were called.
        """
        if x is not None or batch is not None:
            num_nodes = (batch if x is None else x).size(0)  # type: ignore[union-attr]
        else:
            num_nodes = outputs[0].selection.num_nodes if outputs else 0
        levels = [Level(num_nodes, edge_index, edge_attr, batch, batch_size, x)]
        for out in outputs:
            graph = (out.edge_index, out.edge_attr, out.batch, out.batch_size)
            levels.append(Level(out.x.size(0), *graph, out.x, out.score))
        return cls(levels, [out.selection for out in outputs])

    @property
    def num_levels(self) -> int:
        """Number of graphs, the finest included."""
        return len(self.levels)

    def __len__(self) -> int:
        """Number of graphs, the finest included."""
        return len(self.levels)

    def selection(self, fine: int, coarse: int) -> Selection:
        """Returns the selection that leads from one level to a coarser one.

        Args:
            fine: Index of the finer level.
            coarse: Index of the coarser level, above ``fine``.

        Raises:
            ValueError: If there are no such levels in this order.
        """
        first, *others = self._between(fine, coarse, 1)
        for selection in others:
            first = first.compose(selection)
        return first

    def _between(self, fine: int, coarse: int, apart: int = 0) -> list[Selection]:
        """The selections from one level to a coarser one, at least ``apart`` away."""
        if not 0 <= fine <= coarse - apart < self.num_levels - apart:
            raise ValueError(
                f"Hierarchy got levels {fine} to {coarse}, expected 0 <= fine "
                f"{'<' if apart else '<='} coarse <= {self.num_levels - 1}; level 0 is "
                f"the finest."
            )
        return self.selections[fine:coarse]

    def lift(
        self, x: Tensor, coarse: int, fine: int = 0, *, how: Lift = "transpose"
    ) -> Tensor:
        """Brings features of a coarse level down to a finer one, level by level.

        Args:
            x: ``[levels[coarse].num_nodes, *]`` features.
            coarse: Level of ``x``.
            fine: Level to reach.
            how: See :func:`pyg_pool.core.lift`.

        Raises:
            ValueError: If there are no such levels, or ``x`` belongs to another one.
        """
        for selection in reversed(self._between(fine, coarse)):
            x = lift(x, selection, how)
        return x

    def reduce(
        self,
        x: Tensor,
        fine: int,
        coarse: int,
        *,
        how: NodeReduce | Aggregation = "sum",
    ) -> Tensor:
        """Pools features of a level up to a coarser one, level by level.

        Args:
            x: ``[levels[fine].num_nodes, F]`` features.
            fine: Level of ``x``.
            coarse: Level to reach.
            how: See :func:`pyg_pool.core.reduce`.

        Raises:
            ValueError: If there are no such levels, or ``x`` belongs to another one.
        """
        for selection in self._between(fine, coarse):
            x = reduce(x, selection, how)
        return x

    def to(self, device: Any) -> Hierarchy:
        """Returns the hierarchy on another device."""
        return self._map(lambda t: t.to(device))

    def pin_memory(self) -> Hierarchy:
        """Returns the hierarchy in page-locked memory."""
        return self._map(lambda t: t.pin_memory())

    def detach(self) -> Hierarchy:
        """Returns the hierarchy without gradients."""
        return self._map(lambda t: t.detach())

    def _map(self, move: Any) -> Hierarchy:
        levels = [level._map(move) for level in self.levels]
        return Hierarchy(levels, [s._map(move) for s in self.selections])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the hierarchy to an ``.npz`` file (no pickle, atomic)."""
        tensors: dict[str, Tensor] = {}
        header: dict[str, Any] = {"levels": [], "selections": []}
        for part, items in (("level", self.levels), ("selection", self.selections)):
            for i, item in enumerate(items):
                values = {k.lstrip("_"): v for k, v in vars(item).items()}
                plain = {}
                for name, value in values.items():
                    if isinstance(value, Tensor):
                        tensors[f"{part}{i}.{name}"] = value
                    else:
                        plain[name] = value
                header[f"{part}s"].append(plain)
        save_tensors(path, "Hierarchy", tensors, header)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Hierarchy:
        """Reads a hierarchy written by :meth:`save`.

        Raises:
            ValueError: If the file is damaged or holds something else.
        """
        tensors, header = load_tensors(path, "Hierarchy")

        def values(part: str, i: int) -> dict[str, Any]:
            prefix = f"{part}{i}."
            found = {
                name.removeprefix(prefix): tensor
                for name, tensor in tensors.items()
                if name.startswith(prefix)
            }
            return {**header[f"{part}s"][i], **found}

        levels = [Level(**values("level", i)) for i in range(len(header["levels"]))]
        count = len(header["selections"])
        return cls(levels, [Selection(**values("selection", i)) for i in range(count)])

    def attach(self, data: Data) -> HierarchyData:
        """Stores the hierarchy in a PyG ``Data`` that batches with its loaders.

        Args:
            data: The graph of level 0.

        Returns:
            A copy of ``data`` that holds the coarser levels; after batching,
            ``batch.hierarchy()`` returns the hierarchy of the whole batch.

        Raises:
            ValueError: If ``data`` is not the graph of level 0, or the hierarchy is
                that of a batch.
        """
        from pyg_pool.core.hierarchy_data import pack

        return pack(self, data)

    def __repr__(self) -> str:
        """A table of the levels."""
        graphs = self.levels[0].batch_size
        lines = [
            f"Hierarchy of {self.num_levels} level{'s' * (self.num_levels != 1)}, "
            f"{graphs} graph{'s' * (graphs != 1)}"
        ]
        rows = [("level", "nodes", "edges", "nodes kept")]
        for i, level in enumerate(self.levels):
            before = self.levels[i - 1].num_nodes if i > 0 else 0
            kept = f"{level.num_nodes / before:.1%}" if before else ""
            edges = level.edge_index.size(1)
            rows.append((f"{i}", f"{level.num_nodes}", f"{edges}", kept))
        widths = [max(len(row[c]) for row in rows) for c in range(4)]
        lines += [
            "  ".join(
                cell.rjust(width) for cell, width in zip(row, widths, strict=True)
            ).rstrip()
            for row in rows
        ]
        return "\n".join(lines)
