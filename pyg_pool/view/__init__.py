"""Pictures of hierarchies, coarsenings and meshes; nothing heavy loads before one."""

from __future__ import annotations

from pyg_pool.view.coarsening import draw_quality
from pyg_pool.view.hierarchy import draw_hierarchy
from pyg_pool.view.layout import graph_layout
from pyg_pool.view.mesh import draw_mesh
from pyg_pool.view.mesh_page import write_mesh_page
from pyg_pool.view.parse_tree import draw_parse_tree

__all__ = [
    "draw_hierarchy",
    "draw_mesh",
    "draw_parse_tree",
    "draw_quality",
    "graph_layout",
    "write_mesh_page",
]
