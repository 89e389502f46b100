"""The two graphs of a mesh as one PyG ``Data`` that batches correctly."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

__all__ = ["PrimalDualData"]


class PrimalDualData(Data):
    """The primal and the dual graph of a mesh, or of a batch of meshes.

    PyG's ``Batch`` and ``DataLoader`` join meshes of this class; ``batch_dual`` and
    ``ptr_dual`` are to the dual nodes what ``batch`` and ``ptr`` are to the faces.

    Args:
        x: Features of the faces.
        x_dual: Features of the dual nodes.
        edge_index: Pairs of adjacent faces, both ways, sorted by source and target.
        edge_index_dual: Pairs of dual nodes, sorted by source and target.
        edge_to_dual: The dual node of each primal edge.
        face_areas: Areas of the faces, in the square of the mesh's unit.
        y: Labels of the faces, or one class of the mesh.

    Shapes:
        x: [T, Cp] float, x_dual: [D, Cd] float, edge_index: [2, 2P] int64,
        edge_index_dual: [2, E] int64, edge_to_dual: [2P] int64, face_areas: [T]
        float, y: [T] or [1] int64; batch: [T] int64, batch_dual: [D] int64, ptr and
        ptr_dual: [B + 1] int64.

    Example:
        >>> from torch_geometric.data import Batch
        >>> from pyg_pool.mesh import Mesh, primal_dual_graph
        >>> flap = Mesh(
        ...     [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]]
        ... )
        >>> batch = Batch.from_data_list([primal_dual_graph(flap)] * 2)
        >>> batch.batch_dual.tolist(), batch.edge_to_dual.tolist()
        ([0, 1], [0, 0, 1, 1])
        >>> batch.ptr_dual.tolist()
        [0, 1, 2]
    """

    def __init__(
        self,
        x: Tensor | None = None,
        x_dual: Tensor | None = None,
        edge_index: Tensor | None = None,
        edge_index_dual: Tensor | None = None,
        edge_to_dual: Tensor | None = None,
        face_areas: Tensor | None = None,
        y: Tensor | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(x=x, edge_index=edge_index, y=y)
        if x_dual is not None:
            self.x_dual = x_dual
            self.batch_dual = x_dual.new_zeros(x_dual.size(0), dtype=torch.long)
        if edge_index_dual is not None:
            self.edge_index_dual = edge_index_dual
        if edge_to_dual is not None:
            self.edge_to_dual = edge_to_dual
        if face_areas is not None:
            self.face_areas = face_areas
        # PyG rebuilds data from all of its fields when it copies or separates.
        for name, value in fields.items():
            self[name] = value

    @property
    def num_dual_nodes(self) -> int:
        """Number of dual nodes."""
        return int(self.x_dual.size(0)) if "x_dual" in self else 0

    @property
    def ptr_dual(self) -> Tensor:
        """Where the dual nodes of each mesh begin, and the end of the last."""
        num_graphs = self.ptr.numel() - 1 if "ptr" in self else 1
        counts = self.batch_dual.new_zeros(num_graphs + 1)
        ones = torch.ones_like(self.batch_dual)
        counts = counts.index_add(0, self.batch_dual + 1, ones)
        return counts.cumsum(0)

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Ids of dual nodes grow by their number, ids of faces by theirs."""
        if key in {"edge_index_dual", "edge_to_dual"}:
            return self.num_dual_nodes
        if key == "batch_dual":
            return 1
        if key == "face_index":  # leads to the faces of each mesh's own input
            return 0
        return super().__inc__(key, value, *args, **kwargs)

    def __cat_dim__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Edges are joined along the last dimension, all else along the first."""
        if key in {"edge_index", "edge_index_dual"}:
            return -1
        return super().__cat_dim__(key, value, *args, **kwargs)
