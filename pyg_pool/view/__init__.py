"""Pictures of hierarchies; matplotlib is loaded when a picture is drawn."""

from __future__ import annotations

from pyg_pool.view.hierarchy import draw_hierarchy
from pyg_pool.view.layout import graph_layout

__all__ = ["draw_hierarchy", "graph_layout"]
