"""Triangle meshes: reading, repair, labels, and the graphs that networks work on."""

from __future__ import annotations

from pyg_pool.mesh.data import PrimalDualData
from pyg_pool.mesh.dual_graph import primal_dual_graph
from pyg_pool.mesh.geometry import Mesh

__all__ = ["Mesh", "PrimalDualData", "primal_dual_graph"]
