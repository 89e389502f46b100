"""PyG's triangle meshes, ``Data(pos, face)``, to the graphs of primal-dual networks."""

from __future__ import annotations

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from pyg_pool.mesh.cleaning import NonManifold, clean_mesh
from pyg_pool.mesh.data import PrimalDualData
from pyg_pool.mesh.dual_graph import Config, PrimalFeatures, primal_dual_graph
from pyg_pool.mesh.geometry import Mesh

__all__ = ["FaceToPrimalDual"]


class FaceToPrimalDual(BaseTransform):
    """A transform from PyG's meshes to :class:`PrimalDualData`.

    Args:
        config: See :func:`primal_dual_graph`.
        primal_features: See :func:`primal_dual_graph`.
        nonmanifold: See :func:`clean_mesh`.
        fix_winding: See :func:`clean_mesh`.
        clean: Whether the mesh is cleaned at all.

    Note:
        A ``y`` with a label per face follows the faces; any other ``y`` is the
        mesh's own and stays as it is. ``face_index`` of the result leads to the
        faces of the input.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from pyg_pool.mesh import FaceToPrimalDual
        >>> flap = Data(
        ...     pos=torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]),
        ...     face=torch.tensor([[0, 1], [1, 3], [2, 2]]),
        ... )
        >>> FaceToPrimalDual()(flap).edge_index
        tensor([[0, 1],
                [1, 0]])
    """

    def __init__(
        self,
        config: Config = "A",
        primal_features: PrimalFeatures = "area",
        *,
        nonmanifold: NonManifold = "drop",
        fix_winding: bool = True,
        clean: bool = True,
    ) -> None:
        self.config = config
        self.primal_features = primal_features
        self.nonmanifold = nonmanifold
        self.fix_winding = fix_winding
        self.clean = clean

    def forward(self, data: Data) -> PrimalDualData:
        """Returns the graphs of a mesh.

        Raises:
            ValueError: If ``pos`` or ``face`` is missing or does not fit.
        """
        pos, face = data.get("pos"), data.get("face")
        if pos is None or face is None:
            raise ValueError(
                f"FaceToPrimalDual got data with {sorted(data.keys())}, expected pos "
                f"[num_nodes, 3] and face [3, num_faces]; read the mesh with them."
            )
        y = data.get("y")
        per_face = y is not None and y.dim() == 1 and y.size(0) == face.size(1)
        # One face and one label: the class of the mesh and of its face are the same.
        mesh = Mesh(pos, face.t(), y if per_face else None)
        if self.clean:
            mesh = clean_mesh(
                mesh, nonmanifold=self.nonmanifold, fix_winding=self.fix_winding
            )
        dtype = pos.dtype if pos.is_floating_point() else torch.get_default_dtype()
        graph = primal_dual_graph(
            mesh, self.config, primal_features=self.primal_features, dtype=dtype
        )
        if y is not None and not per_face:
            graph.y = y
        if mesh.face_index is not None:
            graph.face_index = torch.from_numpy(mesh.face_index)
        return graph.to(pos.device)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.config!r}, {self.primal_features!r})"
